"""Rules over checkpoints: each fires on a checkpoint that has its fault, and is silent on the one without."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from mpdoctor.causes import all_causes
from mpdoctor.core import rule
from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, judge_checkpoint
from mpdoctor.replay.checkpoints import open_checkpoint
from mpdoctor.replay.history import read_history

NAN, INF = math.nan, math.inf
RULES = {r.code: r for package in ("checkpoint", "history") for r in rule.load(f"mpdoctor.replay.detectors.{package}")}


class TrainingArguments:
    """Pickles as transformers' class does: a module's name, a class's name, a dictionary."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def checkpoint(
    path: Path,
    weights: dict[str, torch.Tensor] | None = None,
    *,
    args: dict[str, Any] | None = None,
    log: list[dict[str, Any]] | None = None,
    moments: tuple[torch.Tensor, torch.Tensor] | None = None,
    taken: int = 10,
    scaler: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    step: int = 10,
    adapter: dict[str, torch.Tensor] | None = None,
) -> Path:
    """A Trainer-like folder with just these parts."""
    path.mkdir(parents=True, exist_ok=True)
    save_file(weights or {"w": torch.full((4, 4), 0.05)}, path / "model.safetensors")
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": log or []}))
    if args is not None:
        torch.save(TrainingArguments(**{"fp16": False, "bf16": False, "learning_rate": 1e-5, **args}), path / "training_args.bin")
    if moments is not None:
        state = {0: {"step": torch.tensor(float(taken)), "exp_avg": moments[0], "exp_avg_sq": moments[1]}}
        torch.save({"state": state, "param_groups": [{"lr": 1e-5, "params": [0]}]}, path / "optimizer.pt")
    if scaler is not None:
        torch.save(scaler, path / "scaler.pt")
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    if adapter is not None:
        save_file(adapter, path / "adapter_model.safetensors")
    return path


def judge(path: Path) -> rule.RuleRun:
    found = open_checkpoint(path)
    run = judge_checkpoint(CheckpointEvidence(checkpoint=found, autopsy=autopsy(found), history=read_history(found)))
    assert not run.crashes, run.crashes
    return run


def rows(**columns: list[float]) -> list[dict[str, Any]]:
    count = len(next(iter(columns.values())))
    return [{"step": i + 1, "learning_rate": 1e-3, **{name: values[i] for name, values in columns.items()}} for i in range(count)]


def scaled(scale: float, **more: Any) -> dict[str, Any]:
    return {"scale": scale, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 3, **more}


ones, half = torch.ones(100), torch.full((100,), 1e-4, dtype=torch.float16)
falling = [4.0, 3.8, 3.6, 3.5, 3.4, 3.3, 3.2, 3.1]
FP16, BF16 = {"fp16": True}, {"bf16": True}

# code -> (what has the fault, the same without it)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "RUN701": ({"weights": {"w": torch.tensor([1.0, NAN])}}, {"weights": {"w": ones, "attn_mask": torch.tensor([0.0, -INF])}}),
    "RUN702": ({"moments": (torch.tensor([NAN]), torch.tensor([1.0]))}, {"moments": (torch.tensor([1.0]), torch.tensor([1.0]))}),
    "RUN703": ({"args": FP16, "scaler": scaled(0.0)}, {"args": FP16, "scaler": scaled(1024.0)}),
    "RUN704": ({"moments": (half, half * half)}, {"moments": (half, (half.float() * half.float()))}),
    "RUN705": (
        {"weights": {"w": torch.full((10, 10), 0.5, dtype=torch.bfloat16)}, "moments": (ones.bfloat16(), ones.bfloat16()), "args": BF16},
        {"weights": {"w": torch.full((10, 10), 0.5, dtype=torch.bfloat16)}, "moments": (ones, ones), "args": BF16},
    ),
    "RUN706": ({"moments": (ones.half(), ones.half())}, {"moments": (ones.bfloat16(), ones.bfloat16())}),
    "RUN707": ({"weights": {"w": torch.tensor([70000.0])}, "args": FP16}, {"weights": {"w": torch.tensor([60000.0])}, "args": FP16}),
    "RUN708": (
        {"weights": {"w": ones.bfloat16()}, "config": {"dtype": "float16"}},
        {"weights": {"w": ones.bfloat16()}, "config": {"dtype": "bfloat16"}},
    ),
    "RUN709": ({"weights": {"w": ones.half()}, "args": FP16}, {"weights": {"w": ones}, "args": FP16}),
    "RUN710": ({"weights": {"w": ones.bfloat16()}, "args": FP16}, {"weights": {"w": ones.bfloat16()}, "args": BF16}),
    "RUN711": ({"adapter": {"x.lora_A.weight": ones, "x.lora_B.weight": ones.half()}}, {"adapter": {"x.lora_A.weight": ones}, "args": FP16}),
    "RUN712": ({"moments": (ones * 0, ones * 0), "args": FP16}, {"moments": (ones * 1e-9, ones * 0), "args": FP16}),
    "RUN713": (
        {"weights": {"w": torch.cat([torch.zeros(50), torch.full((50,), 1e-6), torch.ones(900)]).half().reshape(10, 100)}},
        {"weights": {"w": torch.cat([torch.zeros(500), torch.ones(500)]).half().reshape(10, 100)}},  # pruned: zeros without subnormals
    ),
    "RUN718": ({"args": FP16}, {"args": {"fp16": True, "use_cpu": True}, "moments": (ones, ones)}),
    "RUN719": (
        {"args": FP16, "scaler": scaled(8.0), "moments": (ones, ones), "taken": 20, "step": 40},
        {"args": FP16, "scaler": scaled(8.0), "moments": (ones, ones)},
    ),
    "RUN720": (
        {"args": FP16, "scaler": scaled(128.0, growth_factor=1.0, backoff_factor=1.0), "moments": (ones, ones), "taken": 3, "step": 9},
        {"args": FP16, "scaler": scaled(128.0), "moments": (ones, ones), "taken": 3, "step": 9},
    ),
    "RUN721": ({"args": FP16, "log": rows(loss=[*falling, 0.0, 0.0])}, {"args": FP16, "log": rows(loss=falling)}),
    "RUN723": ({"weights": {"w": ones.half()}, "args": BF16}, {"weights": {"w": ones.half()}, "args": FP16}),
    "RUN724": ({"args": {"bf16": True, "fp16_full_eval": True}}, {"args": {"bf16": True, "bf16_full_eval": True}}),
    "RUN725": (
        {"args": BF16, "config": {"quantization_config": {"bnb_4bit_compute_dtype": "float16"}}},
        {"args": BF16, "config": {"quantization_config": {"bnb_4bit_compute_dtype": "bfloat16"}}},
    ),
    "RUN726": (
        {"weights": {"w": ones.bfloat16()}, "moments": (ones, ones)},
        {"weights": {"w": ones.bfloat16()}, "moments": (ones.bfloat16(), ones.bfloat16())},
    ),
    "RUN727": ({"weights": {"w": torch.zeros(4, 4)}}, {"weights": {"w": torch.zeros(4, 4), "x": torch.ones(4, 4), "y": torch.ones(4, 4)}}),
    "RUN801": ({"log": rows(loss=[*falling, NAN, NAN])}, {"log": rows(loss=[*falling[:3], NAN, *falling[3:]])}),
    "RUN802": ({"log": rows(loss=[4.0, 3.0, 9.0, 40.0, 200.0, NAN])}, {"log": rows(loss=falling)}),
    "RUN803": ({"log": rows(loss=[4.0] * 4, grad_norm=[0.0] * 4), "args": FP16}, {"log": rows(loss=[4.0] * 4, grad_norm=[0.1] * 4), "args": FP16}),
    "RUN805": (
        {"args": FP16, "log": rows(loss=falling, grad_norm=[1.0, INF, *[1.0] * 6])},
        {"args": BF16, "log": rows(loss=falling, grad_norm=[1.0, INF, *[1.0] * 6])},
    ),
    "RUN806": ({"log": rows(loss=[*falling, 30.0, 3.0])}, {"log": rows(loss=[*falling, 3.2, 3.0])}),
    "RUN807": ({"log": rows(loss=[10.8249] * 6)}, {"log": rows(loss=falling)}),
}


@pytest.mark.parametrize("code", list(CASES))
def test_the_rule_fires_on_its_fault_only(tmp_path: Path, code: str) -> None:
    faulty, sound = CASES[code]
    (found,) = [f for f in judge(checkpoint(tmp_path / "faulty", **faulty)).findings if f.code == code]
    assert found.message and found.evidence and found.location is not None
    assert code not in {f.code for f in judge(checkpoint(tmp_path / "sound", **sound)).findings}


def test_every_rule_is_tested_and_documented() -> None:
    elsewhere = {"RUN714", "RUN715", "RUN716", "RUN717", "RUN722", "RUN804"}
    assert set(RULES) == set(CASES) | elsewhere
    causes = {cause.id for cause in all_causes()}
    for found in RULES.values():
        assert list(found.doc.sections) == list(rule.HEADINGS) and found.doc.summary.endswith("."), found.code
        assert found.cause is None or found.cause in causes


def only(run: rule.RuleRun, code: str) -> Finding:
    (found,) = [f for f in run.findings if f.code == code]
    return found


# files


@pytest.mark.parametrize(
    ("damage", "code", "severity"),
    [
        (lambda p: (p / "model.safetensors").write_bytes((p / "model.safetensors").read_bytes()[:-8]), "RUN714", Severity.ERROR),
        (lambda p: (p / "optimizer.pt").write_bytes(b"cos\nsystem\n(S'x'\ntR."), "RUN715", Severity.ERROR),
        (
            lambda p: torch.save({"state": {0: {"exp_avg": torch.eye(3).to_sparse()}}, "param_groups": []}, p / "optimizer.pt"),
            "RUN717",
            Severity.INFO,
        ),
        (lambda p: (p / "config.json").symlink_to("/etc/hostname"), "RUN716", Severity.ERROR),
    ],
    ids=["truncated", "runs-code", "sparse", "escapes"],
)
def test_what_is_wrong_with_files_is_a_finding(tmp_path: Path, damage: Callable[[Path], object], code: str, severity: Severity) -> None:
    path = checkpoint(tmp_path)
    damage(path)
    assert only(judge(path), code).severity is severity


def test_code_of_the_run_itself_is_only_information(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, args=FP16)
    found = only(judge(path), "RUN715")
    assert found.severity is Severity.INFO and "TrainingArguments" in found.message


# where a rule's verdict depends on the rest


def test_infinities_without_nan_in_fp16_come_from_a_cast(tmp_path: Path) -> None:
    found = only(judge(checkpoint(tmp_path, {"w": torch.tensor([1.0, INF], dtype=torch.float16)})), "RUN701")
    assert "cast" in found.message


def test_a_scale_below_one_is_not_the_scales_doing(tmp_path: Path) -> None:
    found = only(judge(checkpoint(tmp_path, args=FP16, scaler=scaled(2.0**-8))), "RUN703")
    assert found.confidence is Confidence.MEDIUM and "every scale" in found.message


def test_zero_moments_of_a_scaled_or_bf16_run_are_not_blamed_on_scaling(tmp_path: Path) -> None:
    found = only(judge(checkpoint(tmp_path, moments=(ones * 0, ones * 0), args=BF16)), "RUN712")
    assert found.cause == "training-loop" and found.confidence is Confidence.LOW


def test_a_bf16_run_rules_scaling_and_fp16s_range_out(tmp_path: Path) -> None:
    assert {e.cause for e in judge(checkpoint(tmp_path / "bf16", args=BF16)).exclusions} == {"loss-scaling", "fp16-range"}
    assert not judge(checkpoint(tmp_path / "fp16", args=FP16)).exclusions
    assert not judge(checkpoint(tmp_path / "half", {"w": ones.half()}, args={})).exclusions
    assert not judge(checkpoint(tmp_path / "unknown")).exclusions


def test_a_break_in_the_first_step_rules_the_learning_rate_out(tmp_path: Path) -> None:
    run = judge(checkpoint(tmp_path, args=BF16, log=rows(loss=[NAN, NAN, NAN])))
    assert "learning-rate" in {e.cause for e in run.exclusions}


def test_a_nan_loss_with_finite_weights_is_no_matter_of_scale(tmp_path: Path) -> None:
    run = judge(checkpoint(tmp_path, args=FP16, scaler=scaled(1024.0), log=rows(loss=[*falling, NAN, NAN])))
    assert only(run, "RUN721").cause == "fp16-range" and [e.cause for e in run.exclusions] == ["loss-scaling"]


def test_one_skip_is_said_to_be_normal(tmp_path: Path) -> None:
    run = judge(checkpoint(tmp_path, args=FP16, scaler=scaled(32768.0), moments=(ones, ones), taken=39, step=40))
    found = only(run, "RUN719")
    assert found.severity is Severity.INFO and "normal" in found.message and found.cause is None


def test_a_scale_that_walked_down_in_a_log(tmp_path: Path) -> None:
    lines = [f"step {i}: loss=4.{i} loss_scale={2.0 ** (16 - 3 * i)}" for i in range(8)]
    (tmp_path / "train.log").write_text("\n".join(lines))
    run = judge_checkpoint(CheckpointEvidence(history=read_history(tmp_path / "train.log")))
    assert only(run, "RUN804").severity is Severity.ERROR
    assert {s.what for s in run.skipped} >= {"RUN701", "RUN714"}


def test_a_series_names_first_bad_and_last_good(tmp_path: Path) -> None:
    for step, value in ((10, 1.0), (20, 1.0), (30, NAN)):
        checkpoint(tmp_path / f"checkpoint-{step}", {"w": torch.tensor([value])}, step=step)
    found = only(judge(tmp_path), "RUN722")
    assert "checkpoint-30 is the first bad" in found.message and "checkpoint-20" in found.message
    good = tmp_path / "good"
    for step in (10, 20):
        checkpoint(good / f"checkpoint-{step}", step=step)
    assert "RUN722" not in {f.code for f in judge(good).findings}


def named(path: Path, code: str) -> str | None:
    return next((f.message for f in judge(path).findings if f.code == code), None)


def test_a_file_of_zeros_is_no_model(tmp_path: Path) -> None:
    layers = {f"layers.{i}.weight": torch.zeros(4, 4) for i in range(3)} | {"head.weight": torch.ones(4, 4)}
    assert named(checkpoint(tmp_path / "run", layers), "RUN727") == "3 of 4 matrices are exactly zero (layers.0.weight and 2 more)"


def test_placeholders_of_sharded_weights_are_no_model(tmp_path: Path) -> None:
    weights = {f"layers.{i}.weight": torch.empty(0) for i in range(3)} | {"head.bias": torch.ones(4)}
    assert named(checkpoint(tmp_path / "run", weights), "RUN727") == "3 of 4 tensors are empty (layers.0.weight and 2 more)"


def test_a_zero_layer_among_others_is_meant(tmp_path: Path) -> None:
    weights = {"zero_conv.weight": torch.zeros(4, 4), "a.weight": torch.ones(4, 4), "b.weight": torch.ones(4, 4), "bias": torch.zeros(4)}
    assert named(checkpoint(tmp_path / "run", weights), "RUN727") is None


def test_a_scale_that_fell_to_nothing_is_told_as_a_symptom(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "run", args={"fp16": True}, scaler={"scale": 2.0**-30, "_growth_tracker": 0, "growth_interval": 2000})
    finding = next(f for f in judge(path).findings if f.code == "RUN703")
    assert finding.remedy is not None
    assert finding.remedy.text.startswith("Find what makes the gradients non-finite")


def test_skips_of_a_broken_run_are_not_called_normal(tmp_path: Path) -> None:
    broken = rows(loss=[4.0, 3.9, NAN, NAN], grad_norm=[1.0, 1.0, NAN, NAN])
    path = checkpoint(
        tmp_path / "run", args={"fp16": True}, scaler=scaled(4096.0), moments=(torch.ones(4), torch.ones(4)), taken=2, step=4, log=broken
    )
    assert named(path, "RUN719") == "2 optimizer steps of 4: 2 (50%) skipped by the loss scaler, of which those of the broken steps are no search"
    assert all("normal" not in f.message for f in judge(path).findings)
