"""Fingerprints and orders."""

from __future__ import annotations

from dataclasses import replace

from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.core.location import DeviceRef, FileSpan, Phase, TensorSite

FINDING = Finding(
    code="CFG101",
    slug="bf16-pre-ampere",
    severity=Severity.ERROR,
    confidence=Confidence.HIGH,
    message="m",
    location=FileSpan(file="a.yaml", line=3, key="bf16"),
    identity="true",
)


def test_a_fingerprint_survives_edits_elsewhere_in_the_file() -> None:
    moved = replace(FINDING, location=FileSpan(file="a.yaml", line=90, column=2, key="bf16"), message="other words", severity=Severity.INFO)
    assert moved.fingerprint == FINDING.fingerprint


def test_a_fingerprint_tells_faults_apart() -> None:
    others = [
        replace(FINDING, code="CFG102"),
        replace(FINDING, identity="auto"),
        replace(FINDING, location=FileSpan(file="b.yaml", line=3, key="bf16")),
        replace(FINDING, location=FileSpan(file="a.yaml", line=3, key="fp16")),
        replace(FINDING, location=None),
        replace(FINDING, location=DeviceRef(name="V100", index=0)),
        replace(FINDING, location=DeviceRef(name="V100", index=1)),
        replace(FINDING, location=TensorSite(step=0, phase=Phase.FORWARD, module="a")),
        replace(FINDING, location=TensorSite(step=0, phase=Phase.FORWARD, module="b")),
    ]
    assert len({f.fingerprint for f in (FINDING, *others)}) == len(others) + 1


def test_lowering_a_severity_ends_at_info() -> None:
    assert [s.lowered() for s in (Severity.ERROR, Severity.WARNING, Severity.INFO)] == [Severity.WARNING, Severity.INFO, Severity.INFO]
