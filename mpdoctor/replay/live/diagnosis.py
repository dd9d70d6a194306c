"""Investigate a run, judge what was seen, and let experiments separate the causes that are still open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mpdoctor.causes.checklist import verdicts
from mpdoctor.core import rule
from mpdoctor.core.cause import Exclusion, Standing, Verdict
from mpdoctor.core.finding import Finding
from mpdoctor.core.progress import Progress
from mpdoctor.core.report import ExperimentOutcome, ExperimentResult, Symptom
from mpdoctor.core.rule import Crash, Skipped
from mpdoctor.core.trace import Recording, StepObservation
from mpdoctor.replay.live.experiment import Experiment, Lab, all_experiments, perform
from mpdoctor.replay.live.investigation import Investigation
from mpdoctor.replay.live.session import SessionSource
from mpdoctor.replay.symptoms import symptoms

_PERFORMED = (ExperimentOutcome.FAILURE_GONE, ExperimentOutcome.SAME_FAILURE, ExperimentOutcome.OTHER_FAILURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the replay of a run came to; plain data."""

    recording: Recording
    symptoms: tuple[Symptom, ...]
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    experiments: tuple[ExperimentResult, ...]
    skipped: tuple[Skipped, ...]
    crashes: tuple[Crash, ...]
    first_step: int
    batches: int
    device: str
    """Where the model ran: `cpu`, `cuda:0`, ..."""
    emulated: tuple[str, ...]
    """What the replay did differently from the machine that the code was written for, in words."""
    notes: tuple[str, ...]
    """What could not be restored as it was."""
    failing_lines: tuple[str, ...]
    """Where the failing rows come from (`data.jsonl:17`)."""


def diagnose(
    source: SessionSource,
    *,
    steps: int | None,
    experiments: str,
    budget: float | None,
    progress: Progress,
    findings: Iterable[Finding] = (),
    exclusions: Iterable[Exclusion] = (),
    select: Callable[[str, str], bool] = lambda _code, _slug: True,
    interrupted: Callable[[], None] | None = None,
) -> Diagnosis:
    """Replay a run and find out what broke it.

    Args:
        source: opens sessions.
        steps: number of steps to run; None for all batches.
        experiments: `auto` (those that separate the open causes), `all` or `none`.
        budget: seconds for everything; None for no limit.
        progress: told of every step and experiment.
        findings: what the checkpoint and its log showed already.
        exclusions: causes that they rule out.
        select: whether a detector is on, by code and slug.
        interrupted: called when Ctrl-C ends the experiments early; what is known by then is reported.
    """
    deadline = time.monotonic() + budget if budget is not None else None
    progress.start("replaying", steps)

    def on_step(step: StepObservation) -> None:
        progress.advance()
        progress.note(f"step {step.step}" + (f", loss {step.loss:.4g}" if step.loss is not None else ""))

    investigation = Investigation(source, steps=steps, deadline=deadline, on_step=on_step, note=progress.note)
    recording = investigation.recording
    rules = [r for r in rule.load("mpdoctor.replay.detectors.recording") if select(r.code, r.slug)]
    judged = rule.run(rules, recording, lambda r, name: getattr(r, name) is not None)
    all_findings = (*findings, *judged.findings)
    all_exclusions = (*exclusions, *judged.exclusions)
    seen = symptoms(recording)
    lab = Lab(investigation, all_findings, frozenset(x.cause for x in all_exclusions), deadline)

    def standings() -> tuple[Verdict, ...]:
        return verdicts(
            all_findings, exclusions=all_exclusions, experiments=lab.results, untested=_untested(recording), baseline_fails=_fails_again(recording)
        )

    crashes: list[Crash] = list(judged.crashes)
    if seen and experiments != "none":
        chosen = all_experiments()
        progress.start("experiments", len(chosen))
        try:
            for experiment in chosen:
                progress.note(f"{experiment.id} {experiment.changes}")
                reason = None if experiments == "all" else _settled(experiment, lab, standings())
                result, crash = (_not_needed(experiment, reason), None) if reason is not None else perform(experiment, lab)
                lab.results.append(result)
                if crash is not None:
                    crashes.append(crash)
                progress.advance()
        except KeyboardInterrupt:
            if interrupted is not None:
                interrupted()
    session = investigation.baseline.session
    rows = lab.rows or recording.rows
    lines = [source.line_of_row(recording.failing_step, r) for r in rows] if recording.failing_step is not None else []
    return Diagnosis(
        recording=replace(recording, rows=rows),
        symptoms=seen,
        findings=judged.findings,
        verdicts=standings(),
        experiments=tuple(r for r in lab.results if r.outcome in _PERFORMED),
        skipped=(
            *judged.skipped,
            *investigation.skipped,
            *(Skipped(what=f"{r.id} {r.slug}", why=r.detail) for r in lab.results if r.outcome is ExperimentOutcome.NOT_RUN),
        ),
        crashes=tuple(crashes),
        first_step=session.first_step,
        batches=len(session.batches),
        device=str(next((p.device for p in session.model.parameters()), "cpu")),
        emulated=investigation.emulated,
        notes=tuple(dict.fromkeys(source.notes)),
        failing_lines=tuple(line for line in lines if line),
    )


def _untested(recording: Recording) -> dict[str, str]:
    """Why a fixed entry of the checklist was not put to the test."""
    if recording.failing_step is not None:
        return {}
    return {
        "learning-rate": "no step fails and the loss does not grow",
        "loss-scaling": "no step fails and no gradient is lost",
        "fp16-range": "no step fails",
        "dirty-data": "no step fails, so there is no batch to leave out",
    }


def _fails_again(recording: Recording) -> bool:
    """Whether the failure came back when repeated; a silent failure counts when the repeat was bitwise equal."""
    if recording.failing_step is not None:
        return recording.baseline_fails
    return recording.deterministic is not False


def _settled(experiment: Experiment, lab: Lab, standing: tuple[Verdict, ...]) -> str | None:
    """Why an experiment has nothing left to separate, or None."""
    excluded = [c for c in experiment.causes if c in lab.excluded]
    by_id = {v.cause: v for v in standing}
    if len(excluded) == len(experiment.causes) and not any(f.cause in experiment.causes for f in lab.findings):
        return f"{' and '.join(excluded)} is ruled out already"
    done = [c for c in experiment.causes if c in by_id and by_id[c].standing is Standing.CONFIRMED]
    if len(done) == len(experiment.causes) and experiment.id != "EXP402":
        return f"{' and '.join(done)} is confirmed already"
    return None


def _not_needed(experiment: Experiment, reason: str) -> ExperimentResult:
    return ExperimentResult(
        id=experiment.id,
        slug=experiment.slug,
        changes=experiment.changes,
        outcome=ExperimentOutcome.NOT_RUN,
        detail=reason,
        causes=experiment.causes,
        decisive=experiment.decisive,
    )
