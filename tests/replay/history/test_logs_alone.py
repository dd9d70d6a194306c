"""What a log says when it is all that is left."""

from __future__ import annotations

import json
from pathlib import Path

from mpdoctor import run_replay
from mpdoctor.core.gate import Outcome

OVERFLOW = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 32768, reducing to 32768\n"


def test_a_run_that_skips_every_step_is_not_healthy(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"{OVERFLOW}step: {step}, loss: 1.8\n" for step in range(12)), encoding="utf-8")
    report = run_replay(log)
    assert (report.outcome, report.headline.cause) == (Outcome.DIAGNOSED, "loss-scaling")
    assert "hardly anything is trained" in report.headline.text


def test_a_few_skipped_steps_are_normal(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(OVERFLOW * 2 + "".join(f"step: {step}, loss: 1.8\n" for step in range(2, 40)), encoding="utf-8")
    assert run_replay(log).healthy


def test_a_loss_that_ends_growing_is_not_healthy(tmp_path: Path) -> None:
    log = tmp_path / "trainer_state.json"
    losses = [1.5, 1.4, 1.5, 1.4, 1.5, 1.6, 5.0, 18.0, 70.0]
    history = [{"step": i, "loss": loss, "grad_norm": loss, "learning_rate": 0.1, "epoch": i / 10} for i, loss in enumerate(losses, start=1)]
    log.write_text(json.dumps({"log_history": history, "global_step": len(losses)}), encoding="utf-8")
    report = run_replay(log)
    assert (report.outcome, report.headline.cause) == (Outcome.DIAGNOSED, "learning-rate")
