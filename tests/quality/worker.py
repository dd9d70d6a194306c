"""Runs recipes one by one, each in a fork of a process that has torch loaded: clean, and without paying for the import.

Reads one job per line on stdin (JSON: id, mode, path, seconds) and writes one answer per line on stdout (JSON: id, cpu, and what the
mode gives). A recipe that crashes, hangs or leaves autocast open harms nobody else.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def observe_recipe(path: Path, *, trace: bool = True) -> dict[str, Any]:
    """What plain torch shows, op by op."""
    import observe

    seen = observe.run(observe.load(path.read_text(encoding="utf-8"), path.stem), trace=trace, trace_steps=10**6)
    return {**vars(seen), "origins": [vars(o) for o in seen.origins], "falls": seen.falls, "finite": seen.finite}


def train_recipe(path: Path) -> dict[str, Any]:
    """What a plain training loop shows."""
    return observe_recipe(path, trace=False)


def replay_recipe(path: Path) -> dict[str, Any]:
    """What mpdoctor says."""
    import mpdoctor

    report = mpdoctor.run_replay(recipe=path)
    first = report.first_nonfinite
    places = [f.location for f in report.findings] + [e.where for v in report.verdicts for e in v.evidence] + [t.site for t in report.timeline]
    return {
        "outcome": str(report.outcome),
        "healthy": report.healthy,
        "cause": report.headline.cause,
        "standing": str(report.headline.standing) if report.headline.standing else None,
        "text": report.headline.text,
        "first": _site(first.site) | {"kind": first.kind, "why": first.why, "rows": list(first.rows)} if first else None,
        "hurts_at": _site(first.hurts_at) if first and first.hurts_at else None,
        "symptoms": [{"id": str(s.id), "step": s.step, "detail": s.detail} for s in report.symptoms],
        "verdicts": [f"{v.cause}: {v.standing}" for v in report.verdicts],
        "places": [_site(p) for p in places if hasattr(p, "phase")],
        "experiments": [f"{e.id} {e.changes}: {e.outcome}" for e in report.experiments],
        "crashes": [str(c) for c in report.crashes],
    }


MODES: dict[str, Callable[[Path], dict[str, Any]]] = {"observe": observe_recipe, "train": train_recipe, "replay": replay_recipe}


def answer(mode: str, path: Path) -> dict[str, Any]:
    """Does one job; `peer:NAME` is another tool of `score_peers`."""
    if mode.startswith("peer:"):
        import score_peers

        return score_peers.TOOLS[mode.removeprefix("peer:")](path)
    return MODES[mode](path)


def _site(site: Any) -> dict[str, Any]:
    source = site.source
    line = f"{Path(source.file).name}:{source.line}" if source else None
    return {"step": site.step, "phase": str(site.phase), "module": site.module, "op": site.op, "tensor": site.tensor, "line": line}


def _child(job: dict[str, Any], pipe: int) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said_by = answer(job["mode"], Path(job["path"]))
    except BaseException:
        said_by = {"crash": traceback.format_exc()}
    with os.fdopen(pipe, "w") as out:
        json.dump(said_by, out, default=str)


def _run(job: dict[str, Any]) -> dict[str, Any]:
    """One job in a fork, with its CPU time; killed when it takes too long."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        try:
            _child(job, write)
        finally:
            os._exit(0)
    os.close(write)
    parts, deadline, hung = [], time.monotonic() + job["seconds"], False
    while True:
        if not select.select([read], [], [], max(0.0, deadline - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
            hung = True
            break
        part = os.read(read, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(read)
    _, _, usage = os.wait4(pid, 0)
    answer = {"crash": f"no answer after {job['seconds']} s"} if hung else json.loads(b"".join(parts) or b'{"crash": "the process died"}')
    return {**answer, "id": job["id"], "cpu": usage.ru_utime + usage.ru_stime}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    warnings.simplefilter("ignore")
    import torch
    import torch._dynamo  # optimizers import it at their first step: once here instead of in every fork
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    with contextlib.suppress(ImportError):
        import mpdoctor.api
        import mpdoctor.replay.live.investigation  # noqa: F401
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
