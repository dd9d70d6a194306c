"""How evidence becomes a standing, and which cause the headline names."""

from __future__ import annotations

import pytest

from mpdoctor.causes import all_causes
from mpdoctor.causes.checklist import headline, verdicts, without_failure
from mpdoctor.core.cause import Exclusion, Standing
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Finding, Remedy, Severity
from mpdoctor.core.report import ExperimentOutcome, ExperimentResult

FIXED = ["learning-rate", "loss-scaling", "fp16-range", "dirty-data"]


def seen(cause: str, *, severity: Severity = Severity.ERROR, confidence: Confidence = Confidence.HIGH, remedy: Remedy | None = None) -> Finding:
    return Finding(code="RUN101", slug="x", severity=severity, confidence=confidence, message=f"{cause} was seen", cause=cause, remedy=remedy)


def ran(cause: str, outcome: ExperimentOutcome) -> ExperimentResult:
    return ExperimentResult(id="EXP101", slug="x", changes="one thing", outcome=outcome, detail="d", causes=(cause,))


def against(cause: str) -> Exclusion:
    return Exclusion(cause=cause, evidence=Evidence(text="cannot be", kind=EvidenceKind.CONFIG))


def standing(cause: str, **given: object) -> Standing:
    findings = given.pop("findings", ())
    return next(v for v in verdicts(findings, **given) if v.cause == cause).standing


GONE, SAME, NOT_RUN = ExperimentOutcome.FAILURE_GONE, ExperimentOutcome.SAME_FAILURE, ExperimentOutcome.NOT_RUN


def test_the_four_fixed_entries_come_first_in_order() -> None:
    entries = verdicts([seen("kernel")])
    assert [v.cause for v in entries] == [*FIXED, "kernel"]
    assert [v.standing for v in entries[:4]] == [Standing.UNTESTED] * 4


def test_a_mechanism_and_its_experiment_confirm() -> None:
    assert standing("fp16-range", findings=[seen("fp16-range")], experiments=[ran("fp16-range", GONE)], baseline_fails=True) is Standing.CONFIRMED


def test_nothing_is_confirmed_without_a_repeated_baseline() -> None:
    assert standing("fp16-range", findings=[seen("fp16-range")], experiments=[ran("fp16-range", GONE)], baseline_fails=False) is Standing.LIKELY


def test_an_experiment_without_a_mechanism_confirms_nothing() -> None:
    assert standing("learning-rate", experiments=[ran("learning-rate", GONE)], baseline_fails=True) is Standing.POSSIBLE


def test_a_mechanism_alone_is_likely() -> None:
    assert standing("loss-scaling", findings=[seen("loss-scaling")]) is Standing.LIKELY


def test_a_mechanism_against_its_experiment_is_possible() -> None:
    assert (
        standing("loss-scaling", findings=[seen("loss-scaling")], experiments=[ran("loss-scaling", SAME)], baseline_fails=True) is Standing.POSSIBLE
    )


def test_a_failed_experiment_rules_out() -> None:
    assert standing("learning-rate", experiments=[ran("learning-rate", SAME)], baseline_fails=True) is Standing.RULED_OUT


def test_an_experiment_that_did_not_run_says_nothing() -> None:
    assert standing("learning-rate", experiments=[ran("learning-rate", NOT_RUN)], baseline_fails=True) is Standing.UNTESTED


def test_a_fact_rules_out() -> None:
    assert standing("loss-scaling", exclusions=[against("loss-scaling")]) is Standing.RULED_OUT


def test_a_fact_against_it_prevents_confirmation() -> None:
    given = {"findings": [seen("loss-scaling")], "exclusions": [against("loss-scaling")], "experiments": [ran("loss-scaling", GONE)]}
    assert standing("loss-scaling", **given, baseline_fails=True) is not Standing.CONFIRMED


@pytest.mark.parametrize(("severity", "confidence"), [(Severity.INFO, Confidence.HIGH), (Severity.ERROR, Confidence.LOW)])
def test_weak_mechanisms_are_possible_at_most(severity: Severity, confidence: Confidence) -> None:
    found = [seen("fp16-range", severity=severity, confidence=confidence)]
    assert standing("fp16-range", findings=found, experiments=[ran("fp16-range", GONE)], baseline_fails=True) is Standing.POSSIBLE


def test_an_untested_entry_says_why_and_how_to_test() -> None:
    entry = next(v for v in verdicts([], untested={"dirty-data": "no data was given"}) if v.cause == "dirty-data")
    assert entry.evidence[0].text == "no data was given; to test it: mpdoctor replay CHECKPOINT --data FILE"


def test_ties_go_by_the_checklist_order() -> None:
    assert headline(verdicts([seen("dirty-data"), seen("learning-rate"), seen("kernel")])).cause == "learning-rate"


def test_the_headline_names_the_cause_with_the_highest_standing() -> None:
    line = headline(verdicts([seen("learning-rate"), seen("dirty-data")], experiments=[ran("dirty-data", GONE)], baseline_fails=True))
    assert (line.cause, line.standing) == ("dirty-data", Standing.CONFIRMED)
    assert line.text.startswith("dirty-data was seen. Repair or drop the named rows")


def test_without_evidence_there_is_no_cause() -> None:
    line = headline(verdicts([]))
    assert (line.cause, line.standing) == (None, None)


def test_the_remedy_of_what_was_seen_wins() -> None:
    entry = verdicts([seen("fp16-range", remedy=Remedy(text="Set bf16."))])[2]
    assert entry.remedy == Remedy(text="Set bf16.")


def test_a_run_without_failure_rules_out_what_it_put_to_the_test() -> None:
    entries = without_failure(verdicts([seen("learning-rate", severity=Severity.INFO)]), "20 steps ran", {"dirty-data": "the batches are made up"})
    found = {v.cause: (v.standing, v.evidence[0].text) for v in entries}
    assert found["fp16-range"] == (Standing.RULED_OUT, "20 steps ran")
    assert found["dirty-data"] == (Standing.UNTESTED, "the batches are made up")
    assert found["learning-rate"][0] is Standing.POSSIBLE


def test_every_cause_is_documented() -> None:
    causes = all_causes()
    assert [c.id for c in causes[:4]] == FIXED
    assert len({c.order for c in causes}) == len(causes)
    for cause in causes:
        assert all(part in cause.documentation for part in ("What happens", "What confirms it", "What rules it out"))
        assert cause.test_hint.startswith("mpdoctor ")
