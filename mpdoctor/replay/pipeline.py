"""From a checkpoint, a log or a recipe to a report.

Files are judged without torch; where a model can be built, its steps are replayed (`live`). torch is imported only then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.causes.checklist import headline, verdicts, without_failure
from mpdoctor.core.cause import Headline, Standing, Verdict
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.errors import MissingDependency, UnreadableInput
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.progress import SILENT, Progress
from mpdoctor.core.report import InputFile, Report, StepRecord, Symptom, SymptomId
from mpdoctor.core.rule import RuleRun, Skipped, selected
from mpdoctor.core.trace import Recording
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, judge_checkpoint
from mpdoctor.replay.checkpoints import Checkpoint, open_checkpoint, settings_from
from mpdoctor.replay.history import History, read_history
from mpdoctor.replay.trace_file import write_trace

if TYPE_CHECKING:
    from mpdoctor.replay.live.diagnosis import Diagnosis
    from mpdoctor.replay.live.session import SessionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `mpdoctor replay` was asked for. See `mpdoctor replay --help`."""

    checkpoint: Path | None = None
    recipe: Path | None = None
    data: Path | None = None
    steps: int | None = None
    device: str = "auto"
    precision: str = "auto"
    experiments: str = "auto"
    trace: Path | None = None
    budget: float | None = None
    gpus: tuple[GpuInfo, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    trust_remote_code: bool = False


def replay(options: Options, progress: Progress = SILENT) -> Report:
    """Judge what is there, replay what can be replayed, and report.

    Raises:
        UnreadableInput: an input is missing, damaged, or not what it should be.
        MissingDependency: a model is to be replayed and torch (or transformers) is not installed.
    """
    evidence, judged = _judge_files(options, progress)
    source, why_not = _session_source(options, evidence)
    if source is None:
        return _report_on_files(options, evidence, judged, why_not)
    diagnosis = _diagnose(source, options, judged, progress)
    if options.trace is not None:
        write_trace(diagnosis.recording, options.trace)
    return _report_on_replay(options, evidence, judged, diagnosis)


# -- files


def _judge_files(options: Options, progress: Progress) -> tuple[CheckpointEvidence, RuleRun]:
    """Autopsy and log of the checkpoint, without torch."""
    empty = RuleRun((), (), (), ())
    if options.checkpoint is None:
        return CheckpointEvidence(), empty
    history: History | None = None
    checkpoint: Checkpoint | None = None
    try:
        checkpoint = open_checkpoint(options.checkpoint)
        history = read_history(checkpoint)
    except UnreadableInput as no_checkpoint:
        if not options.checkpoint.is_file():
            raise
        try:
            history = read_history(options.checkpoint)
        except UnreadableInput:
            raise no_checkpoint from None
    result = autopsy(checkpoint, progress=_bytes_read(progress)) if checkpoint is not None else None
    evidence = CheckpointEvidence(checkpoint=checkpoint, autopsy=result, history=history)
    judged = judge_checkpoint(evidence)
    keep = tuple(f for f in judged.findings if selected(f.code, f.slug, select=options.select, ignore=options.ignore))
    return evidence, replace_findings(judged, keep)


def _bytes_read(progress: Progress) -> Callable[[int, int, str], None]:
    """The autopsy's progress, in MiB."""
    started = False
    shown = 0

    def read(done: int, total: int, file: str) -> None:
        nonlocal started, shown
        if not started:
            progress.start("reading tensors (MiB)", max(1, total >> 20))
            started = True
        progress.advance((done >> 20) - shown)
        shown = done >> 20
        progress.note(file)

    return read


def replace_findings(judged: RuleRun, findings: tuple[Finding, ...]) -> RuleRun:
    """The same run of rules with other findings."""
    return RuleRun(findings, judged.exclusions, judged.skipped, judged.crashes)


def _session_source(options: Options, evidence: CheckpointEvidence) -> tuple[SessionSource | None, str]:
    """Where sessions come from, or why there is none."""
    checkpoint = evidence.checkpoint
    if options.recipe is None and (checkpoint is None or not checkpoint.config.get("architectures")):
        return None, "the model cannot be built from these files; a recipe (--recipe FILE.py) would let mpdoctor replay the failing steps"
    if find_spec("torch") is None:
        if options.recipe is None:
            return None, "torch is not installed; with it (pip install 'mpdoctor[replay,hf]') mpdoctor would replay the next steps"
        raise MissingDependency("a replay needs torch, which is not installed", "pip install 'mpdoctor[replay]'")
    from mpdoctor.replay.live.recipe import RecipeSource
    from mpdoctor.replay.live.weights import load_states

    if options.recipe is not None:
        state = load_states(checkpoint) if checkpoint is not None else None
        return RecipeSource(options.recipe, steps=options.steps, state=state), ""
    assert checkpoint is not None
    if find_spec("transformers") is None:
        return None, "transformers is not installed; with it (pip install 'mpdoctor[hf]') mpdoctor would build the model and replay the next steps"
    from mpdoctor.replay.live.hf_checkpoint import HfCheckpointSource, cannot_build

    obstacle = cannot_build(checkpoint, trust_remote_code=options.trust_remote_code)
    if obstacle is not None:
        return None, obstacle
    source = HfCheckpointSource(
        checkpoint,
        data=options.data,
        steps=options.steps,
        precision=options.precision,
        gpus=options.gpus,
        trust_remote_code=options.trust_remote_code,
    )
    return source, ""


def _diagnose(source: SessionSource, options: Options, judged: RuleRun, progress: Progress) -> Diagnosis:
    from mpdoctor.replay.live.diagnosis import diagnose
    from mpdoctor.replay.live.process_state import BudgetSpent

    try:
        return diagnose(
            source,
            steps=options.steps,
            experiments=options.experiments,
            budget=options.budget,
            progress=progress,
            findings=judged.findings,
            exclusions=judged.exclusions,
            select=lambda code, slug: selected(code, slug, select=options.select, ignore=options.ignore),
        )
    except BudgetSpent:
        raise UnreadableInput(
            f"{source.name}: building the run took longer than the budget of {options.budget:g} s", "Give more time (--budget) or a smaller run."
        ) from None


# -- reports


def _report_on_files(options: Options, evidence: CheckpointEvidence, judged: RuleRun, why_not: str) -> Report:
    """The report of an autopsy, or of a log, alone."""
    untested = {cause: why_not.split(";")[0] for cause in ("learning-rate", "loss-scaling", "fp16-range", "dirty-data")}
    entries = verdicts(judged.findings, exclusions=judged.exclusions, untested=untested)
    serious = [f for f in judged.findings if f.severity is Severity.ERROR]
    leading_entry = headline(entries)
    if not serious and not judged.findings:
        outcome = Outcome.HEALTHY
        head = Headline(cause=None, standing=None, text="nothing wrong in the stored numbers; whether the next step fails, only a replay can tell")
    elif serious:
        likely = leading_entry.standing is not None and leading_entry.standing.rank >= Standing.LIKELY.rank
        outcome = Outcome.DIAGNOSED if likely else Outcome.UNDIAGNOSED
        head = leading_entry if leading_entry.cause else Headline(cause=None, standing=None, text=serious[0].message)
    else:
        outcome = Outcome.HEALTHY
        head = Headline(cause=None, standing=None, text=f"nothing broken in the stored numbers; {len(judged.findings)} remarks")
    return Report(
        command="replay",
        outcome=outcome,
        headline=head,
        verdicts=entries,
        symptoms=_symptoms_of_files(judged.findings),
        findings=judged.findings,
        steps=evidence.history.rows if evidence.history is not None else (),
        skipped=(Skipped(what="replay of the next steps", why=why_not), *judged.skipped),
        crashes=judged.crashes,
        config=_config(evidence),
        gpus=options.gpus,
        inputs=_inputs(options),
        environment=_environment(None),
        notes=_notes_of_files(evidence),
    )


def _report_on_replay(options: Options, evidence: CheckpointEvidence, judged: RuleRun, diagnosis: Diagnosis) -> Report:
    recording = diagnosis.recording
    findings = (*diagnosis.findings, *judged.findings)
    history = evidence.history.rows if evidence.history is not None else ()
    failed_before = [f for f in judged.findings if f.severity is Severity.ERROR]
    entries = _with_bf16_unused(diagnosis.verdicts, recording, options.gpus)
    notes = [*_notes_of_files(evidence), *diagnosis.notes, *_notes_of_replay(diagnosis)]
    if not recording.steps and recording.exception is None:
        outcome = Outcome.COULD_NOT_JUDGE
        head = Headline(cause=None, standing=None, text="no step could be run in the time given")
    elif not diagnosis.symptoms and not failed_before:
        outcome = Outcome.HEALTHY
        count = len(recording.steps)
        head = Headline(
            cause=None, standing=None, text=f"healthy: {count} step{'s' if count != 1 else ''} replayed, nothing wrong{_closing(recording)}"
        )
        entries = without_failure(entries, f"nothing failed in {count} replayed steps")
    elif not diagnosis.symptoms:
        head = headline(entries)
        outcome = Outcome.DIAGNOSED if head.standing is not None and head.standing.rank >= Standing.LIKELY.rank else Outcome.NOT_REPRODUCED
        if outcome is Outcome.NOT_REPRODUCED:
            head = replace(head, text=f"the checkpoint shows a failure that {len(recording.steps)} replayed steps do not: {failed_before[0].message}")
    else:
        head = headline(entries)
        known = head.standing is not None and head.standing.rank >= Standing.LIKELY.rank
        outcome = Outcome.DIAGNOSED if known else Outcome.UNDIAGNOSED
        if not known:
            head = replace(head, text=f"{diagnosis.symptoms[0].detail}; no cause is confirmed or likely" + (f". {head.text}" if head.cause else ""))
    trace = recording.trace
    return Report(
        command="replay",
        outcome=outcome,
        headline=head,
        verdicts=entries,
        symptoms=(*diagnosis.symptoms, *_symptoms_of_files(judged.findings)) if outcome is not Outcome.HEALTHY else (),
        first_nonfinite=trace.origin if trace is not None and recording.failing_step is not None else recording.initial_origin,
        findings=findings,
        experiments=diagnosis.experiments,
        steps=(*history, *_records(recording)),
        timeline=trace.timeline if trace is not None and recording.failing_step is not None else (),
        measurements=_measurements(diagnosis),
        skipped=(*diagnosis.skipped, *judged.skipped),
        crashes=(*diagnosis.crashes, *judged.crashes),
        config=_config(evidence),
        gpus=options.gpus,
        inputs=_inputs(options),
        environment=_environment(diagnosis),
        notes=tuple(notes),
    )


def _closing(recording: Recording) -> str:
    losses = [s.loss for s in recording.steps if s.loss is not None]
    return f" (loss {losses[0]:.4g} to {losses[-1]:.4g})" if len(losses) > 1 else ""


def _with_bf16_unused(entries: tuple[Verdict, ...], recording: Recording, gpus: Sequence[GpuInfo]) -> tuple[Verdict, ...]:
    """Say in the fp16-range entry that the card has bf16, when the run computes in fp16."""
    native = [g for g in gpus if g.formats.bf16.native]
    if "float16" not in recording.compute_dtypes or not gpus or len(native) < len(gpus):
        return entries
    fact = Evidence(text=f"{native[0].name} has native bf16, and the run does not use it", kind=EvidenceKind.DEVICE)
    changed = []
    for entry in entries:
        if entry.cause == "fp16-range":
            standing = (
                Standing.POSSIBLE
                if entry.standing in (Standing.UNTESTED, Standing.RULED_OUT) and recording.failing_step is not None
                else entry.standing
            )
            changed.append(replace(entry, standing=standing, evidence=(*entry.evidence, fact)))
        else:
            changed.append(entry)
    return tuple(changed)


def _symptoms_of_files(findings: Sequence[Finding]) -> tuple[Symptom, ...]:
    """Symptoms that the files alone show."""
    names = {"RUN701": SymptomId.WEIGHTS_NONFINITE, "RUN703": SymptomId.SCALER_STUCK, "RUN708": SymptomId.DTYPE_MISMATCH}
    found = [Symptom(id=names[f.code], detail=f.message) for f in findings if f.code in names and f.severity is Severity.ERROR]
    found += [Symptom(id=SymptomId.LOG_NONFINITE, detail=f.message) for f in findings if f.code.startswith("RUN8") and f.severity is Severity.ERROR]
    return tuple(found)


def _records(recording: Recording) -> tuple[StepRecord, ...]:
    return tuple(
        StepRecord(step=s.step, loss=s.loss, grad_norm=s.grad_norm, scale=s.scale, lr=s.lr, skipped=s.skipped, source="replay")
        for s in recording.steps
    )


def _measurements(diagnosis: Diagnosis) -> dict[str, Any]:
    """Numbers by name, plain values."""
    recording = diagnosis.recording
    found: dict[str, Any] = {}
    if recording.window is not None:
        w = recording.window
        found["loss_scale_window"] = {"low": w.low, "high": w.high, "used": w.used, "empty": w.empty}
    if recording.gradient_exponents:
        found["gradient_exponents"] = [
            {"name": e.name, "zeros": e.zeros, "counts": {str(exponent): n for exponent, n in e.counts.items()}} for e in recording.gradient_exponents
        ]
    if recording.scaling_gain is not None:
        found["gradient_norm_fp32_over_used"] = recording.scaling_gain
    if recording.update_kept is not None:
        found["update_kept_by_16_bit_weights"] = recording.update_kept
    trace = recording.trace
    if trace is not None:
        total = sum(trace.flops.values())
        if total:
            found["flops_share_by_dtype"] = {k: v / total for k, v in trace.flops.items()}
        found["module_amax"] = [
            {"module": m.module, "phase": m.phase, "dtype": m.dtype, "amax": m.amax, "nonfinite": m.nonfinite} for m in trace.modules
        ]
        found["gradients"] = [
            {
                "name": t.name,
                "dtype": t.dtype,
                "grad_norm": t.grad_norm,
                "grad_amax": t.grad_amax,
                "grad_zero_share": t.grad_zero_share,
                "changed_share": t.changed_share,
            }
            for t in trace.tensors
        ]
    if recording.rows:
        found["failing_rows"] = list(recording.rows)
    if diagnosis.failing_lines:
        found["failing_lines"] = list(diagnosis.failing_lines)
    return found


def _notes_of_replay(diagnosis: Diagnosis) -> list[str]:
    """Plain sentences for the reader."""
    recording = diagnosis.recording
    notes = []
    skipped = [s for s in recording.steps if s.skipped]
    if skipped and recording.failing_step is None:
        notes.append(f"{len(skipped)} of {len(recording.steps)} steps were skipped by the scaler while it searched for its scale: that is normal")
    if recording.deterministic:
        notes.append("the unchanged run was repeated with bitwise equal results")
    first = recording.trace.timeline if recording.trace else ()
    harmless = [e for e in first if "harmless" in e.note]
    if harmless and recording.failing_step is None:
        at = harmless[0].site
        notes.append(f"a value that is not finite is made in {at.module or 'the loss code'} ({at.op}) and reaches nothing that is trained")
    return notes


def _notes_of_files(evidence: CheckpointEvidence) -> tuple[str, ...]:
    return tuple(evidence.history.notes) if evidence.history is not None else ()


def _config(evidence: CheckpointEvidence) -> dict[str, Any]:
    if evidence.checkpoint is None:
        return {}
    return {
        name: {"value": value if not isinstance(value, float) or math.isfinite(value) else str(value), "origin": "explicit"}
        for name, value in settings_from(evidence.checkpoint).items()
    }


def _inputs(options: Options) -> tuple[InputFile, ...]:
    given = ((options.checkpoint, "checkpoint"), (options.recipe, "recipe"), (options.data, "data"))
    return tuple(InputFile(path=str(path), role=role) for path, role in given if path is not None)


def _environment(diagnosis: Diagnosis | None) -> dict[str, Any]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, Any] = {"python": platform.python_version()}
    for package in ("mpdoctor", "torch", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    if diagnosis is not None:
        found["device"] = diagnosis.device
        found["emulated"] = list(diagnosis.emulated)
        found["baseline_repeated"] = diagnosis.recording.deterministic is not None
        found["bitwise_reproducible"] = diagnosis.recording.deterministic
    return found
