"""Counterfactuals: the same state and batches, one thing changed. What an experiment is, and how its outcome is judged."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from mpdoctor.core import rule
from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.finding import Finding
from mpdoctor.core.report import ExperimentOutcome, ExperimentResult
from mpdoctor.core.rule import Crash
from mpdoctor.core.trace import Recording
from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.investigation import Investigation
from mpdoctor.replay.live.process_state import BudgetSpent, OutOfMemory
from mpdoctor.replay.live.training_loop import Run, failed, run

Judgement = tuple[ExperimentOutcome, str]
GONE, SAME, OTHER, NOT_RUN = (
    ExperimentOutcome.FAILURE_GONE,
    ExperimentOutcome.SAME_FAILURE,
    ExperimentOutcome.OTHER_FAILURE,
    ExperimentOutcome.NOT_RUN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One counterfactual.

    Attributes:
        id: `EXPnnn`.
        changes: the one thing that changes, in a few words.
        causes: ids of the causes that it tests.
        decisive: whether a failure that stays rules the causes out.
        obstacle: why it does not apply to this failure, or None when it does.
        perform: runs it and judges the outcome.
    """

    id: str
    changes: str
    causes: tuple[str, ...]
    decisive: bool = True
    obstacle: Callable[[Lab], str | None]
    perform: Callable[[Lab], Judgement]
    slug: str = ""


@dataclass(slots=True)
class Lab:
    """What experiments work with: the investigated run, the mechanisms seen so far, and the time that is left."""

    investigation: Investigation
    findings: tuple[Finding, ...]
    excluded: frozenset[str] = frozenset()
    deadline: float | None = None
    rows: tuple[int, ...] = ()
    """Smallest set of failing rows, when an experiment found one."""
    grows_at_any_rate: bool = False
    """Whether what grew before the failure grew as much with a hundredth of the learning rate."""
    results: list[ExperimentResult] = field(default_factory=list)

    @property
    def recording(self) -> Recording:
        """What was observed of the unchanged run."""
        return self.investigation.recording

    def has(self, *codes: str) -> bool:
        """Whether a detector with one of these codes fired."""
        return any(f.code in codes for f in self.findings)

    def run(self, changes: Changes, *, until: int | None = None, after_failure: int = 0) -> Run:
        """A fresh run with `changes`, up to step `until` (default: the failing step, or the last one that was seen)."""
        return run(
            self.investigation.source,
            changes=changes,
            until=self.last if until is None else until,
            after_failure=after_failure,
            deadline=self.deadline,
        )

    @property
    def last(self) -> int:
        """The failing step, or the last step of the unchanged run."""
        at = self.recording.failing_step
        if at is not None:
            return at
        return self.recording.steps[-1].step if self.recording.steps else 0

    def failure_in(self, result: Run) -> tuple[int, str] | None:
        """(step, words) of the first failure of a run, judged as the unchanged run's was; None when it does not fail."""
        if result.exception is not None:
            return result.exception.step, f"{result.exception.type} at step {result.exception.step}"
        at = self.recording.failing_step
        for step in result.steps:
            if failed(step):
                what = (
                    "the loss is " + str(step.loss)
                    if step.loss is not None and not math.isfinite(step.loss)
                    else "gradients or weights are not finite"
                )
                return step.step, f"{what} at step {step.step}"
            if step.step == at and step.passed_over:
                return step.step, f"step {step.step} is skipped: its gradients are not finite"
        return None

    def judged(self, result: Run) -> Judgement:
        """The outcome of a run against the unchanged run's failure."""
        if result.spent:
            return NOT_RUN, "the time was over before it reached the failing step"
        failure = self.failure_in(result)
        if failure is None:
            last = result.steps[-1] if result.steps else None
            loss = f", the loss is {last.loss:.4g}" if last is not None and last.loss is not None else ""
            return GONE, f"no failure up to step {last.step if last else self.last}{loss}"
        step, words = failure
        same = step == self.recording.failing_step and (result.exception is not None) == (self.recording.exception is not None)
        return (SAME if same else OTHER), words


def failing(lab: Lab) -> str | None:
    """Obstacle: the run does not fail at a step."""
    return None if lab.recording.failing_step is not None else "no step fails"


def fp16(lab: Lab) -> str | None:
    """Obstacle: the run does not compute in fp16."""
    return None if "float16" in lab.recording.compute_dtypes else "the run does not compute in fp16"


def first(*obstacles: str | None) -> str | None:
    """The first obstacle that stands in the way."""
    return next((o for o in obstacles if o is not None), None)


@cache
def all_experiments() -> tuple[Experiment, ...]:
    """All experiments, by id, found by scanning the folder."""
    found: dict[str, Experiment] = {}
    for module in rule.modules("mpdoctor.replay.live.experiments"):
        experiment = getattr(module, "EXPERIMENT", None)
        if not isinstance(experiment, Experiment):
            raise rule.RuleDefinitionError(f"{module.__name__} exports no EXPERIMENT")
        if experiment.id in found:
            raise rule.RuleDefinitionError(f"{module.__name__}: id {experiment.id} is used twice")
        found[experiment.id] = replace(experiment, slug=module.__name__.rpartition(".")[2].replace("_", "-"))
    return tuple(found[i] for i in sorted(found))


def perform(experiment: Experiment, lab: Lab) -> tuple[ExperimentResult, Crash | None]:
    """Run one experiment. What raises inside it becomes a crash in the report; the others still run."""
    obstacle = experiment.obstacle(lab)
    crash = None
    started = time.monotonic()
    if obstacle is not None:
        outcome, detail = NOT_RUN, obstacle
    else:
        try:
            outcome, detail = experiment.perform(lab)
        except BudgetSpent:
            outcome, detail = NOT_RUN, "the time of --budget was over"
        except OutOfMemory as error:
            outcome, detail = NOT_RUN, error.message
        except UnreadableInput as error:
            outcome, detail = NOT_RUN, f"the run cannot be built with this change: {error.message}"
        except Exception as error:
            outcome, detail = NOT_RUN, f"mpdoctor's experiment failed: {type(error).__name__}: {error}"
            crash = Crash(what=experiment.id, error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
    result = ExperimentResult(
        id=experiment.id,
        slug=experiment.slug,
        changes=experiment.changes,
        outcome=outcome,
        detail=detail,
        causes=experiment.causes,
        decisive=experiment.decisive,
        seconds=round(time.monotonic() - started, 3) if obstacle is None else None,
    )
    return result, crash
