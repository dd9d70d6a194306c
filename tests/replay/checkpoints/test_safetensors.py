"""safetensors files: what the header says is listed, what contradicts it is a problem."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mpdoctor.core.errors import NothingToJudge, UnreadableInput
from mpdoctor.replay.checkpoints import ProblemKind, Role, open_checkpoint


def write(path: Path, header: object, data: bytes = b"", *, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype: str = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_tensors_are_listed_with_dtype_shape_and_place(tmp_path: Path) -> None:
    tensors = {
        "a.weight": torch.arange(6.0).reshape(2, 3),
        "b.weight": torch.ones(4, dtype=torch.bfloat16),
        "c": torch.zeros(3, dtype=torch.float8_e4m3fn),
        "n": torch.tensor([7]),
        "x.lora_A.weight": torch.ones(2, 2),
    }
    save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "pt"})
    found = open_checkpoint(tmp_path / "m.safetensors")
    assert found.format == "safetensors" and not found.problems
    by_name = {t.name: t for t in found.tensors}
    assert {n: (t.dtype, t.shape) for n, t in by_name.items()} == {n: (str(t.dtype)[6:], tuple(t.shape)) for n, t in tensors.items()}
    assert by_name["x.lora_A.weight"].role is Role.ADAPTER and by_name["a.weight"].role is Role.WEIGHT
    raw = (tmp_path / "m.safetensors").read_bytes()
    a = by_name["a.weight"]
    assert struct.unpack("<6f", raw[a.offset : a.offset + a.extent]) == tuple(range(6))
    assert found.extra["metadata"] == {"format": "pt"}


def test_a_file_cut_in_its_data_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    save_file({"a": torch.ones(4), "b": torch.ones(1000)}, tmp_path / "m.safetensors")
    data = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").write_bytes(data[:-2000])
    found = open_checkpoint(tmp_path / "m.safetensors")
    assert [p.kind for p in found.problems] == [ProblemKind.TRUNCATED]
    assert len(found.tensors) == 1


@pytest.mark.parametrize(
    ("entries", "data", "kind"),
    [
        ({"a": entry(offsets=(0, 12))}, b"\0" * 12, ProblemKind.MALFORMED),
        ({"a": entry(dtype="F99")}, b"\0" * 8, ProblemKind.MALFORMED),
        ({"a": entry(dtype="F4"), "b": entry(offsets=(8, 16))}, b"\0" * 16, ProblemKind.NOT_JUDGED),
        ({"a": entry(shape=(-2,))}, b"\0" * 8, ProblemKind.MALFORMED),
        ({"a": entry(shape=(2**63, 2**63), offsets=(0, 2**70))}, b"", ProblemKind.MALFORMED),
        ({"a": {"dtype": "F32"}}, b"\0" * 8, ProblemKind.MALFORMED),
        ({"a": 5}, b"", ProblemKind.MALFORMED),
        ({"a": entry(), "b": entry(offsets=(4, 12))}, b"\0" * 12, ProblemKind.MALFORMED),
        ({"a": entry()}, b"\0" * 16, ProblemKind.MALFORMED),
        ({"a": entry(shape="xy")}, b"\0" * 8, ProblemKind.MALFORMED),
    ],
)
def test_entries_that_contradict_the_format_are_problems(tmp_path: Path, entries: object, data: bytes, kind: ProblemKind) -> None:
    found = open_checkpoint(write(tmp_path / "m.safetensors", entries, data))
    assert [p.kind for p in found.problems] == [kind]


def test_a_file_of_nothing_but_unreadable_dtypes_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NothingToJudge, match="F4"):
        open_checkpoint(write(tmp_path / "m.safetensors", {"a": entry(dtype="F4")}, b"\0" * 8))


def test_a_name_given_twice_is_a_duplicate(tmp_path: Path) -> None:
    one = json.dumps(entry())
    found = open_checkpoint(write(tmp_path / "m.safetensors", f'{{"a": {one}, "a": {one}}}'.encode(), b"\0" * 8))
    assert [p.kind for p in found.problems] == [ProblemKind.DUPLICATE]


@pytest.mark.parametrize("content", [b"", b"\0", b"{}", b"hello world, this is no checkpoint", b"\x10\0\0\0\0\0\0\0{" + b" " * 40])
def test_what_is_no_checkpoint_is_refused_with_one_message(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(UnreadableInput) as refused:
        open_checkpoint(path)
    assert str(path) in refused.value.message and refused.value.hint


def test_a_header_length_that_lies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="the header claims"):
        open_checkpoint(write(tmp_path / "m.safetensors", {"a": entry()}, b"\0" * 8, length=2**40))


def test_deeply_nested_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="no JSON"):
        open_checkpoint(write(tmp_path / "m.safetensors", b'{"a":' + b"[" * 200_000))
