"""No input makes `check` crash: random bytes, damaged real files, random trees. MPDOCTOR_FUZZ sets the number of examples."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpdoctor.check.dialect import dialects
from mpdoctor.check.hf_arguments import V4_KEYS
from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.reader import Reader
from mpdoctor.check.repair import repairs
from mpdoctor.check.report import made_report
from mpdoctor.check.sources.json_ import parse as parse_json
from mpdoctor.check.sources.load import load
from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.errors import MpdoctorError
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.location import DeviceRef

COUNT = int(os.environ.get("MPDOCTOR_FUZZ", "80"))
FIXTURES = [path for path in sorted((Path(__file__).parents[2] / "fixtures" / "configs").glob("*/*")) if path.is_file()]
A100 = GpuInfo(ref=DeviceRef(name="A100"), vendor="nvidia", source="table", compute_capability=Reading((8, 0)))
MORE = settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck), database=None)
NAMES = st.sampled_from(["a.yaml", "a.json", "a.toml", "a.py", "a.sh", "a.ipynb", "a", "a.yml"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples: making one for each costs more than the examples."""
    return tmp_path_factory.mktemp("fuzz")


def survives(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.write_bytes(content)
    options = Options(gpus=(A100,))
    try:
        result = check_files([str(path)], options)
    except MpdoctorError as error:
        assert "\n" not in error.message
        return
    assert not result.crashes, result.crashes[0].traceback
    report = made_report(result, options)
    to_json([report.findings, report.config, report.skipped])
    for finding in report.findings:
        assert finding.message
        assert len(finding.fingerprint) == 16
    for _ in range(5):
        planned = repairs(result.findings, result.documents)
        for repair in planned:
            repair.write()
        result = check_files([str(path)], options) if planned else result
    assert not planned, "repairing comes to an end"


@MORE
@given(NAMES, st.binary(max_size=300))
def test_random_bytes(folder, name, content):
    survives(folder, name, content)


@MORE
@given(st.sampled_from(FIXTURES), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 40), st.binary(max_size=8)), max_size=6))
def test_damaged_files(folder, fixture, cuts):
    content = fixture.read_bytes()
    for at, length, insert in cuts:
        at %= len(content) + 1
        content = content[:at] + insert + content[at + length :]
    survives(folder, fixture.name, content)


def known_keys() -> list[str]:
    keys = {"learning_rate", "lr", "eps", "fp16", "bf16", "enabled", "optimizer", "params", "trainer", "precision", "model", "type", *V4_KEYS}
    for fixture in FIXTURES:
        if fixture.suffix in (".yaml", ".yml", ".json"):
            for document in load(str(fixture)):
                keys |= {part for key, _ in document.root.walk() for part in key.split(".")}
    return sorted(keys)


NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 1, 2**32, 1e400, 1e-320, -0.0, 10**400])
TEXTS = st.sampled_from(
    ["auto", "???", "${a.b}", "2e-5", "no", "fp16", "bfloat16", "AdamW", "16-true", "t5-base", "google/gemma-3-4b", "zero3", ""]
) | st.text(max_size=6)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
TREE_KEYS = st.deferred(lambda: st.sampled_from(known_keys())) | st.text(max_size=5)
TREES = st.dictionaries(
    TREE_KEYS,
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TREE_KEYS, inner, max_size=5), max_leaves=20),
    max_size=14,
)


@MORE
@given(TREES, st.sampled_from(sorted(dialects())))
@example({"optim": []}, "llamafactory")
def test_every_dialect_lifts_any_tree(tree, name):
    documents = parse_json(json.dumps(tree), "f.json")
    for document in documents:
        dialects()[name].lift(Reader(document)).settings()
        for dialect in dialects().values():
            assert dialect.claim(document) >= 0


@MORE
@given(TREES, st.booleans())
def test_random_trees(folder, tree, as_yaml):
    text = yaml.safe_dump(tree, allow_unicode=True) if as_yaml else json.dumps(tree)
    survives(folder, "a.yaml" if as_yaml else "a.json", text.encode("utf-8", "replace"))
