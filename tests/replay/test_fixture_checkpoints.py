"""The seven checkpoints of real Trainer runs: headline, standing, exit code. What each of them shows is told in fixtures/README.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpdoctor.cli.app import run

pytestmark = [pytest.mark.torch, pytest.mark.slow]

CHECKPOINTS = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints"


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Nothing in a checkpoint is ever written."""

    def state() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in CHECKPOINTS.rglob("*")}

    before = state()
    yield
    assert state() == before


@pytest.fixture
def replayed(replay: Any) -> Any:
    """Replays one of the checkpoints with its data."""
    return lambda name, *more: replay(CHECKPOINTS / name, "--data", CHECKPOINTS / name / "data.jsonl", *more)


def standing(ran: Any, cause: str) -> str:
    return str(ran.entry(cause)["standing"])


def test_feed_forward_output_beyond_fp16(replayed: Any) -> None:
    ran = replayed("fp16-overflow")
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert (ran.report["headline"]["cause"], ran.report["headline"]["standing"]) == ("fp16-range", "confirmed")
    first = ran.report["first_nonfinite"]
    assert (first["step"], first["phase"], first["module"], first["dtype"]) == (24, "forward", "model.layers.0.mlp.down_proj", "float16")
    assert "exceeds float16's 65504" in first["why"]
    assert [standing(ran, cause) for cause in ("learning-rate", "loss-scaling", "dirty-data")] == ["ruled-out"] * 3


def test_learning_rate_far_too_high(replayed: Any) -> None:
    ran = replayed("lr-too-high")
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert ran.report["headline"]["cause"] == "learning-rate"
    assert ran.report["headline"]["standing"] in ("confirmed", "likely")
    assert standing(ran, "fp16-range") == "ruled-out"
    assert standing(ran, "dirty-data") == "ruled-out"


def test_fp16_without_loss_scaling(replayed: Any) -> None:
    ran = replayed("no-loss-scaling")
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert (ran.report["headline"]["cause"], ran.report["headline"]["standing"]) == ("loss-scaling", "confirmed")
    assert "grad-norm-collapse" in [s["id"] for s in ran.report["symptoms"]]
    assert ran.report["measurements"]["loss_scale_window"]["low"] > 1.0
    assert all(s["grad_norm"] == 0.0 for s in ran.report["steps"] if s["source"] == "replay")


def test_one_broken_row_is_named_by_its_line(replayed: Any) -> None:
    ran = replayed("broken-row")
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert (ran.report["headline"]["cause"], ran.report["headline"]["standing"]) == ("dirty-data", "confirmed")
    assert ran.report["measurements"]["failing_lines"] == ["data.jsonl:58"]
    assert any("data.jsonl:58" in text for text in ran.entry("dirty-data")["evidence"])


def test_a_healthy_bf16_run(replayed: Any) -> None:
    ran = replayed("healthy-bf16")
    assert (ran.exit_code, ran.report["outcome"], ran.report["symptoms"]) == (0, "healthy", [])
    assert ran.report["first_nonfinite"] is None


def test_a_healthy_fp16_run_that_skipped_a_step_as_on_a_v100(replayed: Any) -> None:
    ran = replayed("healthy-fp16-dynamic", "--gpu", "v100")
    assert (ran.exit_code, ran.report["outcome"], ran.report["symptoms"]) == (0, "healthy", [])
    assert "normal" in " ".join([*ran.report["notes"], *(f["message"] for f in ran.report["findings"])])
    assert [f["severity"] for f in ran.report["findings"] if f["severity"] == "error"] == []


def test_a_fixed_scale_on_a_card_that_has_bf16(replayed: Any) -> None:
    ran = replayed("fixed-loss-scale", "--gpu", "4090")
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert (ran.report["headline"]["cause"], ran.report["headline"]["standing"]) == ("loss-scaling", "confirmed")
    assert any("native bf16, and the run does not use it" in text for text in ran.entry("fp16-range")["evidence"])
    assert ran.report["measurements"]["loss_scale_window"]["high"] < 128


def test_without_data_batches_are_made_up_and_it_is_said(replay: Any) -> None:
    ran = replay(CHECKPOINTS / "healthy-bf16", "--steps", 2)
    assert ran.exit_code == 0
    assert any("dirty data stays untested" in note for note in ran.report["notes"])
    assert (standing(ran, "dirty-data"), standing(ran, "learning-rate")) == ("untested", "ruled-out")


def test_the_text_report_opens_with_the_headline(capsys: pytest.CaptureFixture[str]) -> None:
    folder = CHECKPOINTS / "broken-row"
    code = run(["replay", str(folder), "--data", str(folder / "data.jsonl"), "--steps", "7", "--experiments", "none", "--color", "never"])
    first = capsys.readouterr().out.splitlines()[0]
    assert code == 1
    assert "DIAGNOSED" in first
    assert "dirty-data" in first
