"""`--fix` on scripts: the finding is gone, a second run changes nothing, and every other byte stays."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.repair import Repair, repairs
from mpdoctor.check.scripts import RULES, lint_script
from mpdoctor.check.splice import splice
from mpdoctor.cli.app import run
from mpdoctor.core import rule
from mpdoctor.core.finding import Edit, Finding
from mpdoctor.core.location import FileSpan

FIXTURES = Path(__file__).parents[3] / "fixtures" / "scripts"
TEXTS = [(path.stem, path.read_text()) for path in sorted((FIXTURES / "faulty").glob("*.py"))]
TEXTS += [(r.slug, example.text) for r in rule.load(RULES) for example in r.doc.examples if example.bad]
HEAD = "import torch\nimport torch.nn.functional as F\nscaler = torch.amp.GradScaler('cuda')\n"
CLIP = "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
LOOP = "def train(model, optimizer, batches):\n    for x in batches:\n        optimizer.zero_grad()\n        scaler.scale(model(x)).backward()\n"


def plan(path: Path) -> tuple[list[Repair], tuple[Finding, ...]]:
    result = check_files([str(path)], Options())
    return repairs(result.findings, result.documents), tuple(result.findings)


def fixed(tmp_path: Path, text: str) -> str:
    """The script after `mpdoctor check --fix`."""
    path = tmp_path / "train.py"
    path.write_bytes(text.encode())
    run(["check", str(path), "--fix", "--quiet", "--fail-on", "never"])
    return path.read_bytes().decode()


def is_subsequence(few: list[str], many: list[str]) -> bool:
    rest = iter(many)
    return all(line in rest for line in few)


@pytest.mark.parametrize("text", [text for _, text in TEXTS], ids=[name for name, _ in TEXTS])
def test_a_repaired_script_is_clean_of_it_and_settled(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    planned, findings = plan(path)
    edits = {edit for finding in findings if finding.remedy for edit in finding.remedy.edits if edit.at.key is None}
    if not planned:
        assert not edits
        return
    touched = {edit.at.line for edit in edits if edit.old}
    after = fixed(tmp_path, text)
    ast.parse(after)
    assert is_subsequence([line for number, line in enumerate(text.split("\n"), 1) if number not in touched], after.split("\n"))
    again, left = plan(path)
    assert again == []
    assert not {code for repair in planned for code in repair.codes} & {finding.code for finding in left if finding.remedy and finding.remedy.edits}


def test_rules_that_repair():
    repaired = set()
    for _, text in TEXTS:
        repaired |= {f.code for f in lint_script("train.py", text).findings if f.remedy and f.remedy.edits}
    assert repaired >= {"CFG001", "CFG002", "CFG003", "CFG005", "CFG011", "CFG014", "CFG021"}


def test_unscaling_goes_before_the_first_of_two_clips_and_once(tmp_path):
    body = (
        LOOP + "        torch.nn.utils.clip_grad_norm_(model.a.parameters(), 1.0)  # first\n"
        "        torch.nn.utils.clip_grad_norm_(model.b.parameters(), 1.0)\n        scaler.step(optimizer)\n        scaler.update()\n"
    )
    expected = body.replace(
        "        torch.nn.utils.clip_grad_norm_(model.a", "        scaler.unscale_(optimizer)\n        torch.nn.utils.clip_grad_norm_(model.a"
    )
    assert fixed(tmp_path, HEAD + body) == HEAD + expected


@pytest.mark.parametrize(
    "body",
    [
        # Clipped in every pass, stepped in some: unscaling in every pass would raise.
        CLIP + "        if x.last:\n            scaler.step(optimizer)\n            scaler.update()\n",
        # Two optimizers: which one's gradients are clipped is not visible.
        CLIP + "        scaler.step(optimizer)\n        scaler.step(other)\n        scaler.update()\n",
    ],
)
def test_unscaling_that_might_run_twice_is_left_to_the_user(tmp_path, body):
    assert fixed(tmp_path, HEAD + LOOP + body) == HEAD + LOOP + body


def test_a_bypassed_scaler_gets_its_update_too(tmp_path):
    assert fixed(tmp_path, HEAD + LOOP + "        optimizer.step()\n") == HEAD + LOOP + "        scaler.step(optimizer)\n        scaler.update()\n"
    closure = HEAD + LOOP + "        optimizer.step(closure)\n"
    assert fixed(tmp_path, closure) == closure


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s.masked_fill(m, -1e9)", "s.masked_fill(m, torch.finfo(s.dtype).min)"),
        ("s.masked_fill(m, 1e9)", "s.masked_fill(m, torch.finfo(s.dtype).max)"),
        ("torch.log(torch.sigmoid(s))", "torch.nn.functional.logsigmoid(s)"),
        ("torch.log(F.softmax(s, dim=-1))", "F.log_softmax(s, dim=-1)"),
        ("s.softmax(-1).log()", "s.log_softmax(-1)"),
        ("F.binary_cross_entropy(torch.sigmoid(s), m, reduction='sum')", "F.binary_cross_entropy_with_logits(s, m, reduction='sum')"),
        ("F.binary_cross_entropy(s.sigmoid(), m)", "F.binary_cross_entropy_with_logits(s, m)"),
    ],
)
def test_expressions_become_safe_ones(tmp_path, before, after):
    text = (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, s, m):\n"
        "        with torch.autocast('cuda', dtype=torch.float16):\n            loss = {}  # kept\n        return loss\n"
    )
    assert fixed(tmp_path, text.format(before)) == text.format(after)


def test_anomaly_mode_goes_off_in_both_spellings(tmp_path):
    text = "import torch\nwith torch.autograd.detect_anomaly():\n    torch.zeros(1)\ntorch.autograd.set_detect_anomaly(True)\n"
    expected = text.replace("detect_anomaly()", "set_detect_anomaly(False)").replace("(True)", "(False)")
    assert fixed(tmp_path, text) == expected


@pytest.mark.parametrize(("given", "off"), [("", "enabled=False"), ("'cuda'", "'cuda', enabled=False"), ("enabled=True", "enabled=False")])
def test_a_scaler_in_bf16_is_switched_off(tmp_path, given, off):
    text = (
        f"import torch\nscaler = torch.amp.GradScaler({{}})\n{LOOP.replace('scaler.scale(model(x))', 'scaler.scale(loss(model, x))')}"
        "        scaler.step(optimizer)\n        scaler.update()\n\n\ndef loss(model, x):\n"
        "    with torch.autocast('cuda', dtype=torch.bfloat16):\n        return model(x)\n"
    )
    assert fixed(tmp_path, text.format(given)) == text.format(off)


def test_line_ends_and_mark_stay(tmp_path):
    text = "\ufeff" + (HEAD + LOOP + "        optimizer.step()").replace("\n", "\r\n")
    after = fixed(tmp_path, text)
    assert after == text.replace("optimizer.step()", "scaler.step(optimizer)\r\n        scaler.update()")


@pytest.mark.parametrize("end", ["\r", "\n"])
def test_mixed_line_ends_are_left_alone(tmp_path, end):
    text = (HEAD + LOOP).replace("\n", "\r\n") + f"        optimizer.step(){end}"
    assert fixed(tmp_path, text) == text


def test_a_script_that_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(HEAD + LOOP + "        optimizer.step()\n")
    result = check_files([str(path)], Options())
    path.write_text("\n" + HEAD + LOOP + "        optimizer.step()\n")
    assert repairs(result.findings, result.documents) == []


def test_diff_shows_what_fix_does_and_changes_nothing(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(HEAD + LOOP + "        optimizer.step()\n")
    assert run(["check", str(path), "--diff"]) == 1
    assert "-        optimizer.step()\n+        scaler.step(optimizer)\n+        scaler.update()\n" in capsys.readouterr().out
    assert path.read_text().endswith("        optimizer.step()\n")


def edit(line: int, column: int, old: str, new: str) -> Edit:
    return Edit(at=FileSpan(file="f", line=line, column=column), old=old, new=new)


def test_of_edits_that_overlap_one_is_made_and_what_is_not_there_stays():
    text, made = splice("abc\ndef", [edit(1, 1, "abc", "x"), edit(1, 2, "b", "y"), edit(2, 1, "xyz", "z"), edit(9, 1, "", "z"), edit(2, 4, "", "!")])
    assert text == "ayc\ndef!"
    assert len(made) == 2
