"""What the guard and the op-level trace of `mpdoctor replay` add to a training step, beside the tools that people use today.

    python tests/bench/replay_cost.py                  # the decoder of 17 M parameters in fp32, bf16 and fp16; some minutes
    python tests/bench/replay_cost.py --precision fp32 --pairs 25

One thread, CPU time of the process. Every measured block of steps stands between two blocks of plain steps of the same run,
and its ratio is against their mean, so that other work on the machine hits both alike. A guarded or traced step is timed from
the moment mpdoctor asks for its batch to the moment it asks for the next one: all that a replay adds to a step, and nothing of
its start. Peak memory is the process's own (`ru_maxrss`), each variant in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from decoder import DTYPES, Size, Training

from mpdoctor.replay.live.measurements import TraceCollector
from mpdoctor.replay.live.training_loop import Tracing, run

BLOCK = 2
"""Steps in a block."""


class Batches:
    """The same batch again and again, noting the CPU time at which each is asked for."""

    def __init__(self, batch: Any, count: int) -> None:
        self.batch, self.count = batch, count
        self.asked: list[float] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.batch

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.count):
            self.asked.append(time.process_time())
            yield self.batch
        self.asked.append(time.process_time())

    def seconds(self) -> list[float]:
        return [after - before for before, after in zip(self.asked, self.asked[1:], strict=False)]


@dataclass
class Source:
    """A session over a model that is already built."""

    training: Training
    batches: Batches
    name: str = "bench"
    device: str = "cpu"
    notes: list[str] = field(default_factory=list)

    def open(self) -> Any:
        return self.training.session(self.batches)

    def line_of_row(self, step: int, row: int) -> str | None:
        return None


def plain(training: Training, steps: int = BLOCK) -> list[float]:
    with training.kernels():
        return [_timed(training.step) for _ in range(steps)]


def guard(training: Training, steps: int = BLOCK) -> list[float]:
    batches = Batches(training.batch, steps)
    run(Source(training, batches))
    return batches.seconds()


def trace(training: Training, steps: int = BLOCK) -> list[float]:
    """Every op of forward and backward, as the repeat of a failing step runs."""
    return _traced(training, steps, Tracing(frozenset(range(steps)), lambda *_: None))


def trace_with_optimizer(training: Training, steps: int = BLOCK) -> list[float]:
    """The ops of the optimizer too: only for values that the optimizer made."""
    return _traced(training, steps, Tracing(frozenset(range(steps)), lambda *_: None, optimizer_ops=True))


def trace_and_statistics(training: Training, steps: int = BLOCK) -> list[float]:
    """With the numbers per parameter (exponents, updates, moments) that a diagnosis takes from the traced step."""
    collector = TraceCollector()
    return _traced(
        training, steps, Tracing(frozenset(range(steps)), collector.done, before=collector.before, after_backward=collector.after_backward)
    )


def _traced(training: Training, steps: int, tracing: Tracing) -> list[float]:
    batches = Batches(training.batch, steps)
    run(Source(training, batches), tracing=tracing)
    return batches.seconds()


def detect_anomaly(training: Training, steps: int = BLOCK) -> list[float]:
    with training.kernels(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            return [_timed(training.step) for _ in range(steps)]


def debug_underflow_overflow(training: Training, steps: int = BLOCK) -> list[float]:
    from transformers.debug_utils import DebugUnderflowOverflow

    before = {module: set(module._forward_hooks) for module in training.model.modules()}
    with training.kernels(), redirect_stdout(StringIO()):
        DebugUnderflowOverflow(training.model)
        try:
            return [_timed(training.step) for _ in range(steps)]
        finally:
            for module, kept in before.items():
                for key in set(module._forward_hooks) - kept:
                    del module._forward_hooks[key]


VARIANTS: dict[str, Callable[..., list[float]]] = {
    "plain, against itself": plain,
    "mpdoctor guard": guard,
    "mpdoctor op-level trace": trace,
    "the same, optimizer's ops too": trace_with_optimizer,
    "the same as a diagnosis takes it, with statistics per parameter": trace_and_statistics,
    "torch.autograd.detect_anomaly": detect_anomaly,
    "transformers DebugUnderflowOverflow": debug_underflow_overflow,
}


def _timed(step: Callable[[], None]) -> float:
    before = time.process_time()
    step()
    return time.process_time() - before


def ratios(training: Training, variants: dict[str, Callable[..., list[float]]], pairs: int) -> tuple[dict[str, list[float]], float]:
    """Ratios of each variant's blocks to the plain blocks around them, and the median seconds of a plain step."""
    found: dict[str, list[float]] = {name: [] for name in variants}
    for variant in (plain, *variants.values()):  # caches, lazy imports, optimizer state
        variant(training, 1)
    seconds = [statistics.fmean(plain(training))]
    for _ in range(pairs):
        for name, variant in variants.items():
            measured = statistics.fmean(variant(training))
            seconds.append(statistics.fmean(plain(training)))
            found[name].append(2 * measured / (seconds[-2] + seconds[-1]))
    return found, statistics.median(seconds)


def peak_megabytes(precision: str, name: str, size: Size | None = None) -> float:
    """Peak memory of a process that runs three steps of a variant."""
    arguments = [precision, name] + ([",".join(map(str, vars(size).values()))] if size else [])
    done = subprocess.run([sys.executable, __file__, "--peak", *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _peak(precision: str, name: str, size: str | None = None) -> float:
    torch.set_num_threads(1)
    training = Training(precision, Size(*map(int, size.split(","))) if size else None)
    plain(training, 1)
    VARIANTS[name](training, 3)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(precision: str, found: dict[str, list[float]], seconds: float, peaks: dict[str, float]) -> str:
    lines = [
        f"{precision}: a plain step takes {seconds:.2f} s of CPU time; {len(next(iter(found.values())))} interleaved pairs",
        "",
        "| variant | min | median | max | peak memory |",
        "| --- | --- | --- | --- | --- |",
    ]
    base = peaks.get("plain, against itself", 0.0)
    for name, values in found.items():
        peak = f"{peaks[name]:.0f} MB ({peaks[name] - base:+.0f})" if name in peaks else ""
        lines.append(f"| {name} | {min(values):.3f} | {statistics.median(values):.3f} | {max(values):.3f} | {peak} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", choices=list(DTYPES), action="append")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", action="append", default=[], help="variants whose name contains this")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--peak", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(_peak(*options.peak))
        return
    torch.set_num_threads(1)
    chosen = {name: variant for name, variant in VARIANTS.items() if not options.only or any(part in name for part in options.only)}
    for precision in options.precision or DTYPES:
        peaks = {} if options.no_memory else {name: peak_megabytes(precision, name) for name in chosen}
        found, seconds = ratios(Training(precision), chosen, options.pairs)
        print(table(precision, found, seconds, peaks), flush=True, end="\n\n")


if __name__ == "__main__":
    main()
