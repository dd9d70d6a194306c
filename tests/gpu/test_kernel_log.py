"""Xid errors from the kernel log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.gpu import kernel_log
from tests.gpu.conftest import FIXTURES

LOG = FIXTURES / "kernel_log" / "xids.log"


def test_errors_belong_to_the_gpu_of_their_address():
    found = kernel_log.xids(kernel_log.read(LOG).value)
    assert {where: [(xid.number, xid.count) for xid in xids] for where, xids in found.items()} == {
        (0, 1, 0): [(63, 1), (94, 2)],
        (0, 2, 0): [(31, 1)],
        (0, 6, 0): [(79, 1)],  # "fallen off the bus" without a number
    }
    assert found[0, 1, 0][1].last.startswith("[ 4713.000001]")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0000:07:00", (0, 7, 0)),
        ("00000000:07:00.0", (0, 7, 0)),
        ("07:00.0", (0, 7, 0)),
        ("0000000F:01:00.0", (15, 1, 0)),
        ("10:1c", (0, 16, 28)),
        ("x", None),
        ("", None),
    ],
)
def test_addresses_however_they_are_written(text, numbers):
    assert kernel_log.address(text) == numbers


def test_only_the_end_of_a_huge_log_is_read(tmp_path):
    log = tmp_path / "kern.log"
    log.write_bytes(b"NVRM: Xid (PCI:0000:01:00): 48, old\n" + b"x" * (5 << 20) + b"\nNVRM: Xid (PCI:0000:01:00): 79, new\n")
    assert [xid.number for xid in kernel_log.xids(kernel_log.read(log).value)[0, 1, 0]] == [79]


def test_a_log_that_cannot_be_read_says_why(tmp_path):
    assert "No such file" in kernel_log.read(tmp_path / "none").reason
    assert "Is a directory" in kernel_log.read(tmp_path).reason
    assert kernel_log.fallback(tmp_path, "no permission").reason.startswith("the kernel log cannot be read (no permission)")


def test_the_systems_log_is_the_way_out(tmp_path):
    (tmp_path / "var/log").mkdir(parents=True)
    (tmp_path / "var/log/messages").write_text("NVRM: Xid (PCI:0000:01:00): 48, x\nsshd: hello\n")
    assert kernel_log.fallback(tmp_path, "no permission").value == ["NVRM: Xid (PCI:0000:01:00): 48, x"]


@given(st.lists(st.text(max_size=80).map(lambda text: f"NVRM: Xid ({text}): 13, x") | st.text(max_size=80)))
def test_no_line_makes_it_fail(lines):
    kernel_log.xids(lines)
