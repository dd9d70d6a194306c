"""Investigate a run, judge what was seen, and let experiments separate the causes that are still open."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from dataclasses import replace

import torch

from mpdoctor.core.cause import Exclusion, Standing, Verdict
from mpdoctor.core.finding import Confidence, Finding
from mpdoctor.core.progress import Progress
from mpdoctor.core.report import ExperimentOutcome, ExperimentResult
from mpdoctor.core.rule import Crash, Skipped
from mpdoctor.core.trace import Recording, StepObservation
from mpdoctor.core.version import __version__
from mpdoctor.replay.diagnosis import PERFORMED, Diagnosis, Selection, Surroundings, judge, standings
from mpdoctor.replay.live.experiment import Experiment, Lab, all_experiments, perform
from mpdoctor.replay.live.investigation import INTERRUPTED, Investigation
from mpdoctor.replay.live.session import SessionSource
from mpdoctor.replay.symptoms import symptoms

_STANDING_STILL = ("updates-lost", "gradients-flushed")
"""Detectors over files that see updates which have no effect."""


def diagnose(
    source: SessionSource,
    *,
    steps: int | None,
    experiments: str,
    budget: float | None,
    progress: Progress,
    findings: Iterable[Finding] = (),
    exclusions: Iterable[Exclusion] = (),
    select: Selection = lambda _code, _slug: True,
) -> Diagnosis:
    """Replay a run and find out what broke it. Ctrl-C ends it early: what is known by then is the diagnosis.

    Args:
        source: opens sessions.
        steps: number of steps to run; None for all batches.
        experiments: `auto` (those that separate the open causes), `all` or `none`.
        budget: seconds for everything; None for no limit.
        progress: told of every step and experiment.
        findings: what the checkpoint and its log showed already.
        exclusions: causes that they rule out.
        select: whether a detector is on, by code and slug.
    """
    deadline = time.monotonic() + budget if budget is not None else None
    progress.start("replaying", steps)

    def on_step(step: StepObservation) -> None:
        progress.advance()
        progress.note(f"step {step.step}" + (f", loss {step.loss:.4g}" if step.loss is not None else ""))

    investigation = Investigation(source, steps=steps, deadline=deadline, on_step=on_step, note=progress.note)
    recording = investigation.recording
    judged = judge(recording, select)
    all_findings = (*_that_explain(recording, findings), *judged.findings)
    all_exclusions = (*exclusions, *judged.exclusions)
    seen = symptoms(recording)
    lab = Lab(investigation, all_findings, frozenset(x.cause for x in all_exclusions), deadline)

    crashes: list[Crash] = list(judged.crashes)
    interrupted = investigation.interrupted
    chosen = list(all_experiments()) if seen and experiments != "none" else []
    progress.start("experiments", len(chosen))
    for experiment in chosen:
        progress.note(f"{experiment.id} {experiment.changes}")
        reason = INTERRUPTED if interrupted else None
        if reason is None and experiments != "all":
            reason = _settled(experiment, lab, standings(recording, all_findings, all_exclusions, lab.results))
        try:
            result, crash = (_not_run(experiment, reason), None) if reason is not None else perform(experiment, lab)
        except KeyboardInterrupt:
            interrupted = True
            result, crash = _not_run(experiment, INTERRUPTED), None
        lab.results.append(result)
        if crash is not None:
            crashes.append(crash)
        progress.advance()
    if lab.grows_at_any_rate:  # the growth explains nothing any more
        recording = replace(recording, grows_at_any_rate=True)
        judged = judge(recording, select)
        all_findings = (*_that_explain(recording, findings), *judged.findings)
    rows = lab.rows or recording.rows
    lines = [source.line_of_row(recording.failing_step, r) for r in rows] if recording.failing_step is not None else []
    return Diagnosis(
        recording=replace(recording, rows=rows),
        symptoms=seen,
        findings=judged.findings,
        verdicts=standings(recording, all_findings, all_exclusions, lab.results),
        experiments=tuple(r for r in lab.results if r.outcome in PERFORMED),
        skipped=(
            *judged.skipped,
            *investigation.skipped,
            *(_skipped(r) for r in lab.results if r.outcome is ExperimentOutcome.NOT_RUN),
        ),
        crashes=tuple(crashes),
        surroundings=Surroundings(
            device=investigation.device,
            emulated=investigation.emulated,
            notes=tuple(dict.fromkeys(source.notes)),
            failing_lines=tuple(line for line in lines if line),
            real_batches=source.real_batches,
            versions={"mpdoctor": __version__, "torch": str(torch.__version__), "python": platform.python_version()},
        ),
        interrupted=interrupted,
    )


def _that_explain(recording: Recording, findings: Iterable[Finding]) -> Iterable[Finding]:
    """Findings over the files. Weights that stand still explain no value that is not finite: there, they point nowhere for sure."""
    for finding in findings:
        still = finding.slug in _STANDING_STILL and recording.failing_step is not None
        yield replace(finding, confidence=Confidence.LOW) if still else finding


def _settled(experiment: Experiment, lab: Lab, standing: tuple[Verdict, ...]) -> str | None:
    """Why an experiment has nothing left to separate, or None."""
    excluded = [c for c in experiment.causes if c in lab.excluded]
    by_id = {v.cause: v for v in standing}
    if len(excluded) == len(experiment.causes) and not any(f.cause in experiment.causes for f in lab.findings):
        return f"{' and '.join(excluded)} is ruled out already"
    done = [c for c in experiment.causes if c in by_id and by_id[c].standing is Standing.CONFIRMED]
    if len(done) == len(experiment.causes) and experiment.id not in ("EXP306", "EXP402"):
        return f"{' and '.join(done)} is confirmed already"
    return None


def _skipped(result: ExperimentResult) -> Skipped:
    """An experiment without a result. One that was never begun, though nobody broke it off, had nothing to tell."""
    needless = result.seconds is None and result.detail != INTERRUPTED
    return Skipped(what=f"{result.id} {result.slug}", why=result.detail, needless=needless)


def _not_run(experiment: Experiment, reason: str) -> ExperimentResult:
    return ExperimentResult(
        id=experiment.id,
        slug=experiment.slug,
        changes=experiment.changes,
        outcome=ExperimentOutcome.NOT_RUN,
        detail=reason,
        causes=experiment.causes,
        decisive=experiment.decisive,
    )
