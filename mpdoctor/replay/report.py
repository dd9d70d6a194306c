"""From what was judged and replayed to the report."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from mpdoctor.causes.checklist import headline, verdicts, without_failure
from mpdoctor.core.cause import Headline, Standing, Verdict
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import FileSpan
from mpdoctor.core.record import dataclass
from mpdoctor.core.report import InputFile, Report, StepRecord, Symptom, SymptomId
from mpdoctor.core.rule import RuleRun, Skipped
from mpdoctor.core.trace import Recording
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence
from mpdoctor.replay.checkpoints import settings_from
from mpdoctor.replay.diagnosis import Diagnosis
from mpdoctor.replay.observations import swallowed
from mpdoctor.replay.options import Options
from mpdoctor.replay.stored_numbers import stored_measurements

if TYPE_CHECKING:
    import pandas as pd

_CONSTANTS = ("aten.scalar_tensor", "aten.full", "aten.full_like")
"""Ops that make a constant: an infinite one is meant as a mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport(Report):
    """A report of `mpdoctor replay`, with what it rests on."""

    recording: Recording | None = None
    """What was observed of the unchanged run; None when nothing was replayed."""

    def to_frame(self, kind: str) -> pd.DataFrame:
        """The report as a table: `steps`, `events`, `tensors`, `modules` or `experiments`; see `mpdoctor.replay.frames`.

        Raises ValueError for another kind, MissingDependency without pandas.
        """
        from mpdoctor.replay.frames import report_frame

        return report_frame(self, kind)


def report_on_files(options: Options, evidence: CheckpointEvidence, judged: RuleRun, why_not: str) -> ReplayReport:
    """The report of an autopsy, or of a log, alone."""
    untested = {cause: why_not.split(";")[0] for cause in ("learning-rate", "loss-scaling", "fp16-range", "dirty-data")}
    hint = None if "pip install" in why_not else "mpdoctor replay CHECKPOINT --recipe FILE.py"
    entries = verdicts(judged.findings, exclusions=judged.exclusions, untested=untested, hint=hint)
    serious = [f for f in judged.findings if f.severity is Severity.ERROR]
    warned = [f for f in judged.findings if f.severity is Severity.WARNING]
    leading_entry = headline(entries)
    likely = leading_entry.standing is not None and leading_entry.standing.rank >= Standing.LIKELY.rank
    if likely and (serious or warned):
        outcome, head = Outcome.DIAGNOSED, leading_entry
    elif serious:
        outcome = Outcome.UNDIAGNOSED
        head = leading_entry if leading_entry.cause else Headline(cause=None, standing=None, text=serious[0].message)
    else:
        outcome = Outcome.HEALTHY
        so_far = f"nothing is broken in the stored numbers, but {warned[0].message}" if warned else "nothing wrong in the stored numbers"
        head = Headline(cause=None, standing=None, text=f"{so_far}; whether the next step fails, only a replay can tell")
    return ReplayReport(
        command="replay",
        outcome=outcome,
        headline=head,
        verdicts=entries,
        symptoms=_symptoms_of_files(judged.findings),
        findings=judged.findings,
        steps=evidence.history.rows if evidence.history is not None else (),
        measurements=stored_measurements(evidence),
        skipped=(Skipped(what="replay of the next steps", why=why_not), *judged.skipped),
        crashes=judged.crashes,
        config=_config(evidence),
        gpus=options.gpus,
        inputs=_inputs(options),
        environment=_environment(None),
        notes=_notes_of_files(evidence),
    )


def report_on_replay(options: Options, evidence: CheckpointEvidence, judged: RuleRun, diagnosis: Diagnosis) -> ReplayReport:
    """The report of a replay, or of a recording of one."""
    recording = diagnosis.recording
    findings = (*diagnosis.findings, *judged.findings)
    history = evidence.history.rows if evidence.history is not None else ()
    failed_before = [f for f in judged.findings if f.severity is Severity.ERROR]
    entries = _with_bf16_unused(diagnosis.verdicts, recording, options.gpus)
    notes = [*_notes_of_files(evidence), *diagnosis.surroundings.notes, *_notes_of_replay(diagnosis)]
    if not recording.steps and recording.exception is None:
        outcome = Outcome.COULD_NOT_JUDGE
        head = Headline(cause=None, standing=None, text="no step could be run in the time given")
    elif diagnosis.interrupted and not diagnosis.symptoms and not failed_before:
        outcome = Outcome.COULD_NOT_JUDGE
        head = Headline(cause=None, standing=None, text=f"interrupted after {_counted(recording)}, in which nothing failed")
    elif not diagnosis.symptoms and not failed_before:
        outcome = Outcome.HEALTHY
        head = Headline(cause=None, standing=None, text=f"healthy: {_counted(recording)} replayed, nothing wrong{_closing(recording)}")
        entries = without_failure(entries, f"nothing failed in {_counted(recording, 'replayed ')}", _not_exercised(diagnosis))
    elif not diagnosis.symptoms:
        head = headline(entries)
        outcome = Outcome.DIAGNOSED if head.standing is not None and head.standing.rank >= Standing.LIKELY.rank else Outcome.NOT_REPRODUCED
        if outcome is Outcome.NOT_REPRODUCED and _all_in_data(failed_before, options):
            outcome = Outcome.DIAGNOSED
            entries = tuple(replace(v, standing=Standing.LIKELY) if v.cause == "dirty-data" else v for v in entries)
            head = headline(entries, prefix=f"{_counted(recording, 'replayed ')} do not fail, but the run will: ")
        elif outcome is Outcome.NOT_REPRODUCED:
            head = replace(head, text=f"the checkpoint shows a failure that {_counted(recording, 'replayed ')} do not: {failed_before[0].message}")
    else:
        head = headline(entries)
        known = head.standing is not None and head.standing.rank >= Standing.LIKELY.rank
        outcome = Outcome.DIAGNOSED if known else Outcome.UNDIAGNOSED
        if not known:
            head = replace(head, text=f"{diagnosis.symptoms[0].detail}; no cause is confirmed or likely" + (f". {head.text}" if head.cause else ""))
    trace = recording.trace
    return ReplayReport(
        command="replay",
        outcome=outcome,
        headline=head,
        verdicts=entries,
        symptoms=(*diagnosis.symptoms, *_symptoms_of_files(judged.findings)) if outcome is not Outcome.HEALTHY else (),
        first_nonfinite=trace.origin if trace and recording.failing_step is not None else recording.initial_origin or swallowed(recording),
        findings=findings,
        experiments=diagnosis.experiments,
        steps=(*history, *_records(recording)),
        timeline=trace.timeline if trace is not None and recording.failing_step is not None else (),
        measurements={**_measurements(diagnosis), **stored_measurements(evidence)},
        skipped=(*diagnosis.skipped, *judged.skipped),
        crashes=(*diagnosis.crashes, *judged.crashes),
        config=_config(evidence),
        gpus=options.gpus,
        inputs=_inputs(options),
        environment=_environment(diagnosis),
        notes=tuple(notes),
        recording=recording,
    )


def _all_in_data(findings: Sequence[Finding], options: Options) -> bool:
    """Whether findings are all about rows of the data file, which steps after the replayed ones read."""
    return all(isinstance(f.location, FileSpan) and f.location.file == str(options.data) for f in findings)


def _counted(recording: Recording, kind: str = "") -> str:
    count = len(recording.steps)
    return f"{count} {kind}step{'s' if count != 1 else ''}"


def _not_exercised(diagnosis: Diagnosis) -> dict[str, str]:
    """Causes that a replay without a failure says nothing about, with the reason."""
    found = {}
    if not diagnosis.surroundings.real_batches:
        found["dirty-data"] = "the batches are made up; to test it: mpdoctor replay CHECKPOINT --data FILE"
    rates = [s.lr for s in diagnosis.recording.steps]
    if rates and not any(rates):
        found["learning-rate"] = "it is 0 in all replayed steps; to test it: replay an earlier checkpoint of the run"
    return found


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
            {"name": e.name, "zeros": e.zeros, "counts": {str(exponent): n for exponent, n in e.counts.items()}, "loss_scales": e.scale_window()}
            for e in recording.gradient_exponents
        ]
    if recording.scaling_gain is not None:
        found["gradient_norm_fp32_over_used"] = recording.scaling_gain
    if recording.update_kept is not None:
        found["update_kept_by_16_bit_weights"] = recording.update_kept
    if recording.lr_for_half is not None:
        found["learning_rate_for_half_of_the_updates"] = recording.lr_for_half
    trace = recording.trace
    if trace is not None:
        total = sum(trace.flops.values())
        if total:
            found["flops_share_by_dtype"] = {k: v / total for k, v in trace.flops.items()}
        found["module_amax"] = [
            {"step": step, "module": m.module, "phase": m.phase, "dtype": m.dtype, "amax": m.amax, "nonfinite": m.nonfinite}
            for step, traced in sorted(recording.traces.items())
            for m in traced.modules
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
    if diagnosis.surroundings.failing_lines:
        found["failing_lines"] = list(diagnosis.surroundings.failing_lines)
    return found


def _notes_of_replay(diagnosis: Diagnosis) -> list[str]:
    """Plain sentences for the reader."""
    recording = diagnosis.recording
    notes = []
    skipped = [s for s in recording.steps if s.skipped]
    if skipped and recording.failing_step is None:
        notes.append(f"{len(skipped)} of {len(recording.steps)} steps were skipped by the scaler while it searched for its scale: that is normal")
    if diagnosis.interrupted:
        notes.append("Ctrl-C ended the replay early: the report holds what was known by then")
    if recording.schedule_over:
        notes.append("the checkpoint is of the run's last step: the learning rate is 0 on purpose, and the weights do not move in the replay")
    if recording.deterministic:
        notes.append("the unchanged run was repeated with bitwise equal results")
    first = recording.trace.timeline if recording.trace else ()
    harmless = [e for e in first if "harmless" in e.note and e.site.op not in _CONSTANTS]
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
    given = [(options.checkpoint, "checkpoint"), (options.recipe, "recipe"), (options.data, "data")]
    if options.checkpoint is None and options.recipe is None:
        given.append((options.trace, "trace"))
    return tuple(InputFile(path=str(path), role=role) for path, role in given if path is not None)


def _environment(diagnosis: Diagnosis | None) -> dict[str, Any]:
    found: dict[str, Any] = {"python": platform.python_version()}
    for package in ("mpdoctor", "torch", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    if diagnosis is not None:
        found |= diagnosis.surroundings.versions  # those of a recording are its own
        found["device"] = diagnosis.surroundings.device
        found["emulated"] = list(diagnosis.surroundings.emulated)
        found["baseline_repeated"] = diagnosis.recording.deterministic is not None
        found["bitwise_reproducible"] = diagnosis.recording.deterministic
    return found
