"""What a name stands for where a script or a notebook hands it to a class that takes settings."""

from __future__ import annotations

import json

import pytest

from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.sources.load import load


def lr(code: str) -> object:
    """The learning rate that the script's TrainingArguments get; None where it cannot be told."""
    (document,) = [d for d in load("train.py", code) if d.constructor == "TrainingArguments"]
    node = document.root.mapping["learning_rate"]
    return None if node.pending else node.value


ARGUMENTS = "TrainingArguments(output_dir='x', learning_rate=lr)"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"lr = 1e-4\nargs = {ARGUMENTS}\n", 1e-4),
        (f"lr = 1e-4\ndef main():\n    return {ARGUMENTS}\n", 1e-4),
        (f"lr = 1e-4\ndef main():\n    lr = 2e-4\n    return {ARGUMENTS}\n", 2e-4),
        (f"lr = 1e-4\nargs = {ARGUMENTS}\nlr = 5\n", 1e-4),
        (f"base = 1e-4\nlr = base * 2\nargs = {ARGUMENTS}\n", 2e-4),
        (f"lr = 1e-4\ndef main(lr):\n    return {ARGUMENTS}\n", None),
        (f"lr = 1e-4\ndef main():\n    return {ARGUMENTS}\nlr = 5\n", None),
        (f"lr = 1e-4\nif x:\n    lr = 5\nargs = {ARGUMENTS}\n", None),
        (f"for lr in (1, 2):\n    args = {ARGUMENTS}\n", None),
        (f"lr = lr * 2\nargs = {ARGUMENTS}\n", None),
        (f"a = b\nb = a\nlr = a\nargs = {ARGUMENTS}\n", None),
        (f"class C:\n    lr = 1\n    def f(self):\n        return {ARGUMENTS}\n", None),
        (f"from config import lr\nargs = {ARGUMENTS}\n", None),
        (f"f = lambda lr: {ARGUMENTS}\n", None),
    ],
)
def test_a_name_stands_for_what_one_assignment_says(code, expected):
    assert lr(code) == expected


def test_names_that_double_are_read_once():
    code = "a0 = 1\n" + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(40)) + "lr = a40\n"
    assert lr(code + f"args = {ARGUMENTS}\n") == 2**40


def test_keywords_of_a_known_dict_are_taken_up():
    code = "common = dict(learning_rate=1e-4, fp16=True)\nargs = TrainingArguments(output_dir='x', fp16=False, **common)\n"
    (document,) = [d for d in load("train.py", code) if d.constructor]
    assert {key: node.value for key, node in document.root.mapping.items()} == {"output_dir": "x", "fp16": True, "learning_rate": 1e-4}
    assert not document.incomplete


@pytest.mark.parametrize("before", ["", "common = {}\ncommon['fp16'] = True\n", "common = dict(a=1)\ncommon.update(x)\n"])
def test_keywords_from_elsewhere_leave_defaults_open(before, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(f"import torch\n{before}args = TrainingArguments(output_dir='x', learning_rate=1e-5, **common)\n")
    (config,) = check_files([str(path)], Options()).configs
    assert config.lr.value == 1e-5
    assert not config.warmup_steps.known
    assert not config.compute_dtype.known


def notebook(*cells: str | list[str]) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}, indent=1)


def test_settings_in_a_notebook_are_judged_and_told_by_cell_and_line(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(
        notebook(
            ["%pip install transformers\n", "import torch\n", "é = 'lr'; rate = 4e-2\n"],
            "from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir='\"x\"',\tlearning_rate=rate,\n)\nrate = 1\n",
        )
    )
    (finding,) = [f for f in check_files([str(path)], Options()).findings if f.code == "CFG306"]
    assert finding.evidence[0].text == "cell 2, line 3: learning_rate"
    line = path.read_text().split("\n")[finding.location.line - 1]
    assert line[finding.location.column - 1 :].startswith("learning_rate=rate")


def test_magics_change_no_place(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(["!nvidia-smi\n", "x = !ls\n", "args = SFTConfig(output_dir='x', learning_rate=0.5)\n"]))
    (document,) = load(str(path))
    node = document.root.mapping["learning_rate"]
    assert path.read_text().split("\n")[node.line - 1][node.column - 1 :].startswith("learning_rate=0.5")
    assert document.rows[(node.line, node.column)] == "cell 1, line 3"


def test_a_notebook_without_settings_or_in_another_language_has_none(tmp_path):
    assert load("a.ipynb", notebook("x = 1\n")) == []
    other = {"cells": [{"cell_type": "code", "source": "x <- 1"}], "metadata": {"language_info": {"name": "R"}}}
    assert load("a.ipynb", json.dumps(other)) == []


def test_a_value_that_several_constructions_share_keeps_its_place(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(
        notebook(
            ["names = ['q', 'v']\n"], ["x = 1\n"] * 40, ["a = LoraConfig(r=8, target_modules=names)\n", "b = LoraConfig(r=4, target_modules=names)\n"]
        )
    )
    lines = path.read_text().split("\n")
    for document in load(str(path)):
        node = document.root.get("target_modules.0")
        assert lines[node.line - 1][node.column - 1 :].startswith("'q'")


@pytest.mark.parametrize(
    ("value", "told"), [("torch.float16", True), ("Kind.COSINE", True), ("args.dtype", False), ("self.config.dtype", False), ("f().dtype", False)]
)
def test_an_attribute_tells_something_only_of_a_library(value, told):
    code = f"import torch\nfrom own import Kind\nSFTConfig(output_dir='x', torch_dtype={value})\n"
    (document,) = [d for d in load("train.py", code) if d.constructor]
    assert bool(document.root.mapping["torch_dtype"].pending) is not told
