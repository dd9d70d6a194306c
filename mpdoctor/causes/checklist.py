"""How evidence becomes a standing, and which cause the headline names.

The rule (for every cause alike): a cause is *confirmed* only when its mechanism was seen and an
experiment that changes only this removed the failure. Experiments alone can lie: with smaller steps
every failure comes later, and a step in fp32 hides many faults of 16 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mpdoctor.causes import all_causes, cause_order
from mpdoctor.core.cause import Cause, Exclusion, Headline, Standing, Verdict, leading
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.core.report import ExperimentOutcome, ExperimentResult


def verdicts(
    findings: Iterable[Finding],
    *,
    exclusions: Iterable[Exclusion] = (),
    experiments: Iterable[ExperimentResult] = (),
    untested: Mapping[str, str] | None = None,
    hint: str | None = None,
    baseline_fails: bool = False,
) -> tuple[Verdict, ...]:
    """The checklist: the four fixed causes, then others with evidence, in the checklist's order.

    Args:
        findings: mechanisms that were seen; those without a cause are left out.
        exclusions: facts that rule a cause out.
        experiments: counterfactual runs; `causes` says which causes each one tests.
        untested: why a cause was not looked at, by cause id.
        hint: the command that would test an untested cause, where it is the same for all.
        baseline_fails: whether the unchanged run failed every time it was repeated. Without that no
            experiment can confirm anything.
    """
    findings, exclusions, experiments = tuple(findings), tuple(exclusions), tuple(experiments)
    entries = []
    for cause in all_causes():
        verdict = _verdict(cause, findings, exclusions, experiments, (untested or {}).get(cause.id), hint, baseline_fails=baseline_fails)
        if cause.always_shown or verdict.standing.rank >= Standing.POSSIBLE.rank:
            entries.append(verdict)
    return tuple(entries)


def _verdict(
    cause: Cause,
    findings: tuple[Finding, ...],
    exclusions: tuple[Exclusion, ...],
    experiments: tuple[ExperimentResult, ...],
    untested: str | None,
    hint: str | None,
    *,
    baseline_fails: bool,
) -> Verdict:
    """Where one cause stands."""
    mechanisms = sorted((f for f in findings if f.cause == cause.id), key=lambda f: (-f.severity.rank, -f.confidence.rank))
    ran = [e for e in experiments if cause.id in e.causes and e.outcome is not ExperimentOutcome.NOT_RUN]
    gone = [e for e in ran if e.outcome is ExperimentOutcome.FAILURE_GONE]
    stayed = [e for e in ran if e.outcome is ExperimentOutcome.SAME_FAILURE and e.decisive]
    against = [x.evidence for x in exclusions if x.cause == cause.id]
    strongest = mechanisms[0].confidence if mechanisms else None
    serious = bool(mechanisms) and mechanisms[0].severity.rank >= Severity.WARNING.rank

    remedy = next((f.remedy for f in mechanisms if f.remedy), cause.remedy)
    for_evidence = tuple(_evidence_of(f) for f in mechanisms) + tuple(_evidence_of_experiment(e) for e in gone)

    if serious and strongest is not None and strongest.rank >= Confidence.MEDIUM.rank:
        if gone and baseline_fails and not against:
            return Verdict(cause=cause.id, standing=Standing.CONFIRMED, evidence=for_evidence, remedy=remedy)
        certain = strongest is Confidence.HIGH and (not stayed or bool(gone))
        standing = Standing.LIKELY if certain else Standing.POSSIBLE
        return Verdict(cause=cause.id, standing=standing, evidence=(*for_evidence, *against, *map(_evidence_of_experiment, stayed)), remedy=remedy)
    if against:
        return Verdict(cause=cause.id, standing=Standing.RULED_OUT, evidence=tuple(against))
    if stayed and not gone:
        return Verdict(cause=cause.id, standing=Standing.RULED_OUT, evidence=tuple(map(_evidence_of_experiment, stayed)))
    if mechanisms:
        return Verdict(cause=cause.id, standing=Standing.POSSIBLE, evidence=for_evidence, remedy=remedy)
    if gone and cause.always_shown:
        note = Evidence(text="the change helps, but no mechanism of this cause was seen", kind=EvidenceKind.EXPERIMENT)
        return Verdict(cause=cause.id, standing=Standing.POSSIBLE, evidence=(*for_evidence, note), remedy=remedy)
    reason = untested or "nothing points to it"
    text = f"{reason}; to test it: {hint or cause.test_hint}"
    return Verdict(cause=cause.id, standing=Standing.UNTESTED, evidence=(Evidence(text=text, kind=EvidenceKind.EXPERIMENT),))


def headline(entries: Iterable[Verdict], *, prefix: str = "") -> Headline:
    """The most likely cause, how sure, and what to change; or that none was found."""
    entries = tuple(entries)
    verdict = leading(entries, cause_order())
    if verdict is None:
        return Headline(cause=None, standing=None, text=f"{prefix}no cause found")
    cause = next(c for c in all_causes() if c.id == verdict.cause)
    reason = verdict.evidence[0].text if verdict.evidence else cause.title
    remedy = f" {verdict.remedy.text}" if verdict.remedy else ""
    return Headline(cause=cause.id, standing=verdict.standing, text=f"{prefix}{reason}.{remedy}".replace("..", "."))


def without_failure(entries: Iterable[Verdict], reason: str, not_exercised: Mapping[str, str]) -> tuple[Verdict, ...]:
    """The fixed entries of a run in which nothing failed: ruled out, each with `reason`, unless it has evidence of its own.

    Those in `not_exercised`, with a reason each, stay untested: the run put them to no test.
    """
    kept = []
    for verdict in entries:
        if verdict.standing is not Standing.UNTESTED:
            kept.append(verdict)
        elif verdict.cause in not_exercised:
            kept.append(replace(verdict, evidence=(Evidence(text=not_exercised[verdict.cause], kind=EvidenceKind.TRACE),)))
        else:
            kept.append(replace(verdict, standing=Standing.RULED_OUT, evidence=(Evidence(text=reason, kind=EvidenceKind.TRACE),)))
    return tuple(kept)


def _evidence_of(finding: Finding) -> Evidence:
    kind = EvidenceKind.CONFIG if finding.code.startswith("CFG") else EvidenceKind.TRACE
    return Evidence(text=finding.message, kind=kind, where=finding.location)


def _evidence_of_experiment(result: ExperimentResult) -> Evidence:
    return Evidence(text=f"{result.id} {result.changes}: {result.detail}", kind=EvidenceKind.EXPERIMENT)
