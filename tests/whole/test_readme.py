"""Every command and program of the README, run as a reader would; its tables and claims, compared with the code that they are about."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import mpdoctor
from mpdoctor import encyclopedia
from mpdoctor.causes import all_causes
from mpdoctor.core.cause import Standing
from mpdoctor.core.gate import ExitCode, Outcome
from mpdoctor.report.renderer import format_names

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
_FENCE = re.compile(r"^```(?P<language>\w+)(?P<marks>[ \w]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"# exit (\d+)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its marks (`torch`, `slow`) and its text."""

    language: str
    marks: tuple[str, ...]
    text: str


BLOCKS = [Block(m["language"], tuple(m["marks"].split()), m["text"]) for m in _FENCE.finditer(README)]
SETUP = [block for block in BLOCKS if block.text.startswith("python3 -m venv .venv")]


def runnable(language: str) -> list[object]:
    chosen = [block for block in BLOCKS if block.language == language and block not in SETUP]
    return [
        pytest.param(block, marks=[getattr(pytest.mark, mark) for mark in block.marks], id=f"{i}: {block.text.splitlines()[0][:50]}")
        for i, block in enumerate(chosen)
    ]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The repository as a reader has it, with inputs that may be written to."""
    for name in ("docs", "fixtures"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    environment.pop("MPDOCTOR_EXTRA_CASES", None)
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def script_of(block: Block) -> str:
    """The block as one script in which every line has to exit as its comment says."""
    lines = []
    for line in block.text.splitlines():
        expected = match[1] if (match := _CODE.search(line)) else "0"
        lines += [line, f'got=$?; if [ $got -ne {expected} ]; then echo "exit $got, not {expected}: "{json.dumps(line)} >&2; exit 99; fi']
    return "\n".join(lines)


@pytest.mark.parametrize("block", runnable("sh"))
def test_every_command_runs_and_exits_as_said(block: Block, clone: Path) -> None:
    result = run(["bash", "-c", script_of(block)], clone)
    assert result.returncode == 0, result.stdout + result.stderr
    told = result.stdout + result.stderr
    for line in block.text.splitlines():
        said = _CODE.sub("", line.partition("  # ")[2])
        for fact in re.findall(r"(?<![\w-])(?:" + "|".join(cause.id for cause in all_causes()) + r")(?![\w-])|\w+\.\w+:\d+|SqrtBackward0", said):
            assert fact in told, f"{line}\nsays {fact!r}, and the output does not"


@pytest.mark.parametrize("block", runnable("python"))
def test_every_program_runs(block: Block, clone: Path) -> None:
    result = run([sys.executable, "-c", block.text], clone)
    assert result.returncode == 0, result.stderr
    for printed, comment in re.findall(r"^(print\(.*\)) +# (.*)$", block.text, re.MULTILINE):
        assert comment in result.stdout, f"{printed} does not print {comment}"


def test_the_two_set_up_commands_are_one_line_each() -> None:
    assert len(SETUP) == 2
    assert all(len(block.text.splitlines()) == 1 for block in SETUP)
    main_job, development = (block.text for block in SETUP)
    assert "mpdoctor replay fixtures/checkpoints/fp16-overflow" in main_job and "'.[replay,hf]'" in main_job
    assert "-e '.[dev]'" in development and "-m pytest" in development


@pytest.mark.torch
def test_the_main_job_ends_as_the_first_lines_say(clone: Path) -> None:
    command = SETUP[0].text.partition(".venv/bin/mpdoctor ")[2].split()
    assert "exit code 1" in README.partition("```")[0]
    result = run([str(BIN / "mpdoctor"), *command], clone)
    assert result.returncode == 1
    assert "fp16-range  confirmed" in result.stdout


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "yaml"], ids=lambda block: block.text.splitlines()[0])
def test_every_snippet_is_valid(block: Block) -> None:
    content = yaml.safe_load(block.text)
    if block.text.startswith("# .github"):
        (step,) = [step for step in content["jobs"]["mpdoctor"]["steps"] if "mpdoctor" in step["uses"]]
        assert set(step["with"]) <= set(yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"])
    elif block.text.startswith("# .pre-commit"):
        known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
        assert {hook["id"] for repo in content["repos"] for hook in repo["hooks"]} <= known


def test_the_gitlab_job_writes_the_report_that_it_uploads(clone: Path) -> None:
    job = next(yaml.safe_load(block.text)["mpdoctor"] for block in BLOCKS if block.text.startswith("# .gitlab"))
    install, check = job["script"]
    assert install == "pip install mpdoctor"
    result = run(["bash", "-c", check], clone)
    assert result.returncode == 1, result.stderr
    issues = json.loads((clone / job["artifacts"]["reports"]["codequality"]).read_text(encoding="utf-8"))
    assert {"description", "check_name", "fingerprint", "severity", "location"} <= set(issues[0])


def test_the_table_of_rules_is_up_to_date() -> None:
    program = "import sys; sys.path.insert(0, 'docs'); import rule_table as t; r = t.README.read_text('utf-8'); sys.exit(r != t.with_rules(r))"
    assert run([sys.executable, "-c", program], ROOT).returncode == 0, "run: python docs/rule_table.py"


def rows(text: str, first: str) -> list[list[str]]:
    """The body of the table whose head begins with `first`."""
    lines = text[text.index(f"| {first} |") :].splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), None)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:end]]


def topic(name: str) -> str:
    page = encyclopedia.look_up(name)
    assert page is not None
    return page.markdown


def test_exit_codes_are_told_alike_everywhere() -> None:
    told = rows(README, "code")
    assert told == rows(topic("exit-codes"), "code")
    assert {int(code) for code, _ in told} - {130} == {int(code) for code in ExitCode}


def test_standings_are_told_alike_everywhere() -> None:
    told = {row[0]: row[1] for row in rows(README, "standing")}
    assert set(told) == {standing.value.replace("-", " ") for standing in Standing}
    page = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+?)\.$", topic("verdict"), re.MULTILINE))
    assert told == page


def test_the_limits_are_told_alike_everywhere() -> None:
    leads = re.findall(r"^- \*\*(.+?)\*\*", topic("limits"), re.MULTILINE)
    assert leads
    told = " ".join(README.partition("What it cannot tell")[2].partition("## ")[0].split()).lower()
    assert [lead for lead in leads if f"**{lead.lower()}**" not in told] == []


def test_the_checklist_names_every_cause_in_order() -> None:
    part = README.partition("## The checklist")[2].partition("| standing |")[0]
    named = re.findall(r"\*\*([\w-]+)\*\*:|`([a-z][\w-]+)`", part)
    assert [a or b for a, b in named] == [cause.id for cause in all_causes()]


@pytest.mark.parametrize("text", [README, topic("json")], ids=["README", "explain json"])
def test_the_json_contract_is_told_as_it_is(text: str) -> None:
    schema = json.loads((ROOT / "mpdoctor" / "report" / "schema" / "report-1.json").read_text(encoding="utf-8"))
    told = text.partition("## The report as data")[2].partition("## ")[0] or text
    assert {f"`{outcome.value}`" for outcome in Outcome} <= set(re.findall(r"`[\w-]+`", told))
    keys = {"outcome", "headline", "checklist", "first_nonfinite", "findings", "experiments", "steps", "skipped"}
    assert {f"`{key}`" for key in keys} <= set(re.findall(r"`[\w-]+`", told)) and keys <= set(schema["properties"])
    assert schema["properties"]["schema"]["const"] in told


def test_all_output_formats_are_named() -> None:
    told = README.partition("## The report as data")[2].partition("## ")[0]
    assert [name for name in format_names() if name not in told] == []


def test_the_python_page_calls_what_there_is() -> None:
    for name, arguments in re.findall(r"mpdoctor\.(run_\w+|trace)\(([^\n]*)\)\n", topic("python")):
        known = inspect.signature(getattr(mpdoctor, name)).parameters
        assert set(re.findall(r"(\w+)=", arguments)) <= set(known)


def test_every_file_that_is_linked_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_it_stays_readable() -> None:
    without_rules = README.partition("<details>")[0] + README.partition("</details>")[2]
    assert len(without_rules.splitlines()) <= 270
