"""What holds for every output format."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpdoctor.core.cause import Headline, Standing, Verdict
from mpdoctor.core.errors import UsageError
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Finding, Remedy, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import DeviceRef, FileSpan, Phase, TensorSite
from mpdoctor.core.report import InputFile, Report, StepRecord, TimelineEntry
from mpdoctor.core.rule import Skipped
from mpdoctor.report.renderer import Renderer, RenderOptions, format_names, load

FORMATS = ("github", "gitlab", "html", "json", "junit", "markdown", "sarif", "text")


def test_formats_are_the_files_of_the_folder() -> None:
    assert format_names() == FORMATS


def test_naming_formats_imports_none() -> None:
    code = "import sys; from mpdoctor.report.renderer import format_names; format_names(); sys.exit(any('report.formats.' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_an_unknown_format_is_told_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as error:
        load("yaml")
    assert error.value.hint == f"choose one of: {', '.join(FORMATS)}"


def test_suffixes_tell_formats_apart() -> None:
    renderers: list[Renderer] = [load(name) for name in FORMATS]
    assert len({renderer.suffix for renderer in renderers}) == len(renderers)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_every_report(name: str, report: Report) -> None:
    text = load(name).render(report, RenderOptions())
    assert text.endswith("\n")


@pytest.mark.parametrize("name", FORMATS)
def test_ascii_is_possible_in_every_format(name: str, report: Report) -> None:
    assert load(name).render(report, RenderOptions(ascii=True)).isascii()


words = st.text(st.characters(exclude_categories=()), max_size=20)
spans = st.builds(FileSpan, file=words, line=st.none() | st.integers(1, 9999), column=st.none() | st.integers(1, 200), key=st.none() | words)
sites = st.builds(
    TensorSite,
    step=st.integers(-1, 99),
    phase=st.sampled_from(Phase),
    module=words,
    op=st.none() | words,
    tensor=st.none() | words,
    source=st.none() | spans,
)
remedies = st.none() | st.builds(Remedy, text=words, patch=st.none() | words)
evidence = st.builds(Evidence, text=words, kind=st.sampled_from(EvidenceKind))
findings = st.builds(
    Finding,
    code=st.just("CFG101"),
    slug=st.just("bf16-pre-ampere"),
    severity=st.sampled_from(Severity),
    confidence=st.sampled_from(Confidence),
    message=words,
    location=st.none() | spans | sites | st.builds(DeviceRef, name=words, index=st.none() | st.integers(0, 8)),
    evidence=st.lists(evidence, max_size=2).map(tuple),
    remedy=remedies,
    related=st.lists(spans, max_size=2).map(tuple),
)
numbers = st.none() | st.floats()
reports = st.builds(
    Report,
    command=st.sampled_from(["check", "replay"]),
    outcome=st.sampled_from(Outcome),
    headline=st.builds(Headline, cause=st.sampled_from([None, "fp16-range"]), standing=st.none(), text=words),
    verdicts=st.lists(
        st.builds(
            Verdict,
            cause=st.just("fp16-range"),
            standing=st.sampled_from(Standing),
            evidence=st.lists(evidence, max_size=2).map(tuple),
            remedy=remedies,
        ),
        max_size=2,
    ).map(tuple),
    findings=st.lists(findings, max_size=3).map(tuple),
    steps=st.lists(st.builds(StepRecord, step=st.integers(-99, 99), loss=numbers, grad_norm=numbers, scale=numbers, lr=numbers), max_size=9).map(
        tuple
    ),
    timeline=st.lists(
        st.builds(
            TimelineEntry, site=sites, note=words, marker=st.sampled_from(["", "origin", "harm", "spread"]), dtype=st.none() | words, amax=numbers
        ),
        max_size=4,
    ).map(tuple),
    measurements=st.dictionaries(words, numbers | words | st.lists(numbers), max_size=2),
    skipped=st.lists(st.builds(Skipped, what=words, why=words), max_size=2).map(tuple),
    inputs=st.lists(st.builds(InputFile, path=words, role=words), max_size=2).map(tuple),
    environment=st.dictionaries(words, words, max_size=2),
    notes=st.lists(words, max_size=2).map(tuple),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(report=reports, ascii_only=st.booleans(), quiet=st.booleans(), width=st.integers(40, 130))
def test_no_format_fails_on_any_report(report: Report, ascii_only: bool, quiet: bool, width: int) -> None:
    for name in FORMATS:
        text = load(name).render(report, RenderOptions(width=width, ascii=ascii_only, quiet=quiet))
        text.encode("utf-8")


def test_the_text_report_needs_no_rich() -> None:
    code = "import sys; from mpdoctor.report.renderer import load; load('text'); sys.exit(any(m.partition('.')[0] == 'rich' for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
