"""What can go wrong: an entry of the checklist, and where it stands in one report."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from mpdoctor.core.evidence import Evidence
from mpdoctor.core.finding import Remedy
from mpdoctor.core.record import dataclass


class Standing(StrEnum):
    """How sure mpdoctor is that a cause is the cause."""

    CONFIRMED = "confirmed"
    """An experiment that changes only this removed the failure, the mechanism agrees, and the repeated baseline still failed."""
    LIKELY = "likely"
    """The mechanism was seen; no experiment separated it, or one disagreed."""
    POSSIBLE = "possible"
    """Something points to it, too little to act on alone."""
    RULED_OUT = "ruled-out"
    """The experiment ran and the failure stayed, or a fact excludes it."""
    UNTESTED = "untested"
    """Not looked at; the entry says why and which command would test it."""

    @property
    def rank(self) -> int:
        """4 for confirmed down to 0: possible (2) stands above untested (1) and ruled out (0)."""
        return {"confirmed": 4, "likely": 3, "possible": 2, "untested": 1, "ruled-out": 0}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An entry of the checklist.

    Attributes:
        id: stable name (`learning-rate`).
        order: place in the checklist; the first four (1 to 4) are always printed.
        title: what it is, in a few words.
        remedy: what to change when it is the cause.
        test_hint: the command that would test it, for an entry that stands `untested`.
        documentation: Markdown for `mpdoctor explain`, from the docstring of the cause's module.
    """

    id: str
    order: int
    title: str
    remedy: Remedy
    test_hint: str
    documentation: str = ""

    @property
    def always_shown(self) -> bool:
        """Whether the checklist prints the entry without evidence too."""
        return self.order <= 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Where a cause stands now, and why.

    Attributes:
        cause: id of the cause.
        standing: how sure.
        evidence: facts that the standing rests on (for and against, as the standing says).
        remedy: what to change; None for a cause that is ruled out.
    """

    cause: str
    standing: Standing
    evidence: tuple[Evidence, ...]
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A fact that rules a cause out (`no loss scaler, and the run is in bf16: nothing to scale`)."""

    cause: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The report's first line: the most likely cause, how sure, and what to change."""

    cause: str | None
    standing: Standing | None
    text: str


def leading(verdicts: Iterable[Verdict], order: dict[str, int]) -> Verdict | None:
    """The verdict that the headline names: the highest standing; ties go by the checklist's order.

    None when nothing stands at least `possible`.
    """
    ranked = sorted(verdicts, key=lambda v: (-v.standing.rank, order[v.cause]))
    return ranked[0] if ranked and ranked[0].standing.rank >= Standing.POSSIBLE.rank else None
