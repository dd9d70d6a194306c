"""mpdoctor only ever looks: the fake library's log of all calls."""

import re

import pytest

from tests.gpu.conftest import HANGS, spec_names

ALLOWED = re.compile(r"nvml(InitWithFlags|Shutdown|ErrorString|SystemGet\w+|DeviceGet\w+)")


@pytest.fixture
def calls(read, monkeypatch, tmp_path):
    """Names of all functions that are called to read the machine of a spec."""

    def calls(spec: str) -> list[str]:
        log = tmp_path / "calls"
        monkeypatch.setenv("FAKE_NVML_LOG", str(log))
        read(spec)
        return [line.split()[0] for line in log.read_text().splitlines()]

    return calls


@pytest.mark.parametrize("spec", [name for name in spec_names() if name not in (*HANGS, "crash_init")])
def test_nothing_but_get_functions_is_called(spec, calls):
    called = calls(spec)
    assert called, "the log shows what was called"
    assert [call for call in called if not ALLOWED.fullmatch(call)] == []


def test_a_healthy_gpu_is_asked_all_questions_once(calls):
    called = calls("b200")
    once = {"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetTemperature", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetSramEccErrorStatus"}
    assert {call: called.count(call) for call in once} == dict.fromkeys(once, 1)
