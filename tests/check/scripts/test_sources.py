"""Scripts and notebooks are read within bounds, and every place leads back to the user's file."""

from __future__ import annotations

import json

import pytest

from mpdoctor.check.scripts import lint_script, looks_like_training
from mpdoctor.check.scripts.notebook import read_notebook
from mpdoctor.check.scripts.source import MAX_CHARACTERS, read_script
from mpdoctor.core.errors import NothingToJudge, UnreadableInput

FAULT = "torch.autograd.set_detect_anomaly(True)\n"


def notebook(*cells: str | list[str], indent: int | None = 1, **metadata: object) -> str:
    made = [{"cell_type": "markdown", "metadata": {}, "source": ["# Training\n", "text"]}]
    made += [{"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [{"text": [FAULT]}], "source": cell} for cell in cells]
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=indent)


def finding_of(path: str, text: str):
    (finding,) = lint_script(path, text).findings
    return finding


@pytest.mark.parametrize("before", ["import torch\n", "import torch\r\n", "\ufeffimport torch\n", "import torch\n\x0c\n", "import torch  # ä€𝄞\n"])
def test_finding_names_line_and_column_whatever_the_line_ends_and_the_encoding(before):
    text = before + "é = 'ä'; " + FAULT
    at = finding_of("t.py", text).location
    assert at.line == before.count("\n") + 1
    assert at.column == 10  # in characters, not in bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nfor x in y\n    pass\n", "t.py:2:11: not valid Python 3"),
        ("print 'hello'\n", "t.py:1:1: not valid Python 3"),
        ("x = '\ud800'\n", "not valid Python 3"),
        ("x = " + "1" * 5000 + "\n", "not valid Python 3"),
        ("import torch\n\0\n", "t.py:2: binary"),
        ("(" * 500 + ")" * 500, "not valid Python 3"),
        ("x = " + "-" * 50_000 + "1", "nested too deeply"),
        ("x = " + "+".join(["y"] * 50_000), "nested too deeply"),
        ("import torch\nx = a" + ".b" * 20_000 + "\n", "nested too deeply"),
        ("x = 1\n" * (MAX_CHARACTERS // 6 + 1), "more than the"),
    ],
    ids=["syntax", "python2", "surrogate", "digits", "zero byte", "brackets", "unary", "sum", "attributes", "long"],
)
def test_what_cannot_be_parsed_is_refused_in_one_clear_message(text, expected):
    with pytest.raises(UnreadableInput) as caught:
        lint_script("t.py", text)
    assert expected in caught.value.message


def test_expression_that_parses_but_is_too_deep_for_the_rules_is_refused_or_judged():
    deep = "import torch\nx = " + "f(" * 90 + "y" + ")" * 90 + "\n"
    assert lint_script("t.py", deep).crashes == ()


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "import json\nx = 1\n"])
def test_script_without_torch_is_said_to_be_not_looked_at(text):
    ran = lint_script("t.py", text)
    assert ran.findings == ()
    assert [skipped.what for skipped in ran.skipped] == ["t.py"]


def test_invalid_escape_in_a_string_prints_no_warning(recwarn):
    lint_script("t.py", "import torch\nx = '\\d'\n")
    assert not recwarn.list


@pytest.mark.parametrize("indent", [1, None, 4])
def test_notebook_finding_points_at_the_line_of_the_file_and_at_the_cell(indent):
    text = notebook(["import torch\n", "x = 1\n"], ["y = 2\n", FAULT], indent=indent)
    finding = finding_of("n.ipynb", text)
    assert finding.location.key == "cell 3"
    assert finding.evidence[0].text.startswith("cell 3, line 2: torch.autograd")
    line = text.split("\n")[finding.location.line - 1]
    assert json.dumps(FAULT) in line
    if indent:
        assert line.strip() == json.dumps(FAULT)


@pytest.mark.parametrize("source", ["import torch\nx = 1\n" + FAULT, ["import torch\nx = 1\n", FAULT]])
def test_notebook_with_several_lines_in_one_string_counts_rows_within_the_cell(source):
    finding = finding_of("n.ipynb", notebook(source))
    assert finding.evidence[0].text.startswith("cell 2, line 3:")


def test_magics_do_not_hide_the_code_around_them():
    magics = ["%matplotlib inline\n", "!pip install torch \\\n", "  torchvision\n", "files = !ls\n", "?torch\n"]
    finding = finding_of("n.ipynb", notebook([*magics, "import torch\n", FAULT, "  \n", "torch.nn?"]))
    assert finding.evidence[0].text.startswith("cell 2, line 7:")


def test_percent_at_the_start_of_a_continued_line_is_no_magic():
    source = read_notebook("n.ipynb", notebook(["x = (7\n", "% 4)\n"]))
    assert source.text == "x = (7\n% 4)\n"


@pytest.mark.parametrize(
    ("cell", "why"),
    [("%%bash\nls\n", "%%bash"), ("%%html\n<b>", "%%html"), ("def f(:\n", "not valid Python 3"), ("%%\nx", "not Python")],
)
def test_cell_that_is_not_python_is_left_out_and_listed(cell, why):
    ran = lint_script("n.ipynb", notebook("import torch\n" + FAULT, cell))
    assert [finding.code for finding in ran.findings] == ["CFG021"]
    assert [(skipped.what, why in skipped.why) for skipped in ran.skipped] == [("n.ipynb cell 3", True)]


@pytest.mark.parametrize("magic", ["%%time\n", "%%capture out\n", "%%writefile train.py\n"])
def test_cell_whose_magic_runs_python_is_judged(magic):
    finding = finding_of("n.ipynb", notebook("import torch", magic + FAULT))
    assert finding.evidence[0].text.startswith("cell 3, line 2:")


def test_top_level_await_is_python_in_a_notebook():
    assert lint_script("n.ipynb", notebook("import torch\nawait f()\n")).skipped == ()


def test_old_notebook_format_is_read():
    sheet = {"cells": [{"cell_type": "code", "input": ["import torch\n", FAULT], "language": "python"}]}
    finding = finding_of("n.ipynb", json.dumps({"worksheets": [sheet], "metadata": {}, "nbformat": 3}, indent=1))
    assert finding.evidence[0].text.startswith("cell 1, line 2:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "n.ipynb:1:2: not a notebook"),
        ("[]", "no list of cells"),
        ('{"cells": 3}', "no list of cells"),
        ("[" * 100_000, "not a notebook"),
        (notebook("def f(:\n"), "none of its 1 code cells"),
    ],
)
def test_what_is_no_notebook_is_refused(text, expected):
    with pytest.raises(UnreadableInput) as caught:
        lint_script("n.ipynb", text)
    assert expected in caught.value.message


@pytest.mark.parametrize("cell", [1, None, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 3}, {"cell_type": "code", "source": [1]}])
def test_malformed_cells_are_survived(cell):
    ran = lint_script("n.ipynb", json.dumps({"cells": [cell]}))
    assert ran.findings == () and ran.crashes == ()


def test_notebook_in_another_language_is_not_judged():
    with pytest.raises(NothingToJudge):
        lint_script("n.ipynb", notebook("x <- 1", kernelspec={"language": "R"}))


def test_fingerprint_survives_edits_elsewhere_and_tells_faults_apart():
    first = finding_of("t.py", "import torch\n" + FAULT)
    moved = finding_of("t.py", "import torch\n\n# more\n\n" + FAULT)
    other = finding_of("t.py", "import torch\ndef f():\n    " + FAULT)
    assert first.fingerprint == moved.fingerprint != other.fingerprint


def test_select_and_ignore_take_codes_prefixes_and_slugs():
    text = "import torch\n" + FAULT + "torch.cuda.is_bf16_supported()\n"
    assert {f.code for f in lint_script("t.py", text).findings} == {"CFG021", "CFG023"}
    assert {f.code for f in lint_script("t.py", text, select=["anomaly-mode-left-on"]).findings} == {"CFG021"}
    assert {f.code for f in lint_script("t.py", text, select=["CFG02"], ignore=["CFG021"]).findings} == {"CFG023"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nloss.backward()\n", True),
        ("from lightning import LightningModule\n", True),
        ("import torch\nprint(torch.__version__)\n", False),
        ("import numpy as np\nnp.exp(1)\n", False),
        (notebook("import torch\n", "loss.backward()"), True),
    ],
)
def test_prefilter_tells_what_may_train(text, expected):
    assert looks_like_training(text) is expected


def test_segment_of_a_node_over_several_lines_is_put_on_one():
    source = read_script("t.py", "x = f(\n    'ä',  \n    2,\n)\n")
    assert source.segment(source.tree.body[0].value) == "f( 'ä', 2, )"
