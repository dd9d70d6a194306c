"""mpdoctor only ever looks: the fake library's log of all calls."""

import re

import pytest

from tests.gpu.conftest import HANGS, spec_names

ALLOWED = re.compile(r"nvml(InitWithFlags|Shutdown|ErrorString|SystemGet\w+|DeviceGet\w+)")


@pytest.mark.parametrize("spec", [name for name in spec_names() if name not in (*HANGS, "crash_init")])
def test_nothing_but_get_functions_is_called(spec, command, tmp_path):
    log = tmp_path / "calls"
    command(spec, FAKE_NVML_LOG=str(log))
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    assert calls, "the log shows what was called"
    assert [call for call in calls if not ALLOWED.fullmatch(call)] == []


def test_a_healthy_gpu_is_asked_all_questions_once(command, tmp_path):
    log = tmp_path / "calls"
    command("b200", FAKE_NVML_LOG=str(log))
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    once = {"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetTemperature", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetSramEccErrorStatus"}
    assert {call: calls.count(call) for call in once} == dict.fromkeys(once, 1)
