"""Every patch that a finding offers applies, leaves valid Python, and removes the finding."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mpdoctor.check.scripts import RULES, lint_script
from mpdoctor.core import rule

FIXTURES = Path(__file__).parents[3] / "fixtures" / "scripts"
TEXTS = [(path.stem, path.read_text()) for path in sorted((FIXTURES / "faulty").glob("*.py"))]
TEXTS += [(r.slug, example.text) for r in rule.load(RULES) for example in r.doc.examples if example.bad]
CRLF = [(f"{name} without a last line end", text.rstrip("\n")) for name, text in TEXTS[:6]]
PATCHED = [(name, text, f) for name, text in TEXTS + CRLF for f in lint_script("train.py", text).findings if f.remedy and f.remedy.patch]
HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


def apply(text: str, patch: str) -> str:
    """Apply a unified diff of one hunk strictly: every context line must match."""
    head, body = patch.split("\n", 3)[:3], patch.split("\n", 3)[3].removesuffix("\n").split("\n")
    start, removed, _, added = map(int, HUNK.fullmatch(head[2]).groups())
    lines = text.split("\n")
    body = [line for line in body if not line.startswith("\\")]
    old = [line[1:] for line in body if line[0] in " -"]
    new = [line[1:] for line in body if line[0] in " +"]
    assert (len(old), len(new)) == (removed, added)
    assert lines[start - 1 : start - 1 + removed] == old
    return "\n".join([*lines[: start - 1], *new, *lines[start - 1 + removed :]])


@pytest.mark.parametrize(("text", "finding"), [p[1:] for p in PATCHED], ids=[f"{name} {f.code} {i}" for i, (name, _, f) in enumerate(PATCHED)])
def test_patch_applies_and_removes_its_finding(text, finding):
    mended = apply(text, finding.remedy.patch)
    ast.parse(mended)
    again = lint_script("train.py", mended)
    assert finding.fingerprint not in {other.fingerprint for other in again.findings}
    assert len(again.findings) < len(lint_script("train.py", text).findings)


def test_rules_that_can_mend_safely_do():
    assert {finding.code for _, _, finding in PATCHED} >= {"CFG001", "CFG002", "CFG003", "CFG011", "CFG014", "CFG021", "CFG023"}


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch program")
def test_patch_program_takes_the_diff(tmp_path):
    _, text, finding = PATCHED[0]
    (tmp_path / "train.py").write_text(text)
    subprocess.run(["patch", "-p0", "--fuzz=0"], input=finding.remedy.patch, text=True, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "train.py").read_text() == apply(text, finding.remedy.patch)


def test_statement_that_shares_its_line_gets_no_patch():
    text = (
        "import torch\nscaler = torch.amp.GradScaler('cuda')\ndef train(model, optimizer, loss):\n"
        "    scaler.scale(loss).backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); scaler.step(optimizer); scaler.update()\n"
    )
    (finding,) = lint_script("train.py", text).findings
    assert finding.code == "CFG001" and finding.remedy.patch is None


def test_notebook_gets_no_patch_for_its_json():
    import json

    cell = "import torch\ntorch.autograd.set_detect_anomaly(True)\n"
    (finding,) = lint_script("n.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": cell}]})).findings
    assert finding.remedy.patch is None
