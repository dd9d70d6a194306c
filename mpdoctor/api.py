"""The public Python API, and the only place where the slices meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpdoctor.check.checkpoint import CheckpointFacts
    from mpdoctor.check.pipeline import Options as CheckOptions
    from mpdoctor.check.repair import Repair
    from mpdoctor.core.device import GpuInfo
    from mpdoctor.core.progress import Progress
    from mpdoctor.core.report import Report
    from mpdoctor.replay.live.in_loop import LoopTrace
    from mpdoctor.replay.report import ReplayReport
    from mpdoctor.settings import Settings


def run_check(
    paths: Sequence[str],
    *,
    gpus: Sequence[str] = (),
    dialect: str | None = None,
    framework_version: str | None = None,
    launch: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    baseline: str | None = None,
    settings: Settings | None = None,
    ignore_unknown: bool = False,
) -> Report:
    """Judge configs, scripts and checkpoint folders before a run starts.

    Args:
        paths: files, folders, or `-` for stdin. Files of one run are judged together.
        gpus: the cards that the run is for: names (`v100`), compute capabilities (`7.5`) or `auto`; empty when unknown.
        dialect: take the trainer's config for this dialect instead of recognising it.
        framework_version: for defaults and spellings (`4`, `5.24`).
        launch: the words of a launch line (`torchrun train.py --fp16`), judged with the files.
        select: codes, prefixes or slugs of the rules to run; empty for all.
        ignore: those not to run.
        baseline: file of known findings, which are left out.
        settings: the user's settings file, as `mpdoctor.settings.find_settings` reads it; arguments win over it.
        ignore_unknown: pass over files that are no training config or cannot be read, and judge each of the others by itself; for a list of
            files that a hook gives.

    Raises MpdoctorError for an input that cannot be read.
    """
    from mpdoctor.check.report import report_on

    return report_on(paths, _check_options(gpus, dialect, framework_version, launch, select, ignore, baseline, settings, ignore_unknown))


def plan_repairs(
    paths: Sequence[str],
    *,
    gpus: Sequence[str] = (),
    dialect: str | None = None,
    framework_version: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    baseline: str | None = None,
    settings: Settings | None = None,
    ignore_unknown: bool = False,
) -> list[Repair]:
    """What `check` would change in the configs to repair what can be repaired safely. Nothing is written; arguments as for `run_check`."""
    from mpdoctor.check.pipeline import check_files
    from mpdoctor.check.repair import repairs

    result = check_files(paths, _check_options(gpus, dialect, framework_version, (), select, ignore, baseline, settings, ignore_unknown))
    return repairs(result.findings, result.documents)


def _check_options(
    gpus: Sequence[str],
    dialect: str | None,
    framework_version: str | None,
    launch: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    baseline: str | None,
    settings: Settings | None,
    ignore_unknown: bool = False,
) -> CheckOptions:
    from mpdoctor.check.pipeline import Options
    from mpdoctor.check.suppress import read_baseline
    from mpdoctor.check.thresholds import Thresholds

    names = tuple(gpus) or (settings.gpu if settings else ())
    cards: tuple[GpuInfo, ...] = ()
    if names:
        from mpdoctor.gpu.fleet import resolve_gpus

        cards = resolve_gpus(names)
    known = baseline or (settings.baseline if settings else None)
    return Options(
        dialect=dialect,
        version=framework_version,
        gpus=cards,
        select=tuple(select) or (settings.select if settings else ()),
        ignore=(*ignore, *(settings.ignore if settings else ())),
        launch=tuple(launch),
        thresholds=Thresholds(**settings.thresholds) if settings else Thresholds(),
        severity=settings.severity if settings else {},
        baseline=read_baseline(known) if known else frozenset(),
        checkpoint_reader=_checkpoint_facts,
        ignore_unknown=ignore_unknown,
    )


def _checkpoint_facts(folder: str) -> CheckpointFacts:
    """A checkpoint folder's metadata, as far as it is readable: what is broken is for `replay` to tell."""
    from mpdoctor.check.checkpoint import CheckpointFacts
    from mpdoctor.replay.checkpoints import Role, open_checkpoint

    opened = open_checkpoint(Path(folder))
    dtypes: dict[Role, dict[str, int]] = {Role.WEIGHT: {}, Role.ADAPTER: {}}
    places: dict[Role, str] = {}
    for tensor in opened.tensors:
        if tensor.role in dtypes:
            dtypes[tensor.role][tensor.dtype] = dtypes[tensor.role].get(tensor.dtype, 0) + tensor.numel
            places.setdefault(tensor.role, tensor.file.as_posix())
    state = opened.trainer_state or {}
    log = state.get("log_history")
    scale = (opened.scaler or {}).get("scale")
    arguments, scaler, history = (Path(folder) / name for name in ("training_args.bin", "scaler.pt", "trainer_state.json"))
    return CheckpointFacts(
        settings=(opened.training_args or {}) if arguments.exists() else {},
        settings_file=arguments.as_posix() if arguments.exists() else "",
        log=tuple(entry for entry in log if isinstance(entry, dict)) if isinstance(log, list) else (),
        log_file=history.as_posix() if history.exists() else "",
        weights=dtypes[Role.WEIGHT],
        adapters=dtypes[Role.ADAPTER],
        scale=float(scale) if isinstance(scale, int | float) else None,
        weights_file=places.get(Role.WEIGHT) or places.get(Role.ADAPTER) or "",
        scaler_file=scaler.as_posix() if scaler.exists() else "",
    )


def run_gpu(
    *,
    gpus: Sequence[str] = (),
    require: Sequence[str] = (),
    torch: bool = False,
    limit: float = 30.0,
    sysroot: Path | None = None,
    kernel_log: Path | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Report:
    """Read the machine's devices, judge them, and say which precision to train in.

    Args:
        gpus: cards to judge instead of this machine's: names (`v100`), compute capabilities (`7.5`), UUIDs; `auto` stands for this machine's.
        require: formats that must be there: `bf16`, `fp8:native`, `bf16:emulated`.
        torch: ask the installed torch too; it is imported in a process of its own.
        limit: seconds that the vendors' libraries may take.
        sysroot: a recorded machine: `/sys`, `/proc` and `/var/log` are looked for there, and NVML is not asked.
        kernel_log: a file with the kernel log (`dmesg > FILE`) instead of the kernel's own buffer.
        select: codes, prefixes or slugs of the rules to run; empty for all.
        ignore: those not to run.

    Raises UsageError for an unknown GPU or requirement, UnreadableInput for a file or folder that is not there. What a driver does never raises.
    """
    from dataclasses import replace

    from mpdoctor.core.errors import UnreadableInput, UsageError
    from mpdoctor.gpu.examine import examine
    from mpdoctor.gpu.probe import HERE, of_named, probe
    from mpdoctor.gpu.require import parse

    required = parse(require)
    if sysroot is not None and not sysroot.is_dir():
        raise UnreadableInput(f"{sysroot}: no such folder", "give the folder that holds the recorded sys/ and proc/")
    if kernel_log is not None and not kernel_log.is_file():
        raise UnreadableInput(f"{kernel_log}: no such file", "write one with: dmesg > FILE")
    if any(name.strip().lower() != "auto" for name in gpus):
        from mpdoctor.gpu.fleet import resolve_gpus

        if sysroot is not None or kernel_log is not None:
            raise UsageError("--gpu NAME judges a card that need not be here; --sysroot and --kernel-log read a machine", "give one or the other")
        wanted = resolve_gpus(gpus)
        here = all(gpu.source != "table" for gpu in wanted)
        machine = replace(probe(limit=limit), gpus=wanted, visible=None) if here else of_named(wanted)
    else:
        machine = probe(limit=limit, root=sysroot or HERE, log=kernel_log)
    if torch:
        from mpdoctor.gpu.torch_probe import ask

        machine = replace(machine, torch_says=ask())
    return examine(replace(machine, required=required), select=select, ignore=ignore)


def run_replay(
    checkpoint: Path | str | None = None,
    *,
    recipe: Path | str | None = None,
    base_model: Path | str | None = None,
    config: Path | str | None = None,
    data: Path | str | None = None,
    steps: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    experiments: str = "auto",
    trace: Path | str | None = None,
    budget: float | None = None,
    trust_remote_code: bool = False,
    gpus: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    progress: Progress | None = None,
) -> ReplayReport:
    """Replay a run's failing steps and prove the cause by experiment.

    Args:
        checkpoint: a checkpoint folder or file, or a log.
        recipe: a Python file that builds the run (any model).
        base_model: the folder of the base model, for an adapter whose own base is not a local folder.
        config: the run's config, judged together with the replay.
        data: training data for a checkpoint whose model can be built.
        steps: steps to run; None until the failure shows or the batches end.
        device: `auto` (the GPU where there is one), `cpu` or `cuda`.
        precision: `auto` takes the run's own; or `fp32`, `bf16`, `fp16`.
        experiments: `auto`, `all` or `none`.
        trace: file to write the recording to (JSON lines, or parquet by its ending). With neither checkpoint nor recipe: the recording to
            judge, without torch and without experiments of its own.
        budget: seconds for everything.
        trust_remote_code: run the model code that a checkpoint folder itself carries.
        gpus: cards that the run is for.
        select: codes, prefixes or slugs of the detectors to run; empty for all.
        ignore: those not to run.
        progress: told of what is being done.

    The report is also a set of tables: `report.to_frame("steps" | "events" | "tensors" | "modules" | "experiments")`.

    Raises MpdoctorError for inputs that cannot be read.
    """
    from dataclasses import replace

    from mpdoctor.core.progress import SILENT
    from mpdoctor.gpu.fleet import resolve_gpus
    from mpdoctor.replay.options import Options
    from mpdoctor.replay.pipeline import replay

    def path(value: Path | str | None) -> Path | None:
        return Path(value) if value is not None else None

    options = Options(
        checkpoint=path(checkpoint),
        recipe=path(recipe),
        base_model=path(base_model),
        data=path(data),
        steps=steps,
        device=device,
        precision=precision,
        experiments=experiments,
        trace=path(trace),
        budget=budget,
        trust_remote_code=trust_remote_code,
        gpus=resolve_gpus(tuple(gpus)) if gpus else (),
        select=tuple(select),
        ignore=tuple(ignore),
    )
    report = replay(options, progress or SILENT)
    if config is None:
        return report
    checked = run_check([str(config)], gpus=gpus)
    return replace(
        report, findings=(*report.findings, *checked.findings), config=report.config | checked.config, inputs=(*report.inputs, *checked.inputs)
    )


def trace(model: Any, *, optimizer: Any = None, batch: Any = None, step: int = 0) -> LoopTrace:
    """Trace one training step of a loop of your own, op by op.

        with mpdoctor.trace(model, optimizer=optimizer, batch=batch) as step:
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
        print(step)          # or step.origin, step.timeline, step.to_frame("events")

    Args:
        model: a `torch.nn.Module`: its parameters and buffers are recognised, its modules named.
        optimizer: its ops are read too, and what it changes is measured; without it they are not looked at.
        batch: what the step reads, so that a bad value in it is named and rows are told.
        step: the step's number, for display.

    Raises MissingDependency without torch.
    """
    from importlib.util import find_spec

    from mpdoctor.core.errors import MissingDependency

    if find_spec("torch") is None:
        raise MissingDependency("a trace needs torch, which is not installed", "pip install 'mpdoctor[replay]'")
    from mpdoctor.replay.live.in_loop import LoopTrace

    return LoopTrace(model, optimizer=optimizer, batch=batch, step=step)
