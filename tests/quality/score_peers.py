"""Scores other tools on the fault matrix, for the README. Run by hand:

    python tests/quality/score_peers.py            # all; or the names of some

Each tool watches the same recipes in the same plain loop. `exact`: it names the operation (or the parameter, buffer or input) in which the
failure began, and the step. `module`: it names the right module and step, not the operation. `wrong`: it stops at another place or step.
`nothing`: it never speaks. Faults that raise by themselves are left out: Python's own traceback tells where. Kinder than strict where a
tool's words leave room: anomaly mode's backward function counts as its forward operation, and is given the module that we know it ran in.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

import matrix
import observe

Place = dict[str, Any] | None


def anomaly(path: Path) -> dict[str, Any]:
    """`torch.autograd.detect_anomaly(check_nan=True)`: NaN in backward, by autograd node."""
    with torch.autograd.detect_anomaly(check_nan=True):
        step, error, watch = train(path, lambda model: None, watch=True)
    found = re.search(r"Function '(\w+)' returned nan", error)
    if not found or watch is None:
        return {"place": None}
    return {"place": {"step": step, "phase": "backward", "module": watch.last[1], "op": found[1]}}


def underflow_overflow(path: Path) -> dict[str, Any]:
    """transformers' `DebugUnderflowOverflow`: inputs, weights and outputs of modules in forward."""
    from transformers.debug_utils import DebugUnderflowOverflow

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        step, error, _ = train(path, DebugUnderflowOverflow)
    if "DebugUnderflowOverflow" not in error:
        return {"place": None}
    text = said.getvalue()
    variable = text.split(" has ")[0].splitlines()[-1].strip()  # the first thing that it found: input[0], weight, output
    frames = re.findall(r"^ {17} (?!\*)(\S*) \w+$", text, re.MULTILINE)
    module = frames[-1] if frames else ""
    if variable.startswith("input"):
        return {"place": {"step": step, "phase": "input", "module": "", "op": None}}
    if variable.startswith("output"):
        return {"place": {"step": step, "phase": "forward", "module": module, "op": None}}
    return {"place": {"step": step, "phase": "parameter", "module": f"{module}.{variable}".lstrip("."), "op": None}}


def forward_hooks(path: Path) -> dict[str, Any]:
    """A forward hook on every module that stops at the first output that is not finite."""

    def attach(model: torch.nn.Module) -> None:
        for name, module in model.named_modules():
            module.register_forward_hook(lambda m, given, out, name=name: check(name, out))

    def check(name: str, out: Any) -> None:
        if any(not observe.finite(t) for t in observe.floats(out)):
            raise FloatingPointError(name)

    step, error, _ = train(path, attach)
    if not error.startswith("FloatingPointError: "):
        return {"place": None}
    return {"place": {"step": step, "phase": "forward", "module": error.removeprefix("FloatingPointError: "), "op": None}}


TOOLS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "torch `detect_anomaly`": anomaly,
    "transformers `DebugUnderflowOverflow`": underflow_overflow,
    "forward hooks, finite test": forward_hooks,
}


def train(path: Path, attach: Callable[[Any], Any], *, watch: bool = False) -> tuple[int, str, observe.OpWatch | None]:
    """The plain loop under a tool: the step in which something raised, what it said, and the watch that knows where that was."""
    recipe = observe.load(path.read_text(encoding="utf-8"), path.stem)
    config = getattr(recipe, "CONFIG", {})
    torch.manual_seed(0)
    model, optimizer = recipe.build()
    scaler = torch.amp.GradScaler("cpu", init_scale=config.get("init_scale", 2.0**16), enabled=bool(config.get("scaler")))
    scheduler = recipe.scheduler(optimizer) if hasattr(recipe, "scheduler") else None
    step, keep = -1, attach(model)
    places = observe.OpWatch(model) if watch else None
    try:
        for batch in recipe.batches():
            step += 1
            with places or contextlib.nullcontext():
                observe.plain_step(recipe, model, optimizer, batch, scaler, config)
            if scheduler:
                scheduler.step()
            if hasattr(recipe, "after_step"):
                recipe.after_step(model)
    except Exception as error:
        return step, f"{type(error).__name__}: {error}", places
    finally:
        del keep
        if places:
            places.close()
    return step, "", places


def verdict(truth: dict[str, Any], place: Place) -> str:
    """`exact`, `module`, `wrong` or `nothing`."""
    if place is None:
        return "nothing"
    answers = [truth["first_nonfinite"], *truth.get("also", []), *([truth["hurts_at"]] if "hurts_at" in truth else [])]
    if any(place["step"] != answer["step"] for answer in answers):
        return "wrong"
    for answer in answers:
        where = {"data": "input", "init": "parameter"}.get(answer["phase"], answer["phase"])
        if where in ("input", "parameter", "buffer") or place["phase"] in ("input", "parameter"):
            if where == place["phase"] and place["module"] in (answer["module"], ""):
                return "exact"
        elif (
            place["op"]
            and where in ("forward", "loss", "backward")
            and _node(place["op"]) == _node(answer["op"])
            and place["module"] == answer["module"]
        ):
            return "exact"
    near = any(_near(place, answer) for answer in answers)
    return "module" if near else "wrong"


def _near(place: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether the right module is named: for a parameter the module that owns it, for an input any module of the right step."""
    where = {"data": "input", "init": "parameter"}.get(answer["phase"], answer["phase"])
    if where in ("parameter", "buffer"):
        return place["module"] == answer["module"].rpartition(".")[0]
    if where == "input":
        return place["phase"] == "forward"
    return bool(place["module"]) and place["module"] == answer["module"] and where in ("forward", "backward")


def _node(op: str) -> str:
    """`LogBackward0` and `aten.log` are the same operation: `log`."""
    return re.sub(r"(backward\d*|_forward|[_\d])", "", op.removeprefix("aten.").lower())


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = [run for run in matrix.plan(Path(folder), names) if not (run.truth and run.truth.get("raises"))]
        loud = [run for run in runs if run.truth and run.truth["first_nonfinite"]]
        silent = [run for run in runs if run.truth and not run.truth["first_nonfinite"]]
        good = [run for run in runs if run.must_be_healthy]
        print(
            f"| tool | exact | module | nothing | wrong | silent faults noticed (of {len(silent)}) | false alarms (of {len(good)}) | names a cause |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|---|")
        for name in TOOLS:
            matrix.run_all(runs, f"peer:{name}")
            counts = Counter(verdict(run.truth, run.answer.get("place")) for run in loud if run.truth)
            noticed, alarms = (sum(run.answer.get("place") is not None for run in group) for group in (silent, good))
            print(f"| {name} | " + " | ".join(str(counts[k]) for k in ("exact", "module", "nothing", "wrong")) + f" | {noticed} | {alarms} | no |")
        matrix.run_all(runs)
        places = [run.answer.get("first") for run in loud]
        exact = sum(run.origin_right for run in loud)
        none = sum(place is None for place in places)
        noticed, alarms = sum(run.cause not in ("healthy", "crash") for run in silent), sum(run.false_alarm for run in good)
        causes = f"{sum(run.cause_right for run in (*loud, *silent))} of {len(loud) + len(silent)} right"
        print(f"| **mpdoctor** | {exact} | 0 | {none} | {len(loud) - exact - none} | {noticed} | {alarms} | {causes} |")


if __name__ == "__main__":
    main(sys.argv[1:])
