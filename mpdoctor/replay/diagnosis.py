"""What a recording comes to: mechanisms, symptoms, and where each cause stands. No torch.

A live replay judges the same way (`live/diagnosis.py`) and adds experiments of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mpdoctor.causes.checklist import verdicts
from mpdoctor.core import rule
from mpdoctor.core.cause import Exclusion, Verdict
from mpdoctor.core.finding import Finding
from mpdoctor.core.report import ExperimentOutcome, ExperimentResult, Symptom
from mpdoctor.core.rule import Crash, RuleRun, Skipped
from mpdoctor.core.trace import Recording
from mpdoctor.replay.symptoms import symptoms

Selection = Callable[[str, str], bool]
"""Whether a detector is on, by code and slug."""

PERFORMED = (ExperimentOutcome.FAILURE_GONE, ExperimentOutcome.SAME_FAILURE, ExperimentOutcome.OTHER_FAILURE)
"""Outcomes of an experiment that ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a recording was made with; plain data that travels with it."""

    device: str = "cpu"
    """Where the model ran: `cpu`, `cuda:0`, ..."""
    emulated: tuple[str, ...] = ()
    """What the replay did differently from the machine that the code was written for, in words."""
    notes: tuple[str, ...] = ()
    """What could not be restored as it was."""
    failing_lines: tuple[str, ...] = ()
    """Where the failing rows come from (`data.jsonl:17`)."""
    real_batches: bool = True
    """Whether the batches are the run's own; made-up ones say nothing about its data."""
    versions: dict[str, str | None] = field(default_factory=dict)
    """Package -> version of the process that made the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the replay of a run, or its recording, came to; plain data."""

    recording: Recording
    symptoms: tuple[Symptom, ...]
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    experiments: tuple[ExperimentResult, ...]
    skipped: tuple[Skipped, ...]
    crashes: tuple[Crash, ...]
    surroundings: Surroundings
    interrupted: bool = False
    """Whether Ctrl-C ended the replay early."""


def judge(recording: Recording, select: Selection) -> RuleRun:
    """The mechanisms that the recording shows."""
    rules = [r for r in rule.load("mpdoctor.replay.detectors.recording") if select(r.code, r.slug)]
    return rule.run(rules, recording, lambda r, name: getattr(r, name) is not None)


def standings(
    recording: Recording, findings: Iterable[Finding], exclusions: Iterable[Exclusion], experiments: Iterable[ExperimentResult]
) -> tuple[Verdict, ...]:
    """The checklist for a recording and the experiments that were made on its run."""
    return verdicts(findings, exclusions=exclusions, experiments=experiments, untested=_untested(recording), baseline_fails=_fails_again(recording))


def diagnose_recording(
    recording: Recording, surroundings: Surroundings, experiments: tuple[ExperimentResult, ...], select: Selection = lambda _code, _slug: True
) -> Diagnosis:
    """Judge a recording that came from a file. `experiments` are those that were made when it was recorded; it cannot be run again."""
    judged = judge(recording, select)
    files = Skipped(what="checkpoint and log", why="a recording holds what the steps did, not the files that the run came from")
    missing = Skipped(what="experiments", why="a recording cannot be run again; replay the checkpoint or the recipe to confirm a cause")
    return Diagnosis(
        recording=recording,
        symptoms=symptoms(recording),
        findings=judged.findings,
        verdicts=standings(recording, judged.findings, judged.exclusions, experiments),
        experiments=experiments,
        skipped=(files, *judged.skipped, *(() if experiments else (missing,))),
        crashes=judged.crashes,
        surroundings=surroundings,
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
