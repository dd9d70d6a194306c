"""AMD, Intel, Apple and CPUs, from recorded files; and files that are not what they should be."""

import json

import pytest

from mpdoctor.core.device import Support
from mpdoctor.gpu.backends import amd, amdsmi, apple, cpu, intel, sysctl, sysfs
from mpdoctor.gpu.examine import examine
from mpdoctor.gpu.probe import probe
from mpdoctor.report.formats import json as json_format
from mpdoctor.report.renderer import RenderOptions
from tests.gpu.conftest import MACHINES


def test_amd_gpus_come_in_hips_order_with_their_target():
    first, second = amd.read(MACHINES / "mi300x_pair", library=False)
    assert (first.name, first.metric("target").value, first.ref.uuid) == ("AMD Instinct MI300X OAM", "gfx942", "GPU-0x1a2b3c4d5e6f7081")
    assert [gpu.metric("pci_bus_id").value for gpu in (first, second)] == ["0000:0c:00.0", "0000:22:00.0"]
    assert first.metric("memory_total_bytes").value == 192 << 30
    assert second.metric("ecc_corrected_volatile").value == 5 and second.metric("ecc_uncorrected_volatile").value == 0
    assert first.metric("temperature_celsius").value == 41.0 and first.metric("power_watts").value == 140.0
    assert first.formats.fp8 is Support.TENSOR_CORES


def test_amd_errors_are_summed_over_blocks_and_pages_counted():
    sick, well = amd.read(MACHINES / "mi250_sick", library=False)
    assert sick.metric("ecc_uncorrected_volatile").value == 3 and sick.metric("ecc_dram_uncorrected_volatile").value == 2
    assert (sick.metric("retired_pages_double_bit").value, sick.metric("retired_pages_pending").value) == (2, True)
    assert (well.metric("retired_pages_double_bit").value, well.metric("retired_pages_pending").value) == (0, False)
    assert sick.name == "AMD Instinct MI250X/MI250", "by its PCI id, where the driver has no product name"


def test_an_amd_card_without_the_compute_driver_is_seen_but_not_judged():
    (gpu,) = amd.read(MACHINES / "amd_without_kfd", library=False)
    assert gpu.name == "AMD Instinct MI210" and gpu.formats.bf16 is Support.UNKNOWN
    assert gpu.metric("target").reason == "the compute driver (/dev/kfd) does not show this GPU"


def test_a_consumer_card_shows_no_error_counters():
    gpu = amd.read(MACHINES / "rx7900_with_igpu", library=False)[0]
    assert gpu.metric("ecc_enabled").value is None and gpu.metric("ecc_enabled").reason == "not shown by this driver"


def test_intel_gpus():
    integrated, arc = intel.read(MACHINES / "arc_a770")
    assert integrated.metric("integrated").value is True and integrated.formats.bf16 is Support.UNKNOWN
    assert (arc.name, arc.metric("memory_total_bytes").value, arc.metric("temperature_celsius").value) == ("Intel Arc A770", 16 << 30, 52.0)
    assert intel.read(MACHINES / "arc_b580")[0].metric("memory_total_bytes").value == 0x2F8000000
    assert [gpu.architecture.value for gpu in intel.read(MACHINES / "max1550")] == ["Xe-HPC"] * 2


@pytest.mark.parametrize(("machine", "bf16"), [("mac_m1", Support.NONE), ("mac_m3", Support.NATIVE), ("mac_intel", Support.NONE)])
def test_macs(machine, bf16):
    (gpu,) = apple.read(MACHINES / machine)
    assert gpu.formats.bf16 is bf16
    assert gpu.metric("system_memory_bytes").value == 32 << 30
    assert apple.read(MACHINES / "old_xeon") == ()


@pytest.mark.parametrize(
    ("machine", "name", "bf16"),
    [
        ("xeon_amx", "Intel(R) Xeon(R) Platinum 8480+", Support.TENSOR_CORES),
        ("old_xeon", "Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", Support.EMULATED),
        ("graviton3", "Neoverse V1", Support.NATIVE),
        ("mac_m3", "Apple M3 Max", Support.NATIVE),
        ("hostile", "CPU part unknown", Support.EMULATED),
    ],
)
def test_cpus(machine, name, bf16):
    found = cpu.read(MACHINES / machine)
    assert (found.name, found.formats.bf16, found.source) == (name, bf16, "cpu")


def test_a_machine_without_proc_still_has_a_cpu(tmp_path):
    assert cpu.read(tmp_path).architecture.reason == "No such file or directory"


def test_hostile_files_cost_one_reading_each():
    report = examine(probe(root=MACHINES / "hostile", environ={}))
    assert report.crashes == ()
    json.loads(json_format.render(report, RenderOptions()))
    (gpu,) = [gpu for gpu in report.gpus if gpu.vendor == "amd"]
    assert gpu.metric("target").value == "gfx942"


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"-1", b"12 34", b"0x", b"9" * 5000, "٣".encode(), b"1e9", b"nan"])
def test_odd_numbers_are_readings_not_errors(content, tmp_path):
    file = tmp_path / "number"
    file.write_bytes(content)
    reading = sysfs.number(file)
    assert (reading.value is None) != (reading.reason is None)


def test_files_that_cannot_be_read_say_why(tmp_path):
    assert sysfs.text(tmp_path / "none").reason == "not shown by this driver"
    assert sysfs.text(tmp_path).reason == "Is a directory"
    locked = tmp_path / "locked"
    locked.write_text("1")
    locked.chmod(0)
    assert sysfs.text(locked).reason in (None, "no permission")  # root may read it


def test_sysctl_lines():
    assert sysctl.parse("a.b: 1\nnonsense\nc: x: y\n") == {"a.b": "1", "c": "x: y"}


FAKE_AMDSMI = """
import enum

class AmdSmiTemperatureType(enum.IntEnum):
    HOTSPOT = 1

class AmdSmiTemperatureMetric(enum.IntEnum):
    CURRENT = 0

def amdsmi_init():
    print("AMD SMI says hello on stdout")

def amdsmi_get_processor_handles():
    return ["a", "b"]

def amdsmi_get_gpu_device_bdf(handle):
    return {"a": "0000:0C:00.0", "b": "0000:22:00.0"}[handle]

def amdsmi_get_gpu_asic_info(handle):
    return {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942"}

def amdsmi_get_gpu_vram_info(handle):
    return {"vram_size": 196608}

def amdsmi_get_gpu_total_ecc_count(handle):
    if handle == "b":
        raise RuntimeError("AMDSMI_STATUS_NOT_SUPPORTED")
    return {"correctable_count": 2, "uncorrectable_count": 0, "deferred_count": 0}

def amdsmi_get_gpu_bad_page_info(handle):
    return "No bad pages found."

def amdsmi_get_temp_metric(handle, sensor, metric):
    return 47
"""


@pytest.fixture
def with_amdsmi(tmp_path, monkeypatch):
    (tmp_path / "amdsmi.py").write_text(FAKE_AMDSMI)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_amd_smi_adds_what_the_files_do_not_have(with_amdsmi):
    told = amdsmi.ask(30)
    assert told["0000:0c:00.0"]["name"] == "AMD Instinct MI300X"
    assert told["0000:0c:00.0"]["ecc_corrected_volatile"] == 2
    assert "ecc_corrected_volatile" not in told["0000:22:00.0"]
    assert told["0000:0c:00.0"]["retired_pages_double_bit"] == 0
    first, second = amd.read(MACHINES / "mi300x_pair", library=True)
    assert (first.name, first.source) == ("AMD Instinct MI300X", "amdsmi")
    assert first.metric("temperature_celsius").value == 41.0, "what the kernel tells stands"
    assert second.metric("ecc_corrected_volatile").value == 5


def test_amd_smi_that_crashes_costs_what_it_would_have_told(with_amdsmi):
    (with_amdsmi / "amdsmi.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    assert amdsmi.ask(30) == {}
    assert len(amd.read(MACHINES / "mi300x_pair", library=True)) == 2


def test_without_amd_smi_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(amdsmi, "find_spec", lambda name: None)
    assert amdsmi.ask(1) == {}
