"""The fault matrix: what there is to run, how an answer is scored, and the table.

python tests/quality/matrix.py                       # everything, two processes
python tests/quality/matrix.py lr_poisson_exp ...    # these only, with what mpdoctor said
MPDOCTOR_EXTRA_CASES=DIR python tests/quality/matrix.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import recipes  # noqa: E402

EXTRA = "MPDOCTOR_EXTRA_CASES"
"""Environment variable: a folder with cases/<id>/{case.py,truth.json} and healthy/<id>/{case.py,truth.json} to run as well."""

ORIGIN_SHARE = 1.0
CAUSE_SHARE = 0.95
FALSE_ALARMS = 0


@dataclass
class Run:
    """One recipe to run: a fault, its repaired twin, or a healthy run."""

    name: str
    kind: str
    path: Path
    truth: dict[str, Any] | None = None
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def must_be_healthy(self) -> bool:
        return self.truth is None

    @property
    def cause(self) -> str:
        """The cause that mpdoctor named, or the outcome where it named none."""
        if "crash" in self.answer:
            return "crash"
        if self.answer["outcome"] != "diagnosed":
            return str(self.answer["outcome"])
        return str(self.answer["cause"])

    @property
    def cause_right(self) -> bool:
        return self.truth is not None and self.cause in self.truth["causes"]

    @property
    def has_origin(self) -> bool:
        return self.truth is not None and bool(self.truth.get("first_nonfinite") or self.truth.get("raises"))

    @property
    def origin_right(self) -> bool:
        return self.truth is not None and "crash" not in self.answer and origin_right(self.truth, self.answer)

    @property
    def false_alarm(self) -> bool:
        return self.must_be_healthy and self.cause != "healthy"


def origin_right(truth: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether the answer names the place where the failure began."""
    slack = 1 if truth["causes"][0] == "learning-rate" else 0  # the step at which growth meets the end of a format shifts with rounding
    if raises := truth.get("raises"):
        seen = any(s["id"] == "exception" and s["step"] == raises["step"] for s in answer["symptoms"])
        return seen and any(_same_place(raises, place, 0) for place in answer["places"])
    if not truth.get("first_nonfinite"):
        return bool(truth.get("first_harmful")) or answer["first"] is None
    return answer["first"] is not None and any(_same_place(t, answer["first"], slack) for t in (truth["first_nonfinite"], *truth.get("also", [])))


def _same_place(truth: dict[str, Any], site: dict[str, Any], slack: int) -> bool:
    phases = {"data": ("input",), "init": ("parameter", "buffer")}.get(truth["phase"], (truth["phase"],))
    if site["phase"] not in phases or abs(site["step"] - truth["step"]) > slack:
        return False
    module = "" if truth["module"] == "<model>" else truth["module"]
    if site["phase"] == "input":
        return True
    if site["phase"] in ("parameter", "buffer", "optimizer", "unscale"):
        return not module or module in (site["tensor"], site["module"], f"{site['module']}.{site['tensor']}")
    return module == site["module"] and (not truth["op"] or _op(truth["op"]) == _op(site["op"] or ""))


def _op(name: str) -> str:
    return name.removeprefix("aten.").rstrip("_")


def plan(folder: Path, names: Iterable[str] = ()) -> list[Run]:
    """All runs; the twins' sources are written to `folder`."""
    names = set(names)
    runs = []
    for path in sorted(recipes.FAULTS.glob("*.py")):
        runs.append(Run(path.stem, "fault", path, recipes.literal(path, "TRUTH")))
        runs.append(_twin(folder, path, path.stem))
    runs += [Run(path.stem, "healthy", path) for path in sorted(recipes.HEALTHY.glob("*.py"))]
    if extra := os.environ.get(EXTRA):
        for truth_file in sorted(Path(extra).glob("*/*/truth.json")):
            truth, path = json.loads(truth_file.read_text(encoding="utf-8")), truth_file.with_name("case.py")
            name = truth_file.parent.name
            runs.append(Run(name, "extra fault" if truth["causes"] else "extra healthy", path, _extra_truth(truth) if truth["causes"] else None))
            if edits := truth.get("counterfactual", {}).get("edits"):
                runs.append(_twin(folder, path, name, edits, "extra "))
    return [run for run in runs if not names or run.name in names]


def _twin(folder: Path, path: Path, name: str, edits: list[tuple[str, str]] | None = None, prefix: str = "") -> Run:
    twin = folder / f"{name}.py"
    twin.write_text(recipes.repaired(path, edits), encoding="utf-8")
    return Run(name, f"{prefix}twin", twin)


def _extra_truth(truth: dict[str, Any]) -> dict[str, Any]:
    """The other form of a truth: there an exception stands in `first_nonfinite`."""
    first = truth["first_nonfinite"]
    if first and first["kind"].startswith("exception"):
        return {**truth, "first_nonfinite": None, "raises": first}
    return truth


def run_all(runs: list[Run], mode: str = "replay", processes: int = 2, seconds: float = 120.0) -> None:
    """Fills in `answer` of every run."""
    queue: SimpleQueue[int] = SimpleQueue()
    for index in range(len(runs)):
        queue.put(index)
    threads = [threading.Thread(target=_feed, args=(runs, queue, mode, seconds)) for _ in range(min(processes, len(runs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _feed(runs: list[Run], queue: SimpleQueue[int], mode: str, seconds: float) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "worker.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as worker:
        assert worker.stdin and worker.stdout
        while True:
            try:
                index = queue.get_nowait()
            except Empty:
                break
            worker.stdin.write(json.dumps({"id": index, "mode": mode, "path": str(runs[index].path), "seconds": seconds}) + "\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
            runs[index].answer = json.loads(line) if line else {"crash": "the worker died", "cpu": 0.0}
        worker.stdin.close()


def table(runs: list[Run]) -> str:
    """Scores, the confusion matrix of causes, and everything that was missed."""
    lines = []
    for kind in ("fault", "twin", "healthy", "extra fault", "extra twin", "extra healthy"):
        lines += _scores([run for run in runs if run.kind == kind])
    faults = [run for run in runs if run.truth]
    rows = sorted({run.truth["causes"][0] for run in faults if run.truth})
    columns = [*rows, *sorted({run.cause for run in faults} - set(rows))]
    counts = Counter((run.truth["causes"][0], run.cause) for run in faults if run.truth)
    lines += ["", "best cause (down) against the cause named (across)", f"{'':20s} " + " ".join(f"{c[:9]:>9s}" for c in columns)]
    lines += [f"{row:20s} " + " ".join(f"{counts[row, c] or '.':>9}" for c in columns) for row in rows]
    missed = [run for run in runs if run.false_alarm or (run.truth and not (run.cause_right and run.origin_right))]
    lines += ["", f"{len(missed)} missed"] + [miss(run) for run in missed]
    return "\n".join(lines)


def _scores(runs: list[Run]) -> list[str]:
    if not runs:
        return []
    cpu = sorted(run.answer["cpu"] for run in runs)
    cost = f"CPU {sum(cpu):6.1f} s, median {cpu[len(cpu) // 2]:.1f}, most {cpu[-1]:.1f}"
    if runs[0].must_be_healthy:
        return [f"{runs[0].kind:14s} {len(runs):3d} runs  false alarms {sum(run.false_alarm for run in runs)}  {cost}"]
    placed = [run for run in runs if run.has_origin]
    best = sum(run.cause == run.truth["causes"][0] for run in runs if run.truth)
    origin = f"origin {sum(run.origin_right for run in placed)}/{len(placed)}"
    return [f"{runs[0].kind:14s} {len(runs):3d} runs  {origin}  cause {sum(run.cause_right for run in runs)}/{len(runs)} (best {best})  {cost}"]


def miss(run: Run) -> str:
    """One line on what was expected and what was said."""
    if crash := run.answer.get("crash"):
        return f"  {run.kind} {run.name}: crash: {str(crash).strip().splitlines()[-1]}"
    said = f"{run.cause} ({run.answer['standing']}), origin {_where(run.answer['first'])}"
    if not run.truth:
        return f"  {run.kind} {run.name}: healthy, said {said}: {run.answer['text'][:160]}"
    wrong = "/".join(part for part, right in (("cause", run.cause_right), ("origin", run.origin_right)) if not right)
    expected = f"{', '.join(run.truth['causes'])}, origin {_where(run.truth.get('raises') or run.truth.get('first_nonfinite'))}"
    return f"  {run.kind} {run.name}: {wrong}: expected {expected}; said {said}"


def _where(site: dict[str, Any] | None) -> str:
    return f"step {site['step']} {site['phase']} [{site.get('tensor') or site['module']}] {site.get('op') or ''}" if site else "none"


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = plan(Path(folder), names)
        run_all(runs)
        if dump := os.environ.get("MPDOCTOR_MATRIX_JSON"):
            Path(dump).write_text(
                json.dumps([{"kind": r.kind, "name": r.name, "truth": r.truth, "answer": r.answer} for r in runs]), encoding="utf-8"
            )
        for run in runs if names else ():
            print(f"{run.kind} {run.name}", json.dumps({k: v for k, v in run.answer.items() if k != "places"}, indent=1), sep="\n")
        print(table(runs))


if __name__ == "__main__":
    main(sys.argv[1:])
