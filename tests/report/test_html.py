"""The HTML report: self-contained, escaped, accessible, and with the numbers of the JSON report."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mpdoctor.core.report import Report, StepRecord
from mpdoctor.report.document import document
from mpdoctor.report.legible import legible
from mpdoctor.report.numbers import number
from mpdoctor.report.renderer import RenderOptions, load

VOID = {"meta", "link", "br", "img", "input", "hr"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """Elements and texts of a page; fails on tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def html(report: Report) -> str:
    return load("html").render(report, RenderOptions())


def test_the_page_is_well_formed(report: Report) -> None:
    page = Page(html(report))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1


def test_it_needs_no_network_and_runs_no_script(report: Report) -> None:
    page = Page(html(report))
    assert [script["type"] for script in page.all("script")] == ["application/json"]
    assert all(a["href"].startswith("#") for a in page.all("a"))
    assert [link["href"] for link in page.all("link")] == ["data:,"]
    assert not any("src" in attributes or any(name.startswith("on") for name in attributes) for _, attributes in page.elements)
    assert "@import" not in html(report)
    assert "url(" not in html(report)
    assert any("default-src 'none'" in (meta.get("content") or "") for meta in page.all("meta"))


def test_every_link_leads_somewhere(report: Report) -> None:
    page = Page(html(report))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"] for a in page.all("a")} <= {f"#{name}" for name in ids}
    assert {attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes} <= set(ids)


def test_the_whole_report_is_in_the_page_as_json(report: Report) -> None:
    embedded = re.search(r'<script type="application/json" id="report-json">(.*?)</script>', html(report), re.DOTALL)
    assert embedded
    assert json.loads(embedded[1]) == json.loads(json.dumps(document(legible(report))))


def test_the_numbers_of_the_steps_are_those_of_the_json(reports: dict[str, Report]) -> None:
    report = reports["overflow"]
    rows = re.search(r'<table id="steps">.*?<tbody>(.*?)</tbody>', html(report), re.DOTALL)
    assert rows
    shown = [re.findall(r">([^<>]*)</t[dh]>", row)[:5] for row in rows[1].strip().split("</tr>")[:-1]]
    expected = [
        [str(step["step"]), *(number(None if step[name] is None else float(step[name]), 6) for name in ("loss", "grad_norm", "scale", "lr"))]
        for step in document(report)["steps"]
    ]
    assert shown == expected


def test_content_is_escaped(reports: dict[str, Report]) -> None:
    text = html(reports["hostile"])
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_charts_have_a_text_alternative(reports: dict[str, Report]) -> None:
    charts = Page(html(reports["overflow"])).all("svg")
    assert len(charts) == 6
    assert all(chart["role"] == "img" and len(chart["aria-label"]) > 40 for chart in charts)


def test_tables_name_their_rows_and_columns(reports: dict[str, Report]) -> None:
    page = Page(html(reports["overflow"]))
    assert all(th.get("scope") in ("row", "col") for th in page.all("th"))


def test_settings_link_to_their_findings(reports: dict[str, Report]) -> None:
    report = replace(reports["checked"], config={"bf16": {"value": True, "origin": "explicit", "file": "configs/train.yaml", "line": 7}})
    assert '<a href="#finding-1">CFG101</a>' in html(report)


def test_a_machine_gets_its_settings_and_no_checklist(reports: dict[str, Report]) -> None:
    text = html(reports["machine"])
    assert "TrainingArguments(fp16=True)" in text
    assert 'id="checklist"' not in text


def test_a_long_run_stays_small(reports: dict[str, Report]) -> None:
    steps = tuple(
        StepRecord(step=i, loss=2 + math.sin(i), grad_norm=1.0 + i % 7, scale=65536.0, lr=1e-4, skipped=i % 500 == 0) for i in range(20_000)
    )
    text = html(replace(reports["overflow"], steps=steps))
    drawn = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert len(drawn) < 200_000


def test_a_spike_survives_the_thinning(reports: dict[str, Report]) -> None:
    steps = tuple(StepRecord(step=i, loss=1000.0 if i == 7777 else 2.0 + i % 3) for i in range(20_000))
    text = html(replace(reports["overflow"], steps=steps))
    assert re.search(r"between 2 and 1000", text)
    points = re.search(r'<polyline [^>]*points="([^"]*)"', text)
    assert points
    assert min(float(point.split(",")[1]) for point in points[1].split()) == 14.0


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")
@pytest.mark.parametrize("name", ["overflow", "checked", "hostile"])
def test_a_real_browser_has_nothing_to_complain(name: str, reports: dict[str, Report], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html(reports[name]), encoding="utf-8")
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr",
        "--dump-dom",
    ]
    result = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    assert "CONSOLE" not in result.stderr
    assert result.stdout.count('class="answer') == 1
    assert "<script>alert" not in result.stdout
