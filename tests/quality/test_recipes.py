"""The ground of the matrix: each fault fails as its truth says, and its twin and the healthy runs train, in plain torch."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import matrix
import recipes

pytestmark = [pytest.mark.torch, pytest.mark.slow]

MADE_ON_PURPOSE = {"aten.masked_fill", "aten.scalar_tensor", "aten.reciprocal"}
"""Ops whose infinity is meant: masks, and 1/0 of a scale of 0 (the fault is what the scaler then does with it)."""

SILENT_ON_THE_LOG = {
    "ckpt_running_var_through_fp16",
    "state_ema_bf16",
    "slow_autocast_disabled_inside",
    "slow_autocast_forgotten",
    "slow_model_in_double",
}
"""Faults whose loss curve is as good as the twin's: the harm is elsewhere."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[matrix.Run]:
    folder = tmp_path_factory.mktemp("twins")
    planned = [run for run in matrix.plan(folder) if not run.kind.startswith("extra")]
    matrix.run_all(of(planned, "fault"), "observe")
    matrix.run_all([run for run in planned if run.kind != "fault"], "train")
    return planned


def of(runs: list[matrix.Run], kind: str) -> list[matrix.Run]:
    return [run for run in runs if run.kind == kind]


def test_the_matrix_is_wide_enough(runs: list[matrix.Run]) -> None:
    causes = [run.truth["causes"][0] for run in runs if run.truth]
    assert len(causes) >= 36
    assert len(of(runs, "healthy")) >= 40
    several = ["learning-rate", "loss-scaling", "fp16-range", "dirty-data", "model-numerics", "low-precision-state", "training-loop"]
    assert all(causes.count(cause) >= 3 for cause in (*several, "initialisation"))
    assert {"checkpoint", "slow-precision"} <= set(causes)


def test_every_origin_is_seen_where_the_truth_has_it(runs: list[matrix.Run]) -> None:
    wrong = [f"{run.name}: {problem}" for run in of(runs, "fault") if (problem := disagreement(run))]
    assert not wrong, "\n".join(wrong)


def disagreement(run: matrix.Run) -> str:
    """How plain torch contradicts the truth, or nothing."""
    truth, seen = run.truth, run.answer
    assert truth
    if crash := seen.get("crash"):
        return str(crash)
    if raises := truth.get("raises"):
        same = raises["op"] in ("", seen["error_place"][2]) and len(seen["losses"]) == raises["step"]
        return "" if seen["error"] and same else f"{seen['error']} at {seen['error_place']} after {len(seen['losses'])} steps"
    first = truth["first_nonfinite"]
    if first is None:
        return "" if seen["finite"] else f"not finite: {seen['origins'][:1]} {seen['error']}"
    places = [first, *([truth["hurts_at"]] if "hurts_at" in truth else [])]
    absent = [place for place in places if not any(observed(place, origin) for origin in seen["origins"])]
    hidden = truth.get("also", [])
    before = [o for o in seen["origins"] if o["step"] == first["step"] and o["op"] not in MADE_ON_PURPOSE and not any(observed(h, o) for h in hidden)]
    if not absent and first["op"] not in MADE_ON_PURPOSE and not observed(first, before[0]):
        return f"not the first: {before[0]}"
    if not all(map(math.isfinite, seen["losses"][: first["step"]])):
        return "the loss is not finite before"
    damaged = seen["bad_state"] or seen["error"] or any(not math.isfinite(x) for x in [*seen["losses"], *known(seen["grad_norms"])])
    if not damaged and seen["moved"] > 0:
        return "nothing was harmed"
    return f"not seen: {absent[0]}" if absent else ""


def observed(place: dict[str, Any], origin: dict[str, Any]) -> bool:
    """The observer names optimizer and unscale by phase alone: it sees the op, not whose gradient it is."""
    if (place["phase"], place["step"]) != (origin["phase"], origin["step"]):
        return False
    if place["phase"] in ("optimizer", "unscale", "input"):
        return True
    op = "" if place["phase"] in ("parameter", "buffer") else place["op"]
    return (place["module"], op, place["kind"].lstrip("-")) == (origin["module"], origin["op"], origin["kind"].lstrip("-"))


def known(norms: list[float]) -> list[float]:
    """Gradient norms that the recipe measured; NaN stands for those it did not."""
    return [] if all(map(math.isnan, norms)) else norms


def test_every_silent_fault_learns_worse_than_its_twin_or_loses_something(runs: list[matrix.Run]) -> None:
    twins = {run.name: run.answer for run in of(runs, "twin")}
    idle = []
    for run in of(runs, "fault"):
        assert run.truth
        if run.truth["first_nonfinite"] or run.truth.get("raises") or run.name in SILENT_ON_THE_LOG:
            continue
        seen, twin = run.answer, twins[run.name]
        worse = seen["falls"] > 1.05 * twin["falls"] or max(seen["losses"]) > 5 * max(twin["losses"])
        if not (worse or seen["zero_grads"] or seen["none_grads"] or seen["moved"] < twin["moved"]):
            idle.append(f"{run.name}: {seen['falls']:.3f} against {twin['falls']:.3f}")
    assert not idle, "\n".join(idle)


def test_every_twin_trains_well(runs: list[matrix.Run]) -> None:
    ill = []
    for run in of(runs, "twin"):
        seen = run.answer
        if "crash" in seen or not seen["finite"] or seen["none_grads"] or seen["zero_grads"] or seen["moved"] < 0.5 or not seen["falls"] < 0.97:
            shown = ("error", "falls", "moved", "none_grads", "zero_grads", "bad_state")
            ill.append(f"{run.name}: {seen.get('crash') or {name: seen[name] for name in shown}}")
    assert not ill, "\n".join(ill)


def test_every_healthy_run_is_finite_and_moves(runs: list[matrix.Run]) -> None:
    ill = []
    for run in of(runs, "healthy"):
        seen = run.answer
        masks = all(name.rsplit(".")[-1] == "mask" for name in seen.get("bad_state", []))
        if "crash" in seen or seen["error"] or not masks or not all(map(math.isfinite, seen["losses"])) or seen["moved"] < 0.5:
            ill.append(f"{run.name}: {seen.get('crash') or seen['error'] or seen['bad_state']}")
    assert not ill, "\n".join(ill)


def test_every_recipe_says_what_it_is() -> None:
    for path in [*recipes.FAULTS.glob("*.py"), *recipes.HEALTHY.glob("*.py")]:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith('"""HEALTHY: ' if path.parent == recipes.HEALTHY else '"""'), path
