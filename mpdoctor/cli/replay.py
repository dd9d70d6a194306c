"""`mpdoctor replay`: re-run the step that failed, find the first bad tensor, prove the cause."""

from __future__ import annotations

import gc
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli import USUAL_PACE
from mpdoctor.cli.deliver import deliver
from mpdoctor.cli.options import ReportOptions, with_report_options
from mpdoctor.cli.progress import shown
from mpdoctor.core.errors import UsageError


class Device(StrEnum):
    """`--device`."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Precision(StrEnum):
    """`--precision`."""

    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


class Experiments(StrEnum):
    """`--experiments`."""

    AUTO = "auto"
    ALL = "all"
    NONE = "none"


@with_report_options
def replay(
    checkpoint: Annotated[
        Path | None, typer.Argument(metavar="[CHECKPOINT]", help="A checkpoint folder or file. Never modified, never unpickled.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(metavar="FILE.py", help="How to build the model, the batches and the loss (any model).")] = None,
    base_model: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Base model of an adapter, where adapter_config.json names no folder.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="The run's config, when the checkpoint does not carry it.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Training data: jsonl, json, csv, parquet, arrow, txt, or a .pt batch.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Steps to run; without it until the failure shows or the batches end.")
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to run. A CPU emulates CUDA's autocast lists.")] = Device.AUTO,
    precision: Annotated[Precision, typer.Option(help="Precision of the replay; auto takes the run's own.")] = Precision.AUTO,
    experiments: Annotated[Experiments, typer.Option(help="What-if runs: those that separate the open causes, all, or none.")] = Experiments.AUTO,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write what was recorded (.jsonl, .parquet). Without CHECKPOINT and recipe: judge that recording."),
    ] = None,
    budget: Annotated[float | None, typer.Option(min=1, metavar="SECONDS", help="Stop after this time and report what is known.")] = None,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run model code that the checkpoint folder itself carries.")] = False,
    *,
    options: ReportOptions,
) -> int:
    """Re-run the steps that failed: which tensor went bad first, and which single change makes the failure go away?

    Exit codes: 0 healthy, 1 a failure (diagnosed or not), 2 an input that cannot be read, 3 nothing to replay or not reproduced, 4 a bug.

    Example: mpdoctor replay runs/checkpoint-400 --data train.jsonl
    """
    if checkpoint is None and recipe is None and trace is None:
        raise UsageError(
            "nothing to replay: neither a checkpoint nor a recipe nor a recorded trace is given",
            "mpdoctor replay CHECKPOINT, or --recipe FILE.py, or --trace FILE.jsonl",
        )
    gc.set_threshold(*USUAL_PACE)
    from mpdoctor import api

    with shown(quiet=options.quiet, color=options.color) as progress:
        report = api.run_replay(
            checkpoint=checkpoint,
            recipe=recipe,
            base_model=base_model,
            config=config,
            data=data,
            steps=steps,
            device=device.value,
            precision=precision.value,
            experiments=experiments.value,
            trace=trace,
            budget=budget,
            trust_remote_code=trust_remote_code,
            gpus=tuple(options.gpu),
            select=options.selected,
            ignore=options.ignored,
            progress=progress,
        )
    return deliver(report, options)
