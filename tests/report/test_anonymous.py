"""Reports that can be posted in public."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpdoctor.core.cause import Headline
from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Finding, Remedy, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import DeviceRef, FileSpan
from mpdoctor.core.report import InputFile, Report
from mpdoctor.core.rule import Crash, Skipped
from mpdoctor.report.anonymous import anonymised
from mpdoctor.report.renderer import RenderOptions, format_names, load

SLICE = "MIG-5c1f0e9a-77aa-5b2c-9d10-0a1b2c3d4e5f"
ADDRESS = "00000000:3B:00.0"
SECRETS = ["acme", "zora", "gpubox17", "moonshot", "GPU-12ab", SLICE, SLICE.removeprefix("MIG-"), ADDRESS, "40961", "40962"]


@pytest.fixture
def revealing(monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report that names a user, a host, a model and a company in every corner."""
    monkeypatch.setattr("getpass.getuser", lambda: "zora.k")
    monkeypatch.setattr("platform.node", lambda: "gpubox17.acme.example")
    config = "/home/zora.k/acme/train.yaml"
    return Report(
        command="check",
        outcome=Outcome.DIAGNOSED,
        headline=Headline(cause=None, standing=None, text=f"{config} trains acme/moonshot-7b on gpubox17"),
        findings=(
            Finding(
                code="CFG101",
                slug="bf16-pre-ampere",
                severity=Severity.ERROR,
                confidence=Confidence.HIGH,
                message="loads '/data/acme/corpus.jsonl', see /usr/lib/python3/site-packages/torch/nn/modules/linear.py:125",
                location=FileSpan(file=config, line=7, key="bf16"),
                evidence=(Evidence(text="zora.k wrote C:\\Users\\zora\\acme\\run.py", kind=EvidenceKind.CONFIG),),
                remedy=Remedy(text="Edit it.", patch=f"--- {config}\n+++ {config}\n-bf16: true\n"),
            ),
        ),
        config={"model_name_or_path": {"value": "acme/moonshot-7b", "origin": "explicit", "file": config, "line": 1}, "lr": {"value": 0.1}},
        gpus=(
            GpuInfo(
                ref=DeviceRef(name="NVIDIA A100", index=0, uuid="GPU-12ab"),
                vendor="nvidia",
                source="nvml",
                metrics={
                    "pci_bus_id": Reading(ADDRESS),
                    "mig_devices": Reading([{"name": "MIG 1g.5gb", "uuid": SLICE}]),
                    "processes": Reading([{"pid": 40961, "memory_bytes": 7}]),
                },
            ),
        ),
        skipped=(Skipped(what="acme/moonshot-7b", why="not in /mnt/acme/models"),),
        crashes=(Crash(what="CFG102", error="OSError", traceback='File "/home/zora.k/.venv/x/y.py", line 3'),),
        inputs=(InputFile(path=config, role="config"), InputFile(path="acme_ds.json", role="config")),
        environment={"cwd": "/home/zora.k/acme", "python": "3.11"},
        notes=(
            "run on gpubox17.acme.example; acme_ds.json",
            f"2 processes (pid 40961, 40962) use {ADDRESS}, {SLICE} and {SLICE}/1/0 at 2026-08-01 10:32:07",
            "loss scale 40963 and process 2, step 40964",
        ),
    )


@pytest.mark.parametrize("name", format_names())
def test_no_format_tells_whose_it_is(name: str, revealing: Report) -> None:
    before = load(name).render(revealing, RenderOptions())
    after = load(name).render(anonymised(revealing), RenderOptions())
    assert any(secret in before for secret in SECRETS)
    assert [secret for secret in SECRETS if secret in after] == []


def test_what_the_diagnosis_needs_stays(revealing: Report) -> None:
    finding = anonymised(revealing).findings[0]
    assert (finding.code, finding.location.line, finding.location.key) == ("CFG101", 7, "bf16")
    assert finding.location.file == "config-1.yaml"
    assert "torch/nn/modules/linear.py:125" in finding.message
    assert anonymised(revealing).gpus[0].name == "NVIDIA A100"


def test_devices_and_processes_can_still_be_told_apart(revealing: Report) -> None:
    report = anonymised(revealing)
    assert report.gpus[0].metric("processes").value == [{"pid": "<process-1>", "memory_bytes": 7}]
    assert report.notes[1] == "2 processes (pid <process-1>, <process-2>) use <pci-address-1>, <uuid-2> and <uuid-2>/1/0 at 2026-08-01 10:32:07"
    assert report.notes[2] == revealing.notes[2]


def test_equal_names_keep_equal_stand_ins(revealing: Report) -> None:
    report = anonymised(revealing)
    assert report.headline.text == "config-1.yaml trains <name-1> on <host>"
    assert report.skipped[0].what == "<name-1>"
    assert report.findings[0].remedy.patch.startswith("--- config-1.yaml\n+++ config-1.yaml\n")


def test_it_changes_nothing_else(reports: dict[str, Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    monkeypatch.setattr("platform.node", lambda: "localhost")
    report = replace(reports["overflow"], inputs=(), gpus=())
    assert anonymised(report) == report
