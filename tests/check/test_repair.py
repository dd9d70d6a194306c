"""`--diff` and `--fix`: safe edits in the user's own text."""

from __future__ import annotations

import pytest

from mpdoctor.check.engine import RULES
from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.repair import repairs
from mpdoctor.check.sources.load import load
from mpdoctor.core import rule
from mpdoctor.core.finding import Confidence, Edit, Finding, Remedy, Severity
from mpdoctor.core.location import FileSpan


def plan(*paths, gpus=()):
    result = check_files([str(path) for path in paths], Options(gpus=gpus))
    return repairs(result.findings, result.documents), {finding.code for finding in result.findings}


YAML = b"""# my run\r
learning_rate: 2e-5     # tuned\r
output_dir: 'out'\r
bf16: true\r
\r
tf32: true  # not here\r
warmup_steps: 100\r
warmup_ratio: 0.1\r
"""


def test_comments_formatting_and_line_ends_stay(tmp_path, cards):
    path = tmp_path / "train.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + YAML)
    planned, _ = plan(path, gpus=(cards("v100"),))
    assert path.read_bytes() == b"\xef\xbb\xbf" + YAML, "planning writes nothing"
    planned[0].write()
    expected = YAML.replace(b"2e-5 ", b"2.0e-5 ").replace(b"tf32: true  # not here\r\n", b"").replace(b"warmup_ratio: 0.1\r\n", b"")
    assert path.read_bytes() == b"\xef\xbb\xbf" + expected.replace(b"2.0e-5", b"2.0e-5")
    again, codes = plan(path, gpus=(cards("v100"),))
    assert not again, "a second run changes nothing"
    assert not codes & {"CFG901", "CFG106", "CFG313"}


def test_json_values_change_and_comments_stay(tmp_path):
    (tmp_path / "train.yaml").write_text("learning_rate: 2.0e-5\noutput_dir: out\nbf16: true\nper_device_train_batch_size: 4\n")
    ds = tmp_path / "ds.json"
    ds.write_text(
        '{\n  // hjson\n  "train_micro_batch_size_per_gpu": 8, // wrong\n  "zero_optimization": {"stage": 2},\n  "bf16": {"enabled": "auto"}\n}\n'
    )
    planned, codes = plan(tmp_path / "train.yaml", ds)
    assert "CFG803" in codes
    assert [repair.path for repair in planned] == [str(ds)]
    planned[0].write()
    assert '"train_micro_batch_size_per_gpu": "auto", // wrong' in ds.read_text()
    assert plan(tmp_path / "train.yaml", ds)[0] == []


def test_diff_is_a_unified_diff(tmp_path):
    path = tmp_path / "train.yaml"
    path.write_text("learning_rate: 2e-5\noutput_dir: out\nbf16: true")
    diff = plan(path)[0][0].diff()
    assert "-learning_rate: 2e-5\n+learning_rate: 2.0e-5\n" in diff
    assert diff.startswith(f"--- a/{path}\n+++ b/{path}\n")


def test_what_stands_twice_is_left_alone(tmp_path):
    path = tmp_path / "train.yaml"
    path.write_text("output_dir: out\nbf16: true\nother: &x 2e-5\nlearning_rate: *x\nlr_again: {learning_rate: 1}\n")
    for repair in plan(path)[0]:
        repair.write()
    text = path.read_text()
    assert "learning_rate: *x" in text


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "train.yaml"
    path.write_text("learning_rate: 2e-5\noutput_dir: out\nbf16: true\n")
    result = check_files([str(path)], Options())
    path.write_text("output_dir: out\nbf16: true\nlearning_rate: 3.0e-5\n")
    assert repairs(result.findings, result.documents) == []


def test_settings_in_scripts_are_never_edited(tmp_path):
    path = tmp_path / "mm.py"
    path.write_text("default_hooks = dict()\noptim_wrapper = dict(type='AmpOptimWrapper', loss_scale=512, optimizer=dict(type='SGD', lr=0.01))\n")
    planned, codes = plan(path)
    assert "CFG211" in codes
    assert planned == []


@pytest.mark.parametrize("tested", rule.load(RULES), ids=lambda r: r.code)
def test_repairing_an_example_removes_the_finding_and_settles(tested, tmp_path, cards):
    for example in tested.doc.examples:
        if not example.bad or example.language not in ("yaml", "json", "toml") or "# file:" in example.text:
            continue
        path = tmp_path / f"config.{example.language}"
        path.write_text(example.text)
        gpus = tuple(cards(name) for name in example.options.get("gpu", "").split(",") if name)
        options = Options(dialect=example.dialect, gpus=gpus, version=example.options.get("version"))
        result = check_files([str(path)], options)
        planned = repairs(result.findings, result.documents)
        for repair in planned:
            repair.write()
        after = check_files([str(path)], options)
        assert not {code for repair in planned for code in repair.codes} & {finding.code for finding in after.findings}
        assert repairs(after.findings, after.documents) == []


def test_a_repair_over_several_files_is_made_in_all_or_none(tmp_path):
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for path in paths:
        path.write_text("fp16: true\nlearning_rate: 1.0e-4\noutput_dir: out\n")
    documents = [document for path in paths for document in load(str(path))]

    def edit(path, old="true"):
        return Edit(at=FileSpan(file=str(path), line=1, column=1, key="fp16"), old=old, new="false")

    def finding(*edits):
        remedy = Remedy(text="x", edits=edits)
        return Finding(code="CFG999", slug="x", severity=Severity.ERROR, confidence=Confidence.HIGH, message="x", remedy=remedy)

    both = finding(*map(edit, paths))
    assert [repair.path for repair in repairs([both], documents)] == [str(path) for path in paths]
    half = finding(edit(paths[0]), edit(paths[1], old="not what stands there"))
    assert repairs([half], documents) == []
    alone = finding(edit(paths[0]))
    assert [repair.path for repair in repairs([half, alone], documents)] == [str(paths[0])]
