"""NVML's answers, made into devices: every field optional, every failure with its reason."""

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpdoctor.core.device import Support
from mpdoctor.gpu.backends import nvml
from mpdoctor.gpu.examine import examine
from mpdoctor.report.formats import json as json_format
from mpdoctor.report.formats import text
from mpdoctor.report.renderer import RenderOptions
from tests.gpu.conftest import SPECS

FUNCTIONS = (
    "Name", "UUID", "PciInfo", "CudaComputeCapability", "VirtualizationMode", "MemoryInfo", "MigMode", "MaxMigDeviceCount", "MigDeviceHandleByIndex",
    "EccMode", "TotalEccErrors", "MemoryErrorCounter", "SramEccErrorStatus", "RemappedRows", "RowRemapperHistogram", "RetiredPages",
    "RetiredPagesPendingStatus",
    "RepairStatus", "FieldValues", "CurrentClocksEventReasons", "Temperature", "TemperatureThreshold", "MarginTemperature", "PowerUsage",
    "EnforcedPowerLimit", "PersistenceMode", "ComputeMode", "UtilizationRates", "ComputeRunningProcesses", "HandleByIndex",
)  # fmt: skip
ERRORS = ("NOT_SUPPORTED", "NO_PERMISSION", "GPU_IS_LOST", "RESET_REQUIRED", "UNKNOWN", "FUNCTION_NOT_FOUND", "TIMEOUT", "SEGV", "4711")


def only(machine):
    (gpu,) = machine.gpus
    return gpu


def test_every_field_of_a_healthy_card(read):
    gpu = only(read("a100_ok"))
    assert gpu.ref.uuid == "GPU-11111111-2222-3333-4444-555555555555"
    assert gpu.compute_capability.value == (8, 0) and gpu.architecture.value == "Ampere"
    values = {name: reading.value for name, reading in gpu.metrics.items()}
    assert values["state"] == "ok"
    assert values["memory_total_bytes"] == 80 << 30 and values["memory_reserved_bytes"] == 600 << 20
    assert values["ecc_enabled"] is True and values["ecc_uncorrected_aggregate"] == 0
    assert values["power_watts"] == 61.0 and values["power_limit_watts"] == 400.0
    assert values["virtualization"] == "none" and values["compute_mode"] == "default" and values["recovery_action"] == "none"
    assert values["processes"] == [{"pid": 4242, "memory_bytes": 2 << 30}]
    assert gpu.metric("retired_pages_single_bit").reason == "not supported"


def test_numbers_become_words(read):
    gpu = only(read("a100_sick"))
    assert gpu.metric("clocks_event_reasons").value == ["software power cap", "hardware slowdown", "software thermal", "hardware thermal"]
    assert gpu.metric("recovery_action").value == "reset"
    assert gpu.metric("spare_rows").value == {"max": 600, "high": 30, "partial": 8, "low": 1, "none": 1}
    assert gpu.metric("ecc_enabled_after_reset").value is False


def test_unknown_bits_are_kept(read):
    assert only(read("future")).metric("clocks_event_reasons").value == ["software power cap", "unknown (0x8000000000000000)"]


@pytest.mark.parametrize(
    ("spec", "metric", "reason"),
    [
        ("gtx1660", "ecc_uncorrected_volatile", "not supported"),
        ("ecc_off", "ecc_uncorrected_volatile", "ECC is off"),
        ("b200", "mig_devices", "not supported"),
        ("a100_ok", "mig_devices", "MIG is off"),
        ("mig_container", "memory_total_bytes", "no permission"),
        ("vgpu", "spare_rows", "not asked: in a vGPU guest the question logs a kernel warning"),
        ("old_driver", "temperature_margin_celsius", "not in this driver"),
        ("crash", "power_watts", "the driver's library crashed (SIGSEGV)"),
        ("everything_fails", "memory_total_bytes", "unknown error"),
        ("no_permission", "memory_total_bytes", "no permission"),
        ("gb10", "memory_total_bytes", "not supported: the GPU shares the system's memory"),
    ],
)
def test_what_is_not_known_has_its_reason(spec, metric, reason, read):
    reading = read(spec).gpus[0].metric(metric)
    assert (reading.value, reading.reason) == (None, reason)


def test_an_old_driver_is_asked_by_the_old_names(read):
    gpu = only(read("old_driver"))
    assert gpu.metric("processes").value == [{"pid": 100, "memory_bytes": 1 << 30}]
    assert gpu.metric("memory_reserved_bytes").value is None and gpu.metric("memory_total_bytes").value == 15 << 30
    assert gpu.metric("clocks_event_reasons").value == []
    assert gpu.metric("retired_pages_single_bit").value == 0


def test_a_lost_gpu_leaves_the_others_alone(read):
    gpus = read("eight_one_lost").gpus
    assert [gpu.metric("state").value for gpu in gpus] == ["ok"] * 5 + ["lost"] + ["ok"] * 2
    assert gpus[5].name == "unreadable GPU" and gpus[5].formats.bf16 is Support.UNKNOWN


def test_mig_devices_are_listed(read):
    slices = read("mig").gpus[0].metric("mig_devices").value
    assert [(mig["uuid"][-1], mig["memory_total_bytes"] >> 30, mig["gpu_instance"]) for mig in slices] == [("1", 10, 9), ("2", 20, 5)]


def test_a_name_stands_in_for_the_capability(read):
    gpu = only(read("no_capability"))
    assert gpu.compute_capability.reason == "not readable; by its name it is 8.6"
    assert gpu.formats.bf16 is Support.TENSOR_CORES


def test_a_name_that_is_no_text(read):
    gpu = only(read("undecodable_name"))
    assert gpu.name == "NVIDIA Ampere (name unreadable)"


def test_a_gpu_without_memory_of_its_own_shows_the_systems(read):
    gpu = only(read("gb10", root="spark"))
    assert gpu.metric("system_memory_bytes").value == 120 << 30


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ("a100_ok", "ok"),
        ("empty", "ok"),
        ("mismatch", "mismatch"),
        ("init_unknown", "failed"),
        ("broken", "failed"),
        ("count_fails", "failed"),
        ("no_init_permission", "no-permission"),
        ("crash_init", "crashed"),
    ],
)
def test_states_of_the_driver(spec, state, read):
    assert read(spec).driver.state == state


def test_without_the_library_the_loaders_own_words_are_told(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nonexistent")
    monkeypatch.setattr(nvml.Interview, "__init__", _in_a_new_python(nvml.Interview.__init__))
    driver, gpus = nvml.finish(nvml.start(limit=20, kernel_log=False))
    assert driver.state == "absent" and "libnvidia-ml.so.1" in driver.detail
    assert gpus == ()


def _in_a_new_python(original):
    def init(self, *arguments, answer=None, **keywords):
        original(self, *arguments, **keywords)

    return init


def test_a_file_that_is_no_library_is_told(tmp_path, command):
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    run = command(None, "--output-format", "json", LD_LIBRARY_PATH=str(tmp_path))
    assert run.returncode == 0
    assert "libnvidia-ml.so.1" in json.loads(run.stdout)["environment"]["nvidia_driver"]


def test_without_pynvml_it_says_so(monkeypatch):
    monkeypatch.setattr(nvml, "find_spec", lambda name: None)
    driver, _ = nvml.finish(nvml.start(limit=5, kernel_log=False))
    assert (driver.state, driver.detail) == ("not-asked", "the package nvidia-ml-py is not installed")


def test_the_kernel_log_is_read_in_the_child(read, monkeypatch, fake_nvml):
    """Readable or not: a list of lines, or the reason."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml))
    monkeypatch.setenv("FAKE_NVML_SPEC", str(SPECS / "b200.spec"))
    monkeypatch.setattr(nvml.Interview, "__init__", _in_a_new_python(nvml.Interview.__init__))
    driver, _ = nvml.finish(nvml.start(limit=30, kernel_log=True))
    assert (driver.kernel_log.value is None) == bool(driver.kernel_log.reason)


def test_the_child_imports_little(fake_nvml):
    """Its start is part of every `mpdoctor gpu`."""
    code = nvml._CHILD.replace("nvml_child.main()", "nvml_child._import_pynvml(sys.argv[1]); print(*sys.modules)")
    folders = [str(nvml.Path(nvml.__file__).parent), str(nvml.Path(nvml.find_spec("pynvml").origin).parent)]
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code, *folders], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "pynvml" in loaded
    assert not loaded & {"typing", "subprocess", "shutil", "tempfile", "mpdoctor", "dataclasses", "site"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    faults=st.lists(
        st.dictionaries(st.sampled_from(FUNCTIONS), st.tuples(st.sampled_from(ERRORS), st.integers(1, 3)), max_size=8),
        min_size=1,
        max_size=3,
    ),
    visible=st.sampled_from([None, "", "0", "1,0", "5", "GPU-", "GPU-fa4e0001", "MIG-1", "x", "0,0"]),
    capability=st.sampled_from(["3.5", "6.1", "7.5", "9.0", "12.1", "14.0"]),
)
def test_no_combination_of_failures_breaks_the_report(faults, visible, capability, read, tmp_path):
    lines = []
    for index, fault in enumerate(faults):
        lines += ["[device]", f"name = NVIDIA H100 {index}", f"cc = {capability}", "ecc = on", f"mig = {index % 2}, 1", "remapped_rows = 0, 0, 0, 0"]
        lines += ["mig_device = MIG-1, 7, 0, 10GiB, 1, slice", "process = 1, none"]
        lines += [f"error.nvmlDeviceGet{function} = {error}@{call}" for function, (error, call) in fault.items()]
    spec = tmp_path / "random.spec"
    spec.write_text("\n".join(lines) + "\n")
    machine = read(spec, environ={} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    assert len([gpu for gpu in machine.gpus if gpu.source == "nvml"]) == len(faults)
    report = examine(machine)
    assert report.crashes == ()
    json.loads(json_format.render(report, RenderOptions()))
    assert text.render(report, RenderOptions())
