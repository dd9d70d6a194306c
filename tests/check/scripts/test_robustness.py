"""No text makes the script rules crash, and edits that change nothing change no finding."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpdoctor.check.scripts import lint_script
from mpdoctor.check.splice import splice
from mpdoctor.core.errors import MpdoctorError

FIXTURES = Path(__file__).parents[3] / "fixtures" / "scripts"
TEXTS = [path.read_text() for path in sorted(FIXTURES.rglob("*.py"))]
LINES = sorted({line for text in TEXTS for line in text.split("\n")})
QUICK = settings(max_examples=int(os.environ.get("MPDOCTOR_FUZZ", "60")), deadline=None, suppress_health_check=[HealthCheck.too_slow])
FRAGMENTS = (
    "x", "self", "y.grad", "loss", "scaler", "optimizer", "model", "torch", "F", "mask", "1e-12", "-1e9", "2", "None", "torch.float16",
    "lambda: x", "*x", "[x]", "{}",
)  # fmt: skip
CALLS = (
    "{}.backward()", "{}.step({})", "{}.scale({}).backward()", "torch.where({}, {}, {})", "{}.masked_fill({}, {})", "torch.exp({})",
    "{} / {}.sum()", "{} - {}", "{} * {}", "{} + {}", "{} @ {}", "{} ** {}", "torch.log({})", "torch.sqrt({})", "{}.to({})", "{}.half()",
    "torch.autocast({}, dtype={})",
    "torch.optim.Adam({}.parameters(), {})", "torch.finfo({}).min", "F.softmax({})", "{}.clamp({}, {})", "torch.linalg.inv({})", "({} if {} else {})",
    "torch.amp.GradScaler({})", "{}.unscale_({})", "{}.zero_grad()", "torch.nn.utils.clip_grad_norm_({})", "f({}, k={})", "{}[{}]", "({} := {})",
)  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> str:
    """Nested calls of everything that the rules look at."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(FRAGMENTS))
    call = draw(st.sampled_from(CALLS))
    return call.format(*[draw(expressions(depth - 1)) for _ in range(call.count("{}"))])


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Small programs with loops, branches, functions and classes around such expressions."""
    lines = ["import torch", "import torch.nn.functional as F"]
    indent = 0
    heads = ("if {}:", "for x in {}:", "while {}:", "with {}:", "def f(x, loss=1, *a, **k):", "class A(torch.nn.Module):", "def g():", "try:")
    for _ in range(draw(st.integers(1, 12))):
        pad = "    " * indent
        kind = draw(st.integers(0, 5))
        text = draw(expressions())
        if kind == 0 and indent < 4:
            head = draw(st.sampled_from(heads))
            lines.append(pad + head.format(text))
            indent += 1
            lines.append("    " * indent + "pass")
            if head == "try:":
                lines += [pad + "except E as e:", "    " * indent + "raise"]
        elif kind == 1 and indent:
            indent -= 1
        else:
            target = draw(st.sampled_from(("", "x = ", "x, y = ", "self.model = ", "x[mask] = ", "loss = ", "mask: int = ")))
            lines.append(pad + target + text.removeprefix("*"))
    return "\n".join(lines) + "\n"


def judged(text: str, path: str = "t.py") -> object:
    try:
        ran = lint_script(path, text)
    except MpdoctorError as error:
        return error.message
    assert ran.crashes == ()
    return ran.findings


@QUICK
@given(programs())
def test_random_programs_are_judged_or_refused(text):
    judged(text)


@QUICK
@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 200), st.sampled_from(LINES)), max_size=8), st.sets(st.integers(0, 200), max_size=8))
def test_scripts_with_lines_lost_and_mixed_are_judged_or_refused(text, inserted, removed):
    lines = [line for number, line in enumerate(text.split("\n")) if number not in removed]
    for place, line in inserted:
        lines.insert(place, line)
    judged("\n".join(lines))


@QUICK
@given(st.binary(max_size=300))
def test_random_bytes_are_judged_or_refused(data):
    judged(data.decode("utf-8", errors="surrogateescape"))
    judged(data.decode("latin-1"), "n.ipynb")


KEYS = st.sampled_from(["cells", "source", "cell_type", "metadata", "worksheets", "input"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["code", "import torch\n", "%%bash"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@QUICK
@given(JSON)
@example({"worksheets": [{"cells": 1}]})
def test_random_notebooks_are_judged_or_refused(document):
    judged(json.dumps(document), "n.ipynb")


@QUICK
@given(st.sampled_from(TEXTS), st.integers(0, 5))
def test_comments_and_blank_lines_move_findings_and_change_nothing_else(text, count):
    moved = "\n".join(line + ("  " if line.strip() and not line.endswith("\\") else "") for line in text.split("\n"))
    before, after = judged(text), judged("# one\n\n" * count + moved)
    assert isinstance(before, tuple) and isinstance(after, tuple)
    assert [(f.code, f.location.line + 2 * count, f.fingerprint) for f in before] == [(f.code, f.location.line, f.fingerprint) for f in after]


@QUICK
@given(st.sampled_from(TEXTS))
def test_findings_of_a_script_are_the_same_in_a_notebook(text):
    cells = [{"cell_type": "code", "source": text.splitlines(keepends=True)}]
    script, notebook = judged(text), judged(json.dumps({"cells": cells}, indent=1), "n.ipynb")
    assert isinstance(script, tuple) and isinstance(notebook, tuple)
    assert [(f.code, f.message) for f in script] == [(f.code, f.message) for f in notebook]


def test_rules_load_without_heavy_imports():
    code = "import sys; from mpdoctor.check.scripts import lint_script; lint_script('t.py', 'import torch'); print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"torch", "numpy", "pandas", "transformers", "yaml", "rich", "typer"}.isdisjoint(loaded)


@QUICK
@given(programs())
def test_repaired_random_programs_are_valid(text):
    try:
        found = lint_script("t.py", text).findings
    except MpdoctorError:
        return
    for finding in found:
        if finding.remedy and finding.remedy.edits:
            after, made = splice(text, finding.remedy.edits)
            assert len(made) == len(finding.remedy.edits)
            ast.parse(after)
