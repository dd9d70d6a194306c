"""The report: everything that a renderer or the gate may see."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from mpdoctor.core.cause import Headline, Verdict
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Finding
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import TensorSite
from mpdoctor.core.record import dataclass
from mpdoctor.core.rule import Crash, Skipped

SCHEMA = "mpdoctor.report/1"


class SymptomId(StrEnum):
    """What a failure looks like from outside."""

    LOSS_NONFINITE = "loss-nonfinite"
    GRAD_NONFINITE = "grad-nonfinite"
    WEIGHTS_NONFINITE = "weights-nonfinite"
    BUFFERS_NONFINITE = "buffers-nonfinite"
    GRAD_NORM_COLLAPSE = "grad-norm-collapse"
    LOSS_NOT_MOVING = "loss-not-moving"
    LOSS_DIVERGING = "loss-diverging"
    WEIGHTS_NOT_MOVING = "weights-not-moving"
    SCALER_STUCK = "scaler-stuck"
    GRADIENTS_MISSING = "gradients-missing"
    EXCEPTION = "exception"
    SLOW_PRECISION = "slow-precision"
    DTYPE_MISMATCH = "dtype-mismatch"
    NOT_REPRODUCIBLE = "not-reproducible"
    LOG_NONFINITE = "log-nonfinite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A failure as seen from outside. `step` is None for one that is not bound to a step."""

    id: SymptomId
    detail: str
    step: int | None = None
    site: TensorSite | None = None
    """Phase, module, op and line, for an exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite:
    """The origin of the first harmful non-finite value.

    Attributes:
        site: step, phase, module, op, and the line of the user's code.
        kind: `nan`, `inf` or `-inf`.
        dtype: torch's name without prefix (`float16`).
        harmful: whether it reached the loss, a gradient, a parameter or a buffer.
        why: what happened to the numbers, in words.
        rows: batch rows that carry it (empty: all, or not told).
        hurts_at: where it first does harm, when that is another place.
    """

    site: TensorSite
    kind: str
    dtype: str
    harmful: bool
    why: str
    rows: tuple[int, ...] = ()
    hurts_at: TensorSite | None = None
    mechanism: str = ""
    """`overflow`, `intermediate-overflow`, `undefined`, `masked-row`, `empty-reduction`, `arrived` or `unknown`."""
    exact: float | None = None
    """The exact value of the first bad element, computed in fp64, where it is finite."""
    whole_rows: bool = False
    """Whether every element of the named rows is bad (an empty sample), not only some positions of it."""
    share: float | None = None
    """Share of the tensor's elements that are bad."""


class ExperimentOutcome(StrEnum):
    """What a counterfactual run showed."""

    FAILURE_GONE = "failure-gone"
    SAME_FAILURE = "same-failure"
    OTHER_FAILURE = "other-failure"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """One counterfactual: the same state and batches, one thing changed.

    Attributes:
        id: `EXP101`.
        slug: file name of the experiment (`learning-rate-half`).
        changes: the one thing that it changes, in a few words.
        outcome: what happened to the failure.
        detail: what was seen, with numbers; or why it did not run.
        causes: ids of the causes that it tests.
        seconds: wall time.
    """

    id: str
    slug: str
    changes: str
    outcome: ExperimentOutcome
    detail: str
    causes: tuple[str, ...] = ()
    decisive: bool = True
    """Whether a failure that stays rules the causes out. Some experiments can only confirm."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """What one training step did, as a log would show it. `grad_norm` is of unscaled gradients.

    `source` is `replay` for a step that mpdoctor ran, `history` for one from the run's own log.
    """

    step: int
    loss: float | None = None
    grad_norm: float | None = None
    scale: float | None = None
    lr: float | None = None
    skipped: bool | None = None
    source: str = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One place of the failing step's timeline, in execution order; `note` is what happened there."""

    site: TensorSite
    note: str
    marker: str = ""
    """`origin`, `harm`, `spread` or empty."""
    dtype: str | None = None
    amax: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that the report is about: its path as given, and its role (`config`, `checkpoint`, `data`, ...)."""

    path: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one command."""

    command: str
    outcome: Outcome
    headline: Headline
    verdicts: tuple[Verdict, ...] = ()
    """The checklist, in its order: the four fixed entries, then others with evidence."""
    symptoms: tuple[Symptom, ...] = ()
    first_nonfinite: NonFinite | None = None
    findings: tuple[Finding, ...] = ()
    experiments: tuple[ExperimentResult, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    measurements: dict[str, Any] = field(default_factory=dict)
    """Numbers such as the loss-scale window, by name; plain JSON values."""
    skipped: tuple[Skipped, ...] = ()
    crashes: tuple[Crash, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    """The run's settings as understood: field -> value, origin, place."""
    gpus: tuple[GpuInfo, ...] = ()
    recommendation: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[InputFile, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    """Versions, device, and everything that was emulated."""
    notes: tuple[str, ...] = ()
    """Plain sentences for the reader, e.g. that a few skipped steps are normal."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return self.outcome is Outcome.HEALTHY
