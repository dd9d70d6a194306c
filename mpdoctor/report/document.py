"""The report as JSON: schema `mpdoctor.report/1`, a contract.

Keys are only ever added; a change of meaning makes `/2`. `schema/report-1.json` states the contract for machines. Non-finite numbers are
the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mpdoctor.core.cause import Verdict
from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.finding import Finding, Remedy
from mpdoctor.core.jsonable import jsonable
from mpdoctor.core.location import DeviceRef, FileSpan, Location, TensorSite
from mpdoctor.core.report import SCHEMA, NonFinite, Report
from mpdoctor.core.version import __version__


def document(report: Report) -> dict[str, Any]:
    """The report as plain JSON values, keys in the contract's order."""
    return {
        "schema": SCHEMA,
        "mpdoctor": __version__,
        "command": report.command,
        "outcome": report.outcome.value,
        "healthy": report.healthy,
        "symptoms": [{"id": s.id.value, "step": s.step, "detail": s.detail, "site": _site(s.site) if s.site else None} for s in report.symptoms],
        "first_nonfinite": _first_nonfinite(report.first_nonfinite),
        "headline": jsonable(report.headline),
        "checklist": [_verdict(verdict) for verdict in report.verdicts],
        "findings": [_finding(finding) for finding in report.findings],
        "experiments": jsonable(report.experiments),
        "steps": jsonable(report.steps),
        "timeline": [
            {**_site(entry.site), "note": entry.note, "marker": entry.marker, "dtype": entry.dtype, "amax": jsonable(entry.amax)}
            for entry in report.timeline
        ],
        "measurements": jsonable(report.measurements),
        "skipped": jsonable(report.skipped),
        "crashes": jsonable(report.crashes),
        "config": jsonable(report.config),
        "gpus": [_gpu(gpu) for gpu in report.gpus],
        "recommendation": jsonable(report.recommendation),
        "inputs": jsonable(report.inputs),
        "environment": jsonable(report.environment),
        "notes": list(report.notes),
    }


def _first_nonfinite(origin: NonFinite | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    return {
        **_site(origin.site),
        "kind": origin.kind,
        "dtype": origin.dtype,
        "harmful": origin.harmful,
        "why": origin.why,
        "rows": list(origin.rows),
        "hurts_at": None if origin.hurts_at is None else _site(origin.hurts_at),
    }


def _site(site: TensorSite) -> dict[str, Any]:
    return {
        "step": site.step,
        "phase": site.phase.value,
        "module": site.module,
        "op": site.op,
        "tensor": site.tensor,
        "location": None if site.source is None else str(site.source),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "cause": verdict.cause,
        "standing": verdict.standing.value,
        "evidence": [evidence.text for evidence in verdict.evidence],
        "remedy": _remedy(verdict.remedy),
    }


def _remedy(remedy: Remedy | None) -> dict[str, Any] | None:
    return None if remedy is None else {"text": remedy.text, "patch": remedy.patch}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "slug": finding.slug,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        **_place(finding.location),
        "cause": finding.cause,
        "evidence": [evidence.text for evidence in finding.evidence],
        "related": [{"file": span.file, "line": span.line, "key": span.key} for span in finding.related],
        "remedy": _remedy(finding.remedy),
        "fingerprint": finding.fingerprint,
    }


def _place(location: Location | None) -> dict[str, Any]:
    """File, line, column and key of a finding; `site` or `device` when it is not (only) a place in a file."""
    match location:
        case FileSpan():
            return {**_span(location), "site": None, "device": None}
        case TensorSite():
            return {**_span(location.source), "site": _site(location), "device": None}
        case DeviceRef():
            return {**_span(None), "site": None, "device": jsonable(location)}
        case None:
            return {**_span(None), "site": None, "device": None}


def _span(span: FileSpan | None) -> dict[str, Any]:
    if span is None:
        return {"file": None, "line": None, "column": None, "key": None}
    return {"file": span.file, "line": span.line, "column": span.column, "key": span.key}


def _gpu(gpu: GpuInfo) -> dict[str, Any]:
    capability = gpu.compute_capability
    dotted = Reading(".".join(map(str, capability.value)) if capability.value else None, capability.reason)
    return {
        "name": gpu.name,
        "index": gpu.ref.index,
        "uuid": gpu.ref.uuid,
        "vendor": gpu.vendor,
        "source": gpu.source,
        "compute_capability": jsonable(dotted),
        "architecture": jsonable(gpu.architecture),
        "formats": {f.name: jsonable(getattr(gpu.formats, f.name)) for f in fields(gpu.formats)},
        "metrics": jsonable(gpu.metrics),
    }
