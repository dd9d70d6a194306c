"""The pickle machine: agrees with the real unpickler on data, builds records of everything else, runs nothing."""

from __future__ import annotations

import collections
import contextlib
import datetime
import enum
import os
import pickle
import pickletools
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpdoctor.replay.checkpoints.pickles import Budget, Danger, Global, PickleFault, danger_of, plain, read_pickle

PROTOCOLS = pytest.mark.parametrize("protocol", range(6))

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=5) | st.tuples(inner, inner),
    max_leaves=30,
)


@settings(max_examples=200, deadline=None)
@given(value=values, protocol=st.integers(0, 5))
def test_data_reads_as_the_real_unpickler_reads_it(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol=protocol)
    found = read_pickle(data)
    assert _strings_for_wide_keys(found.value) == _strings_for_wide_keys(pickle.loads(data))
    assert found.end == len(data)


def _strings_for_wide_keys(value: Any) -> Any:
    """Integers beyond 64 bits may be made to collide as keys; the machine keeps their digits as text."""
    if isinstance(value, dict):
        return {(str(k) if isinstance(k, int) and not -(2**63) <= k < 2**64 else k): _strings_for_wide_keys(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_strings_for_wide_keys(v) for v in value)
    return value


class Mode(enum.Enum):
    FP16 = "fp16"


@dataclass
class Arguments:
    lr: float
    mode: Mode
    out: PurePosixPath
    betas: tuple[float, float]
    nested: Any = None


@PROTOCOLS
def test_an_object_becomes_its_fields(protocol: int) -> None:
    value = Arguments(1e-4, Mode.FP16, PurePosixPath("/runs/a b"), (0.9, 0.95), Arguments(1.0, Mode.FP16, PurePosixPath("x"), (0, 0)))
    found = read_pickle(pickle.dumps(value, protocol=protocol))
    shown = plain(found.value)
    assert shown["lr"] == 1e-4 and shown["mode"] == "fp16" and shown["betas"] == [0.9, 0.95]
    assert shown["out"] == "/runs/a b" and shown["nested"]["lr"] == 1.0
    assert shown["__class__"].endswith("Arguments")


@PROTOCOLS
def test_common_containers_and_numpy_values_are_plain(protocol: int) -> None:
    value = {
        "ordered": collections.OrderedDict(a=1, b=2),
        "default": collections.defaultdict(list, {"x": [1]}),
        "deque": collections.deque([1, 2]),
        "set": {3},
        "frozen": frozenset({4}),
        "scalar": np.float64(0.25),
        "int": np.int32(-7),
        "half": np.float16(1.5),
        "when": datetime.timedelta(days=1),
    }
    shown = plain(read_pickle(pickle.dumps(value, protocol=protocol)).value)
    assert shown["ordered"] == {"a": 1, "b": 2} and shown["default"] == {"x": [1]}
    assert shown["deque"] == [1, 2] and shown["set"] == [3] and shown["frozen"] == [4]
    assert (shown["scalar"], shown["int"], shown["half"]) == (0.25, -7, 1.5)


class Evil:
    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


@PROTOCOLS
@pytest.mark.parametrize(
    "evil", [Evil(os.system, "touch /tmp/mpdoctor-was-here"), Evil(eval, "1/0"), Evil(exec, "raise SystemExit")], ids=["system", "eval", "exec"]
)
def test_calls_are_recorded_and_never_made(protocol: int, evil: Evil) -> None:
    found = read_pickle(pickle.dumps({"weights": [1, 2], "x": evil}, protocol=protocol))
    assert max(danger_of(g) for g in found.imports) is Danger.RUNS_CODE
    assert found.value["weights"] == [1, 2]
    assert not Path("/tmp/mpdoctor-was-here").exists()


@pytest.mark.parametrize(
    ("module", "name", "danger"),
    [
        ("os", "system", Danger.RUNS_CODE),
        ("posix", "system", Danger.RUNS_CODE),
        ("builtins", "getattr", Danger.RUNS_CODE),
        ("torch", "load", Danger.RUNS_CODE),
        ("torch", "os.system", Danger.RUNS_CODE),
        ("torch.hub", "load", Danger.RUNS_CODE),
        ("numpy.testing._private.utils", "runstring", Danger.RUNS_CODE),
        ("transformers.dynamic_module_utils", "get_class_from_dynamic_module", Danger.RUNS_CODE),
        ("my_project.model", "Net", Danger.FOREIGN),
        ("__main__", "Config", Danger.FOREIGN),
        ("torch._utils", "_rebuild_tensor_v2", Danger.EXPECTED),
        ("collections", "OrderedDict", Danger.EXPECTED),
        ("transformers.training_args", "TrainingArguments", Danger.EXPECTED),
        ("builtins", "set", Danger.EXPECTED),
    ],
)
def test_names_are_sorted_by_what_importing_them_could_do(module: str, name: str, danger: Danger) -> None:
    assert danger_of(Global(module, name)) is danger


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "ends too early"),
        (b"\x80\x05]", "ends too early"),
        (b"\x80\x05\x8e" + (10**10).to_bytes(8, "little") + b"abc.", "claims 10,000,000,000 bytes"),
        (b"\x80\x05B\xff\xff\xff\xffabc.", "claims"),
        (b"\x80\x09.", "protocol"),
        (b"\xff.", "unknown opcode"),
        (b"R.", "underflow"),
        (b"t.", "no mark"),
        (b"h\x05.", "memo entry 5"),
        (b".", "holds nothing"),
        (b"I" + b"9" * 100_000 + b"\n.", "digits"),
        (b"Iabc\n.", "malformed"),
        (b"\x8b\xff\xff\xff\x7f.", "an integer of"),
        (b"(K\x01d.", "malformed"),
    ],
)
def test_malformed_pickles_are_faults(data: bytes, why: str) -> None:
    with pytest.raises(PickleFault, match=why):
        read_pickle(data)


def test_opcode_floods_end_at_the_budget() -> None:
    with pytest.raises(PickleFault, match="opcodes") as fault:
        read_pickle(b"]" + b"0]" * 5000 + b".", budget=Budget(opcodes=1000))
    assert fault.value.over_budget


def test_a_memo_index_of_four_billion_costs_one_entry() -> None:
    assert read_pickle(b"]r\xff\xff\xff\xff.").value == []


def test_copies_of_a_memoised_value_are_charged() -> None:
    text = b"x" * 10_000
    codecs = b"c_codecs\nencode\nq\x00" + b"X" + len(text).to_bytes(4, "little") + text + b"q\x01" + b"X\x06\0\0\0latin1q\x02"
    bomb = b"\x80\x02]q\x03" + codecs + b"0" * 3 + b"(" + b"h\x00h\x01h\x02\x86R" * 1000 + b"e."
    with pytest.raises(PickleFault, match="far more than it holds"):
        read_pickle(bomb)


def test_shared_lists_expand_only_to_the_budget() -> None:
    value: Any = ["lol"]
    for _ in range(40):
        value = [value, value]
    found = read_pickle(pickle.dumps(value, protocol=4))
    assert "..." in str(plain(found.value))[-1000:]


def test_nested_tuples_as_keys_do_not_hash_for_hours() -> None:
    nested = b")q\x00" + b"".join(b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(60))
    found = read_pickle(b"\x80\x02}(" + nested + b"0" * 61 + b"h\x3cK\x01u.")
    assert list(found.value.values()) == [1]


def test_depth_beyond_the_interpreters_is_no_crash() -> None:
    deep = b"]" + b"\x85" * 100_000 + b"."
    shown = plain(read_pickle(deep).value)
    assert isinstance(shown, list)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(PickleFault):
        plain(read_pickle(data).value)


def test_every_opcode_of_the_language_is_known() -> None:
    from mpdoctor.replay.checkpoints.pickles.opcodes import HANDLERS

    known = set(HANDLERS) | {ord(".")}
    missing = {op.name for op in pickletools.opcodes if ord(op.code) not in known}
    assert missing == {"NEXT_BUFFER", "READONLY_BUFFER"}  # out-of-band buffers have no place in a file
