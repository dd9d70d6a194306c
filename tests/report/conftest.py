"""Hand-built reports that together use every part of the vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from mpdoctor.core.cause import Headline, Standing, Verdict
from mpdoctor.core.device import FormatSupport, GpuInfo, Reading, Support
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Finding, Remedy, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import DeviceRef, FileSpan, Phase, TensorSite
from mpdoctor.core.report import (
    ExperimentOutcome,
    ExperimentResult,
    InputFile,
    NonFinite,
    Report,
    StepRecord,
    Symptom,
    SymptomId,
    TimelineEntry,
)
from mpdoctor.core.rule import Crash, Skipped

BF16 = Remedy(
    text="Train in bf16 where the GPU has it (compute capability 8.0 and later); otherwise keep the overflowing module in fp32.",
    patch="--- train.yaml\n+++ train.yaml\n@@ -7 +7 @@\n-fp16: true\n+bf16: true\n",
)


def fact(text: str, kind: EvidenceKind = EvidenceKind.TRACE) -> Evidence:
    return Evidence(text=text, kind=kind)


def site(phase: Phase, module: str = "", op: str | None = None, *, tensor: str | None = None, line: int | None = None) -> TensorSite:
    return TensorSite(step=3, phase=phase, module=module, op=op, tensor=tensor, source=FileSpan(file="train.py", line=line) if line else None)


def overflow() -> Report:
    origin = site(Phase.FORWARD, "blocks.1.wo", "aten.mm", line=12)
    why = "the exact value 66246 exceeds fp16's 65504"
    return Report(
        command="replay",
        outcome=Outcome.DIAGNOSED,
        headline=Headline(
            cause="fp16-range",
            standing=Standing.CONFIRMED,
            text=f"aten.mm in blocks.1.wo overflows fp16 in step 3: {why}, and bf16 holds it. {BF16.text}",
        ),
        verdicts=(
            Verdict(
                cause="learning-rate",
                standing=Standing.RULED_OUT,
                evidence=(fact("the failure is the same with a tenth of the learning rate", EvidenceKind.EXPERIMENT),),
            ),
            Verdict(
                cause="loss-scaling",
                standing=Standing.RULED_OUT,
                evidence=(fact("the value is bad in the forward pass, before any gradient exists"),),
            ),
            Verdict(
                cause="fp16-range",
                standing=Standing.CONFIRMED,
                evidence=(
                    fact(f"aten.mm in blocks.1.wo overflows fp16 in step 3: {why}"),
                    fact("EXP301 bf16 instead of fp16: all 4 steps are finite, loss 2.31", EvidenceKind.EXPERIMENT),
                ),
                remedy=BF16,
            ),
            Verdict(
                cause="dirty-data",
                standing=Standing.UNTESTED,
                evidence=(fact("batches were made up: no data was given; to test it: mpdoctor replay CHECKPOINT --data FILE"),),
            ),
            Verdict(
                cause="model-numerics",
                standing=Standing.POSSIBLE,
                evidence=(fact("LayerNorm's eps of 1e-12 is 0 in fp16"),),
                remedy=Remedy(text="Use an eps of 1e-5."),
            ),
        ),
        symptoms=(
            Symptom(id=SymptomId.LOSS_NONFINITE, step=3, detail="the loss is nan"),
            Symptom(id=SymptomId.GRAD_NONFINITE, step=3, detail="118 of 124 gradients hold nan"),
        ),
        first_nonfinite=NonFinite(
            site=origin,
            kind="inf",
            dtype="float16",
            harmful=True,
            why=why,
            rows=(0, 1, 2, 5),
            hurts_at=site(Phase.LOSS, op="aten.nll_loss_forward", line=31),
        ),
        findings=(
            Finding(
                code="RUN101",
                slug="fp16-overflow",
                severity=Severity.ERROR,
                confidence=Confidence.HIGH,
                message=f"aten.mm in blocks.1.wo overflows fp16: {why}",
                location=origin,
                cause="fp16-range",
                evidence=(fact("in fp32 and fp64 the same inputs give 66246.2"),),
                remedy=BF16,
            ),
            Finding(
                code="RUN305",
                slug="norm-eps-below-fp16",
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                message="LayerNorm's eps of 1e-12 is 0 in fp16",
                location=site(Phase.FORWARD, "blocks.1.norm"),
                cause="model-numerics",
            ),
        ),
        experiments=(
            ExperimentResult(
                id="EXP101",
                slug="learning-rate-tenth",
                changes="learning rate x 0.1",
                outcome=ExperimentOutcome.SAME_FAILURE,
                detail="inf in blocks.1.wo in step 3 again",
                causes=("learning-rate",),
                seconds=1.84,
            ),
            ExperimentResult(
                id="EXP301",
                slug="bf16",
                changes="bf16 instead of fp16",
                outcome=ExperimentOutcome.FAILURE_GONE,
                detail="all 4 steps are finite, loss 2.31",
                causes=("fp16-range",),
                seconds=2.11,
            ),
            ExperimentResult(
                id="EXP401",
                slug="drop-failing-batch",
                changes="without the failing batch",
                outcome=ExperimentOutcome.NOT_RUN,
                detail="batches were made up",
                causes=("dirty-data",),
            ),
        ),
        steps=(
            *(
                StepRecord(step=s, loss=2.9 - 0.15 * s, grad_norm=1.1 + 0.1 * s, scale=65536.0, lr=1e-4, skipped=False, source="history")
                for s in range(-6, 3)
            ),
            StepRecord(step=3, loss=math.nan, grad_norm=math.inf, scale=32768.0, lr=1e-4, skipped=True),
        ),
        timeline=(
            TimelineEntry(site=site(Phase.INPUT, tensor="input_ids"), note="", dtype="int64", amax=50256),
            TimelineEntry(site=site(Phase.FORWARD, "blocks.0.wo", "aten.mm"), note="", dtype="float16", amax=812.5),
            TimelineEntry(site=origin, note=f"first bad value: {why}", marker="origin", dtype="float16", amax=math.inf),
            TimelineEntry(
                site=site(Phase.FORWARD, "blocks.1.norm", "aten.var_mean"), note="inf - inf is nan", marker="spread", dtype="float16", amax=math.nan
            ),
            TimelineEntry(
                site=site(Phase.LOSS, op="aten.nll_loss_forward", line=31), note="the loss is nan", marker="harm", dtype="float32", amax=math.nan
            ),
            TimelineEntry(site=site(Phase.BACKWARD, "head", "MmBackward0"), note="", marker="spread", dtype="float16", amax=math.nan),
            TimelineEntry(site=site(Phase.OPTIMIZER), note="the scaler skips the step", dtype=None, amax=None),
        ),
        measurements={
            "loss_scale_window": {"low": 1024.0, "high": 32768.0, "used": 65536.0},
            "gradient_exponents": [
                {"name": "all", "zeros": 12, "counts": {str(e): int(4000 * math.exp(-(((e + 14) / 6) ** 2))) + 1 for e in range(-34, 3)}},
                {"name": "blocks.1.wo.weight", "zeros": 0, "counts": {str(e): 40 - abs(e + 12) for e in range(-40, 6)}},
            ],
            "module_amax": [
                {"step": s, "phase": phase, "module": m, "dtype": "float16", "amax": a * (2.0**s), "nonfinite": 0}
                for s in (1, 2)
                for phase in ("forward", "backward")
                for m, a in (("embed", 3.2), ("blocks.0.wo", 203.0), ("blocks.1.wo", 8200.0), ("blocks.1.norm", 4.0))
            ]
            + [{"step": 3, "phase": "forward", "module": "blocks.1.wo", "dtype": "float16", "amax": "inf", "nonfinite": 17}],
            "lost_updates": {"share": 0.013, "lr_at_which_half_would_survive": 3e-6},
            "gradients": [
                {"name": "embed.weight", "dtype": "float32", "grad_norm": 0.02, "grad_amax": 0.001, "grad_zero_share": 0.5, "changed_share": 0.0},
                {"name": "head.weight", "dtype": "float32", "grad_norm": math.nan, "grad_amax": 0.0, "grad_zero_share": 0.0, "changed_share": None},
                {"name": "unused.weight", "dtype": "float32", "grad_norm": None, "grad_amax": None, "grad_zero_share": None, "changed_share": None},
            ],
            "flops_share_by_dtype": {"float16": 0.91, "float32": 0.09},
        },
        skipped=(
            Skipped(what="EXP401", why="batches were made up"),
            Skipped(what="EXP402", why="batches were made up"),
            Skipped(what="RUN601", why="unknown: clip_norm"),
            Skipped(what="EXP501 clip-after-unscale", why="no clipping of scaled gradients", needless=True),
            Skipped(what="EXP602 fp32-master-weights", why="the weights are fp32", needless=True),
        ),
        config={"lr": {"value": 1e-4, "origin": "explicit", "file": "training_args.bin", "line": None}},
        gpus=(gpu(),),
        inputs=(InputFile(path="runs/gpt/checkpoint-400", role="checkpoint"),),
        environment={
            "torch": "2.13.0",
            "device": "cpu",
            "emulated": "CUDA's autocast lists, fp16 matrix products",
            "baseline": "ran twice, bitwise equal",
        },
        notes=("One skipped step early in a run is normal: the scaler searches for its scale.",),
    )


def gpu() -> GpuInfo:
    return GpuInfo(
        ref=DeviceRef(name="Tesla V100-SXM2-16GB", index=0, uuid="GPU-6c2f"),
        vendor="nvidia",
        source="nvml",
        compute_capability=Reading((7, 0)),
        architecture=Reading("Volta"),
        formats=FormatSupport(
            fp16=Support.TENSOR_CORES,
            bf16=Support.EMULATED,
            tf32=Support.NONE,
            fp8=Support.NONE,
            fp4=Support.NONE,
            notes=("bf16 is slower than fp32 here",),
        ),
        metrics={"memory_total_bytes": Reading(17179869184), "ecc_uncorrected": Reading(None, "no permission")},
    )


def healthy() -> Report:
    return Report(
        command="replay",
        outcome=Outcome.HEALTHY,
        headline=Headline(cause=None, standing=None, text="20 steps ran without a failure."),
        verdicts=tuple(
            Verdict(cause=cause, standing=Standing.RULED_OUT, evidence=(fact("20 steps ran without a failure"),))
            for cause in ("learning-rate", "loss-scaling", "fp16-range", "dirty-data")
        ),
        steps=tuple(StepRecord(step=s, loss=3.0 - s / 20, grad_norm=1.0, lr=1e-4, skipped=s == 2) for s in range(4)),
        environment={"torch": "2.13.0", "device": "cpu"},
    )


def checked() -> Report:
    return Report(
        command="check",
        outcome=Outcome.DIAGNOSED,
        headline=Headline(cause="fp16-range", standing=Standing.LIKELY, text=f"bf16 is emulated on a Tesla V100. {BF16.text}"),
        verdicts=(
            Verdict(
                cause="learning-rate",
                standing=Standing.POSSIBLE,
                evidence=(fact("lr 0.01 is above 1e-3 for AdamW", EvidenceKind.CONFIG),),
                remedy=Remedy(text="Lower it."),
            ),
            Verdict(cause="loss-scaling", standing=Standing.RULED_OUT, evidence=(fact("bf16 needs no loss scale", EvidenceKind.CONFIG),)),
            Verdict(
                cause="fp16-range", standing=Standing.LIKELY, evidence=(fact("bf16 is emulated on a Tesla V100", EvidenceKind.CONFIG),), remedy=BF16
            ),
            Verdict(cause="dirty-data", standing=Standing.UNTESTED, evidence=(fact("a config does not show the data"),)),
        ),
        findings=(
            Finding(
                code="CFG101",
                slug="bf16-pre-ampere",
                severity=Severity.ERROR,
                confidence=Confidence.HIGH,
                message="bf16 is emulated on a Tesla V100 (compute capability 7.0): slower than fp32",
                location=FileSpan(file="configs/train.yaml", line=7, column=7, key="bf16"),
                cause="fp16-range",
                remedy=Remedy(text="Use fp16 with a dynamic loss scale.", patch="-bf16: true\n+fp16: true\n"),
                related=(FileSpan(file="configs/ds_config.json", line=3, key="bf16.enabled"),),
                identity="true",
            ),
            Finding(
                code="CFG301",
                slug="learning-rate-high",
                severity=Severity.WARNING,
                confidence=Confidence.LOW,
                message="lr 0.01 is above 1e-3 for AdamW",
                location=FileSpan(file="configs/train.yaml", line=3, key="learning_rate"),
                cause="learning-rate",
            ),
            Finding(
                code="CFG901",
                slug="number-read-as-text",
                severity=Severity.INFO,
                confidence=Confidence.HIGH,
                message="1e-4 is text in YAML 1.1: write 1.0e-4",
                location=FileSpan(file="configs/ds_config.json", line=9, key="lr"),
                evidence=(fact("PyYAML reads '1e-4' as a string", EvidenceKind.CONFIG),),
            ),
            Finding(
                code="GPU203",
                slug="driver-old",
                severity=Severity.WARNING,
                confidence=Confidence.HIGH,
                message="driver 450 has no fp8",
                location=gpu().ref,
            ),
        ),
        skipped=(Skipped(what="CFG120", why="unknown: n_params"), Skipped(what="CFG121", why="unknown: n_params")),
        crashes=(Crash(what="CFG777", error="KeyError: 'lr'", traceback="Traceback (most recent call last):\n  ...\nKeyError: 'lr'\n"),),
        inputs=(InputFile(path="configs/train.yaml", role="config"), InputFile(path="configs/ds_config.json", role="config")),
    )


def not_judged() -> Report:
    return Report(
        command="check",
        outcome=Outcome.COULD_NOT_JUDGE,
        headline=Headline(cause=None, standing=None, text="No training config was recognised in docker-compose.yml."),
        skipped=(Skipped(what="docker-compose.yml", why="no dialect claims it; --dialect NAME names one"),),
        inputs=(InputFile(path="docker-compose.yml", role="config"),),
    )


def machine() -> Report:
    return Report(
        command="gpu",
        outcome=Outcome.HEALTHY,
        headline=Headline(cause=None, standing=None, text="Tesla V100: train in fp16 with a loss scaler"),
        verdicts=(Verdict(cause="learning-rate", standing=Standing.UNTESTED, evidence=(fact("gpu looks at no run", EvidenceKind.DEVICE),)),),
        findings=(
            Finding(
                code="GPU211",
                slug="bf16-emulated",
                severity=Severity.INFO,
                confidence=Confidence.HIGH,
                message="bf16 is only emulated here",
                location=gpu().ref,
            ),
        ),
        gpus=(gpu(),),
        recommendation={
            "text": "fp16 with a loss scaler",
            "settings": {"HF Trainer": "TrainingArguments(fp16=True)"},
            "devices": [{"index": 0, "name": "Tesla V100-SXM2-16GB", "text": "fp16 with a loss scaler"}],
        },
    )


def hostile() -> Report:
    """Names out of other people's files may hold anything."""
    nasty = "\x1b[31mred\x1b[0m [bold]x[/bold] <script>alert(1)</script> \u202egnp.exe | a\r\nb ::error::%0A ]]> \U0001f600"
    return Report(
        command="check",
        outcome=Outcome.UNDIAGNOSED,
        headline=Headline(cause=None, standing=None, text=nasty),
        findings=(
            Finding(
                code="CFG101",
                slug="bf16-pre-ampere",
                severity=Severity.ERROR,
                confidence=Confidence.HIGH,
                message=nasty,
                location=FileSpan(file=f"{nasty}.yaml", line=1, key=nasty),
                remedy=Remedy(text=nasty, patch=nasty),
            ),
        ),
        skipped=(Skipped(what=nasty, why=nasty),),
        notes=(nasty,),
        environment={nasty: [nasty, {"a": math.inf}]},
        inputs=(InputFile(path=nasty, role="config"),),
    )


def empty() -> Report:
    return Report(command="replay", outcome=Outcome.UNDIAGNOSED, headline=Headline(cause=None, standing=None, text=""))


REPORTS: dict[str, Callable[[], Report]] = {
    "overflow": overflow,
    "healthy": healthy,
    "checked": checked,
    "not-judged": not_judged,
    "machine": machine,
    "hostile": hostile,
    "empty": empty,
}


@pytest.fixture(params=REPORTS)
def report(request: pytest.FixtureRequest) -> Report:
    """Each of the reports in turn."""
    return REPORTS[request.param]()


@pytest.fixture
def reports() -> dict[str, Report]:
    """All reports by name."""
    return {name: build() for name, build in REPORTS.items()}
