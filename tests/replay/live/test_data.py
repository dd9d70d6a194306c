"""Data files as people have them: every spelling of the same rows is read as the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pytest

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.live.data import read_data

pytestmark = pytest.mark.torch

ROWS = [{"text": "the cat, sat", "label": 1}, {"text": "on the mat", "label": 0}, {"text": "the dog ran", "label": 1}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
TABLE = 'text{0}label\n"the cat, sat"{0}1\non the mat{0}0\nthe dog ran{0}1\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", LINES),
        ("a.jsonl", LINES.replace("\n", "\r\n")),
        ("a.jsonl", "\ufeff" + LINES),
        ("a.jsonl", LINES.replace('"text"', '"Text "')),
        ("a.json", json.dumps(ROWS)),
        ("a.json", json.dumps({"version": "1.0", "data": ROWS})),
        ("a.json", json.dumps({"train": ROWS, "test": ROWS[:1]})),
        ("a.json", json.dumps({"text": [row["text"] for row in ROWS], "label": [row["label"] for row in ROWS]})),
        ("a.csv", TABLE.format(",")),
        ("a.csv", "\ufeff" + TABLE.format(",").replace("\n", "\r\n")),
        ("a.csv", TABLE.format(";")),
        ("a.csv", TABLE.format(",").replace("text,label", " Text,LABEL")),
        ("a.tsv", TABLE.format("\t")),
    ],
)
def test_the_same_rows(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8"))
    assert [row.values for row in read_data(tmp_path / name).rows] == ROWS


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n" + LINES.replace("\n", "\n\n"), encoding="utf-8")
    assert [row.line for row in read_data(tmp_path / "a.jsonl").rows] == [2, 4, 6]


def test_parquet_and_arrow(tmp_path: Path) -> None:
    pandas.DataFrame(ROWS).to_parquet(tmp_path / "a.parquet")
    table = pyarrow.Table.from_pylist(ROWS)
    for name, writer in (("stream.arrow", pyarrow.ipc.new_stream), ("file.arrow", pyarrow.ipc.new_file)):
        with writer(str(tmp_path / name), table.schema) as file:
            file.write_table(table)
    for name in ("a.parquet", "stream.arrow", "file.arrow"):
        assert [row.values for row in read_data(tmp_path / name).rows] == ROWS


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"\x00" * 64])
def test_an_arrow_file_that_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.arrow").write_bytes(content)
    with pytest.raises(UnreadableInput, match=r"a\.arrow"):
        read_data(tmp_path / "a.arrow")


@pytest.mark.parametrize(
    ("values", "hint"),
    [({"text": None, "label": 1}, "The row's fields are text (empty), label."), ({}, "The row's fields are none.")],
)
def test_a_row_without_a_text_tells_its_fields(values: dict[str, Any], hint: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(values) + "\n", encoding="utf-8")
    with pytest.raises(UnreadableInput, match=r"a\.jsonl:1: neither input_ids nor a text") as refused:
        read_data(tmp_path / "a.jsonl").sample(0).text()
    assert refused.value.hint == hint
