"""Sources read what the reference parsers read, know where everything stands, and refuse the rest in one message."""

from __future__ import annotations

import json
import math
import time
import tomllib

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.check.sources import json_, toml_, yaml_
from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import MAX_DEPTH, Node
from mpdoctor.check.sources.python_ import parse as parse_python
from mpdoctor.core.errors import UnreadableInput


def plain(node: Node):
    if node.is_mapping:
        return {key: plain(child) for key, child in node.mapping.items()}
    return [plain(child) for child in node.items] if node.is_sequence else node.value


SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
KEYS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
TREES = st.dictionaries(
    KEYS, st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12)
)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_json_reads_as_the_standard_library(tree):
    text = json.dumps(tree, indent=1)
    documents = json_.parse(text, "f")
    assert [plain(document.root) for document in documents] == [json.loads(text)]
    assert not documents[0].leniencies


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="0123456789.eE+-_:xobnyestrufalinkNaYEO~ ", max_size=10))
def test_plain_yaml_scalars_read_as_pyyaml_reads_them(text):
    try:
        expected = yaml.safe_load(f"k: {text}")
    except (yaml.YAMLError, ValueError):
        return
    if (
        not isinstance(expected, dict)
        or isinstance(expected.get("k"), (dict, list))
        or not isinstance(expected.get("k"), (str, int, float, type(None)))
    ):
        return
    value = plain(yaml_.parse(f"k: {text}", "f")[0].root)["k"]
    same = value == expected["k"] or (isinstance(value, float) and math.isnan(value) and math.isnan(expected["k"]))
    assert same
    assert type(value) is type(expected["k"])


def test_numbers_that_pyyaml_reads_as_text_keep_their_text():
    root = yaml_.parse("lr: 2e-5\nwd: 1.0e-2\nmode: no\nname: None\n", "f")[0].root
    assert plain(root) == {"lr": "2e-5", "wd": 0.01, "mode": False, "name": "None"}
    assert root.mapping["lr"].raw == "2e-5"


def test_places_point_at_the_key():
    text = "a:\n  b: 1   # c\n  'quoted key': [1, {x: 2}]\n"
    root = yaml_.parse(text, "f")[0].root
    lines = text.split("\n")
    for key, node in root.walk():
        name = key.rpartition(".")[2]
        if not name.isdigit():
            assert name in lines[node.line - 1][node.column - 1 :]
    text = '{\n  "a": {"b": 1},\n  "c": [1, 2]\n}'
    root = json_.parse(text, "f")[0].root
    assert (root.get("a.b").line, root.get("a.b").column) == (2, 9)
    root = toml_.parse('[t]\nx = 1\n[t.u]\ny = """\nz = 2\n"""\nw = [\n 1,\n]\nv = 3\n', "f")[0].root
    assert [root.get(key).line for key in ("t.x", "t.u.y", "t.u.w", "t.u.v")] == [2, 4, 7, 10]


def test_toml_reads_as_the_standard_library():
    text = 'a = 1\nb.c = "x"\n[t]\nlr = 3e-4\n[[runs]]\nn = 1\n[[runs]]\nn = 2\n[inline]\np = {q = 1.5}\n'
    assert plain(toml_.parse(text, "f")[0].root) == tomllib.loads(text)


def test_hjson_as_deepspeed_takes_it():
    document = json_.parse('{\n # c\n zero: {"stage": 2,},\n // c\n fp16: {enabled: true}\n lr: 1e-5, name: plain text\n}', "f")[0]
    assert plain(document.root) == {"zero": {"stage": 2}, "fp16": {"enabled": True}, "lr": 1e-5, "name": "plain text"}
    assert document.leniencies


def test_python_is_read_and_never_run(tmp_path):
    marker = tmp_path / "ran"
    text = f"import pathlib\nlr = 2 * 1e-4\nbase = dict(type='A', lr=lr)\nopt = dict(a=base, b=[1, (2, 3)], c=open({str(marker)!r}, 'w'))\n"
    root = parse_python(text, "f.py")[0].root
    assert plain(root)["base"] == {"type": "A", "lr": 2e-4}
    assert root.get("opt.c").pending
    assert not marker.exists()


def test_unknown_tags_are_not_constructed(tmp_path):
    marker = tmp_path / "ran"
    text = f'a: !!python/object/apply:os.system ["touch {marker}"]\nb: !Custom {{x: 1}}\nc: !!float 3\n'
    root = yaml_.parse(text, "f")[0].root
    assert plain(root) == {"a": [f"touch {marker}"], "b": {"x": 1}, "c": 3.0}
    assert not marker.exists()


def test_anchors_merges_and_several_documents():
    documents = yaml_.parse("d: &d {lr: 1.0, wd: 2.0}\nx: {<<: *d, lr: 3.0}\n---\n---\ny: 1\n", "f")
    assert [plain(document.root) for document in documents] == [{"d": {"lr": 1.0, "wd": 2.0}, "x": {"lr": 3.0, "wd": 2.0}}, {"y": 1}]


def test_duplicate_keys_are_seen():
    assert [(d.key, d.first.line, d.again.line) for d in yaml_.parse("a: 1\nb: 2\na: 3\n", "f")[0].duplicates] == [("a", 1, 3)]
    assert [d.key for d in json_.parse('{"a": 1, "a": 2}', "f")[0].duplicates] == ["a"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks(tmp_path, end, mark):
    path = tmp_path / "a.yaml"
    path.write_bytes(mark + f"bf16: true{end}lr: 1{end}".encode())
    root = load(str(path))[0].root
    assert plain(root) == {"bf16": True, "lr": 1}
    assert root.mapping["lr"].line == 2


def refused(tmp_path, name: str, content: bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content)
    started = time.process_time()
    with pytest.raises(UnreadableInput) as caught:
        load(str(path))
    assert time.process_time() - started < 3
    return caught.value.message.replace(str(path), "F")


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]\n" for i in range(1, 60))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.yaml", b"a: 1\n\tb: 2\n", "F:2:1: not valid YAML"),
        ("a.yaml", b"a: [1, 2\nb: 3\n", "F:2:"),
        ("a.yaml", b"a: 'open\n", "not valid YAML"),
        ("a.yaml", b"a: \xff\xfe\n", "F:1:4: not UTF-8 (byte 0xff)"),
        ("a.yaml", b"a: \x00\n", "binary"),
        ("a.yaml", b"[" * 100_000, "nest"),
        ("a.yaml", b"- " * 100_000, f"deeper than {MAX_DEPTH}"),
        ("a.yaml", b"a: &a\n  b: *a\n", "F:2:6: the anchor &a contains itself"),
        ("a.yaml", b"a: *nowhere\n", "nowhere"),
        ("a.json", b'{"a": 1,\n "b" 2}', "F:2:6: not valid JSON: expected a colon after the key 'b'"),
        ("a.json", b'{"a": ', "expected a value"),
        ("a.json", b'{"a": "x', "closing quote"),
        ("a.json", b"[" * 100_000, f"deeper than {MAX_DEPTH}"),
        ("b.json", b'{"a":' * 100_000, "deeper than"),
        ("a.toml", b"a = \n", "F:1:5: not valid TOML"),
        ("a.toml", b"a = " + b"[" * 10_000, "deeper than"),
        ("a.toml", b"[a]\nx = 1\nx = 2\n", "not valid TOML"),
        ("a.py", b"a = (\n", "not valid Python"),
        ("a.py", b"a = " + b"(" * 5_000, "not valid Python"),
        ("a.sh", b"torchrun x.py --a 'open\n", "expected the closing '"),
        ("a.bmp", b"hello", "no config format"),
    ],
)
def test_refused_with_place_and_reason(tmp_path, name, content, said):
    assert said in refused(tmp_path, name, content)


def test_aliases_cost_what_their_text_costs(tmp_path):
    root = yaml_.parse(LAUGHS, "f")[0].root
    started = time.process_time()
    assert sum(1 for _ in root.walk()) < 1_000
    assert time.process_time() - started < 1


def test_merge_keys_cannot_multiply(tmp_path):
    big = "b: &b {" + ", ".join(f"k{i}: 1" for i in range(2_000)) + "}\n"
    content = (big + "l:\n" + "  - {<<: *b}\n" * 2_000).encode()
    assert "more than" in refused(tmp_path, "a.yaml", content)


def test_huge_and_odd_files(tmp_path):
    assert "larger than" in refused(tmp_path, "a.yaml", b"a: 1\n" * 2_000_000)
    with pytest.raises(UnreadableInput, match="no such file"):
        load(str(tmp_path / "missing.yaml"))
    with pytest.raises(UnreadableInput, match="not a regular file"):
        load(str(tmp_path))
    with pytest.raises(UnreadableInput, match="not a regular file"):
        load("/dev/null")
    (tmp_path / "empty.yaml").write_text("\n\n")
    assert load(str(tmp_path / "empty.yaml")) == []


def test_a_large_log_is_read_without_places(tmp_path):
    entries = [{"step": i, "loss": 1.0, "grad_norm": float("nan")} for i in range(20_000)]
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": entries, "global_step": 1}))
    root = load(str(path))[0].root
    assert len(root.get("log_history").items) == 20_000
    assert root.get("log_history.0.step").span().line is None


def test_shell_quoting_as_scripts_have_it():
    text = (
        "# don't stumble\n"
        'NAME="$(basename "$(pwd)")-${X:-"a b"}"\nHOME_=${HOME_:-"${HOME}/x"}\nN=$((1024 * 2))\n'
        "cat <<'EOF' > f\nit's --fp16 \"inside\nEOF\n"
        'python train.py --run "$NAME" --lr 1e-4 \\\n  --bf16 \'--note\' "it\'s" "$@" | tee log  # it\'s a log\n'
    )
    document = load("run.sh", text)[0]
    assert {key: child.raw for key, child in document.root.mapping.items() if key in ("lr", "bf16", "note")} == {
        "lr": "1e-4",
        "bf16": "true",
        "note": "it's",
    }
    assert document.root.mapping["bf16"].line == 9


def flags(text: str) -> dict[str, object]:
    """Value of each flag of the last command; `?` where a test of the script decides."""
    root = load("run.sh", "#!/bin/bash\n" + text)[-1].root
    return {key: "?" if child.pending else child.raw for key, child in root.mapping.items()}


def test_flags_that_a_test_of_the_script_adds_are_open():
    text = 'A="--bf16"\n[ "$X" = 1 ] && A+=" --fp16"\nif [ $Y ]; then A+=" --tf32"; fi\npython train.py $A --lr 1e-4\n'
    assert flags(text) == {"bf16": "true", "fp16": "?", "tf32": "?", "lr": "1e-4"}


def test_a_value_that_one_branch_changes_is_open():
    assert flags("LR=1e-4\nif [ $Y ]; then\n  LR=3e-4\nfi\npython train.py --lr $LR --eps 1e-6\n") == {"lr": "?", "eps": "1e-6"}
    assert flags('LR=1e-4\nif [ $Y ]; then LR=3e-4; fi\npython train.py --lr="$LR"\n') == {"lr": "?"}


def test_branches_of_case_are_open():
    assert flags('case $P in\n  a) W="--fp16" ;;\n  *) W="--bf16" ;;\nesac\npython train.py $W --lr 1\n') == {"fp16": "?", "bf16": "?", "lr": "1"}


def test_what_is_set_in_the_branch_that_runs_it_is_settled():
    assert flags('if [ $T ]; then\n  A="--fp16"\n  python train.py $A --lr 1\nfi\n') == {"fp16": "true", "lr": "1"}
    assert flags("cd src && export LR=1e-4 && python train.py --lr $LR\n") == {"lr": "1e-4"}


def test_an_array_that_takes_itself_up_is_added_to():
    text = 'A=(--bf16 --lr 1)\nif [ $T ]; then\n  A=("${A[@]}" --fp16)\nfi\npython train.py "${A[@]}"\n'
    assert flags(text) == {"bf16": "true", "lr": "1", "fp16": "?"}


def test_a_loop_runs():
    assert flags("for i in 1 2; do\n  A='--fp16'\ndone\npython train.py $A --lr 1\n") == {"fp16": "true", "lr": "1"}


@pytest.mark.parametrize("more", ['"$@"', "$EXTRA", '"${EXTRA[@]}"', "--x $Y $EXTRA"])
def test_flags_that_come_from_elsewhere_leave_defaults_open(more):
    document = load("run.sh", f"#!/bin/bash\npython train.py --bf16 --lr 1e-4 {more}\n")[-1]
    assert document.incomplete
    assert document.root.mapping["lr"].raw == "1e-4"


def test_a_variable_as_value_leaves_nothing_else_open():
    document = load("run.sh", "#!/bin/bash\npython $SCRIPT --output_dir $OUT --lr 1e-4\n")[-1]
    assert not document.incomplete
    assert document.root.mapping["output_dir"].pending


def test_a_here_document_that_is_read_into_a_variable_is_its_value():
    text = "read -r -d '' ARGS <<EOF\ntrain.py \\\n  --lr 1e-4 \\\n  --bf16\nEOF\ncat <<EOF\n--fp16\nEOF\npython $ARGS --eps 1e-6\n"
    document = load("run.sh", "#!/bin/bash\n" + text)[-1]
    found = {key: (node.raw, node.line) for key, node in document.root.mapping.items()}
    assert found == {"lr": ("1e-4", 4), "bf16": ("true", 5), "eps": ("1e-6", 10)}


def test_a_notebook_may_be_larger_than_a_config(tmp_path):
    cell = {"cell_type": "code", "source": "a = TrainingArguments(output_dir='x')\n", "outputs": [{"data": {"image/png": "A" * 9_000_000}}]}
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [cell]}))
    assert [document.constructor for document in load(str(path))] == ["TrainingArguments"]
