"""What the HTML page shows: everything that the template needs, as plain values."""

from __future__ import annotations

from typing import Any

from mpdoctor.core.finding import Finding
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.report import Report
from mpdoctor.core.version import __version__
from mpdoctor.report import answer
from mpdoctor.report.document import document
from mpdoctor.report.html.charts.exponents import BF16_NOTE, gradient_exponents, held_by_fp16
from mpdoctor.report.html.charts.history import history
from mpdoctor.report.html.heat_map import heat_map
from mpdoctor.report.measured import Exponents, Window, exponents, flops, gradients, module_amax, others, window
from mpdoctor.report.numbers import count, dtype, number, plain, words
from mpdoctor.report.places import logical_place, place, ranges, shown_path, source, span_of, worst_first
from mpdoctor.report.renderer import RenderOptions

MOST_LAYERS = 12
MOST_PARAMETERS = 300
MOST_STEPS = 200
MOST_TIMELINE = 400


def context(report: Report, options: RenderOptions) -> dict[str, Any]:
    """The template's variables."""
    tone, words_of_status = answer.status(report)
    scales = window(report)
    layers = _worst_layers(exponents(report), scales)
    found = worst_first(report)
    return {
        "report": report,
        "version": __version__,
        "tone": tone.value,
        "status": words_of_status,
        "verdict": answer.leading_verdict(report),
        "reason": answer.reason(report),
        "seen": answer.seen(report),
        "checklist": answer.checklist(report),
        "settings": answer.settings(report),
        "origin_place": place(report.first_nonfinite.site) if report.first_nonfinite else "",
        "harm_place": place(report.first_nonfinite.hurts_at) if report.first_nonfinite and report.first_nonfinite.hurts_at else "",
        "rows": ranges(report.first_nonfinite.rows) if report.first_nonfinite else "",
        "findings": [_finding(finding, options) for finding in found],
        "timeline": report.timeline[:MOST_TIMELINE],
        "history": history(report),
        "steps": report.steps[-MOST_STEPS:],
        "heat_map": heat_map(module_amax(report)),
        "window": scales,
        "gradients": [gradient_exponents(layer, scales) for layer in layers[: MOST_LAYERS + 1]],
        "parameters": gradients(report)[:MOST_PARAMETERS],
        "gradients_left_out": max(0, len(layers) - MOST_LAYERS - 1),
        "bf16_note": BF16_NOTE,
        "flops": flops(report),
        "measured": others(report),
        "not_looked_at": answer.not_looked_at(report),
        "not_needed": answer.not_needed(report),
        "config": _config(report, found),
        "inputs": report.inputs,
        # A tag that ends the element must not come out of the data.
        "json": to_json(document(report), indent=None, ascii_only=True).replace("<", "\\u003c"),
        "count": count,
        "dtype": dtype,
        "number": number,
        "plain": plain,
        "words": words,
        "place": place,
        "source": source,
        "shown_path": shown_path,
    }


def _worst_layers(layers: list[Exponents], scales: Window | None) -> list[Exponents]:
    """The whole model first, then the modules that lose most at the loss scale in use."""
    low, high = held_by_fp16(scales)
    return sorted(layers, key=lambda layer: (layer.name != "all", -layer.outside(low, high)))


def _finding(finding: Finding, options: RenderOptions) -> dict[str, Any]:
    page = options.rule_page(finding.code)
    return {"finding": finding, "span": span_of(finding), "place": logical_place(finding), "summary": page.summary if page else ""}


def _config(report: Report, found: list[Finding]) -> list[dict[str, Any]]:
    """The run's settings as understood, each with the findings at its place."""
    rows = []
    for name, setting in report.config.items():
        if not isinstance(setting, dict):
            rows.append({"name": str(name), "value": plain(setting), "origin": "", "where": "", "codes": []})
            continue
        file, line = setting.get("file"), setting.get("line")
        codes = sorted({f.code for f in found if (span := span_of(f)) and file and (span.file, span.line) == (file, line)})
        where = "" if not file else f"{file}:{line}" if line else str(file)
        rows.append(
            {"name": str(name), "value": plain(setting.get("value")), "origin": str(setting.get("origin", "")), "where": where, "codes": codes}
        )
    return rows
