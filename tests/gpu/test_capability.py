"""What a generation computes in."""

import pytest

from mpdoctor.core.device import Support
from mpdoctor.gpu.capability import amd, apple, cpu, intel, nvidia

TC, NATIVE, EMULATED, STORAGE, NONE, UNKNOWN = (
    Support.TENSOR_CORES, Support.NATIVE, Support.EMULATED, Support.STORAGE, Support.NONE, Support.UNKNOWN,
)  # fmt: skip


@pytest.mark.parametrize(
    ("capability", "fp16", "bf16", "tf32", "fp8", "fp4"),
    [
        ((3, 5), STORAGE, NONE, NONE, NONE, NONE),
        ((5, 2), STORAGE, STORAGE, NONE, NONE, NONE),
        ((5, 3), NATIVE, STORAGE, NONE, NONE, NONE),
        ((6, 0), NATIVE, STORAGE, NONE, NONE, NONE),
        ((6, 1), STORAGE, STORAGE, NONE, NONE, NONE),
        ((7, 0), TC, EMULATED, NONE, NONE, NONE),
        ((7, 2), TC, EMULATED, NONE, NONE, NONE),
        ((7, 5), TC, EMULATED, NONE, NONE, NONE),
        ((8, 0), TC, TC, TC, NONE, NONE),
        ((8, 6), TC, TC, TC, NONE, NONE),
        ((8, 7), TC, TC, TC, NONE, NONE),
        ((8, 9), TC, TC, TC, TC, NONE),
        ((9, 0), TC, TC, TC, TC, NONE),
        ((10, 0), TC, TC, TC, TC, TC),
        ((11, 0), TC, TC, TC, TC, TC),
        ((12, 1), TC, TC, TC, TC, TC),
        ((14, 0), TC, TC, TC, TC, TC),
    ],
)
def test_nvidia_by_compute_capability(capability, fp16, bf16, tf32, fp8, fp4):
    found = nvidia.formats(capability)
    assert (found.fp16, found.bf16, found.tf32, found.fp8, found.fp4) == (fp16, bf16, tf32, fp8, fp4)


@pytest.mark.parametrize(
    ("name", "pci", "without"),
    [
        ("NVIDIA GeForce GTX 1660 SUPER", 0x1F0910DE, True),  # a cut-down TU106: only the name tells
        ("NVIDIA GeForce GTX 1650", 0, True),
        ("NVIDIA T1000 8GB", 0, True),
        ("Quadro T2000 with Max-Q Design", 0, True),
        ("NVIDIA T400 4GB", 0, True),
        ("NVIDIA GeForce MX450", 0, True),
        ("Graphics Device", 0x218210DE, True),  # TU116
        ("Graphics Device", 0x1F8210DE, True),  # TU117
        ("Graphics Device", 0x1E0410DE, False),  # TU102
        ("Tesla T4", 0x1EB810DE, False),
        ("NVIDIA TITAN RTX", 0, False),
        ("NVIDIA GeForce RTX 2060", 0, False),
        ("Quadro RTX 5000", 0, False),
    ],
)
def test_turing_with_and_without_tensor_cores(name, pci, without):
    assert nvidia.lacks_tensor_cores((7, 5), name, pci) is without
    assert (nvidia.formats((7, 5), name, pci).fp16 is STORAGE) is without
    assert not nvidia.lacks_tensor_cores((8, 6), name, pci)


def test_a_newer_nvidia_gpu_says_what_is_assumed():
    assert "not in the table: judged like the newest known" in nvidia.formats((14, 0)).notes[0]
    assert nvidia.architecture((14, 0)) is None


@pytest.mark.parametrize(
    ("version", "target"),
    [(90402, "gfx942"), (90010, "gfx90a"), (90008, "gfx908"), (90500, "gfx950"), (110000, "gfx1100"), (120001, "gfx1201"), (0, None)],
)
def test_the_kernel_drivers_number_is_an_llvm_target(version, target):
    assert amd.target(version) == target


def test_amd_by_target():
    assert amd.formats("gfx942").fp8 is TC and "240" in amd.formats("gfx942").notes[0]
    assert "subnormals" in amd.formats("gfx90a:sramecc+:xnack-").notes[0]
    assert amd.formats("gfx1030").bf16 is EMULATED
    assert amd.formats("gfx1100").bf16 is TC
    assert amd.formats("gfx9999").bf16 is UNKNOWN and "not in the table" in amd.formats("gfx9999").notes[0]


def test_intel_by_pci_id():
    assert intel.family(0x56A0) == "Xe-HPG" and intel.name(0x56A0) == "Intel Arc A770"
    assert intel.family(0x0BD5) == "Xe-HPC"
    assert intel.family(0xE20B) == "Xe2"
    assert intel.family(0x5917) is None and intel.formats(None).bf16 is UNKNOWN


@pytest.mark.parametrize(
    ("chip", "macos", "bf16"),
    [
        ("Apple M1", (14, 2), EMULATED),
        ("Apple M2 Ultra", (15,), EMULATED),
        ("Apple M3 Max", (14, 0), NATIVE),
        ("Apple M4", None, NATIVE),
        ("Apple M3", (13, 6), NONE),
        ("Intel(R) Core(TM) i9", (14,), NONE),
        ("Mystery", None, UNKNOWN),
    ],
)
def test_apple_by_chip_and_macos(chip, macos, bf16):
    assert apple.formats(chip, macos).bf16 is bf16


@pytest.mark.parametrize(
    ("flags", "bf16", "fp16"),
    [
        ({"avx2"}, EMULATED, EMULATED),
        ({"avx512f", "avx512_bf16"}, NATIVE, EMULATED),
        ({"amx_bf16", "amx_tile", "avx512_bf16", "avx512_fp16"}, TC, NATIVE),
        ({"amx_bf16", "amx_fp16"}, TC, TC),
        ({"asimd", "asimdhp", "bf16"}, NATIVE, NATIVE),
        (set(), EMULATED, EMULATED),
    ],
)
def test_cpus_by_flags(flags, bf16, fp16):
    found = cpu.formats(flags)
    assert (found.bf16, found.fp16) == (bf16, fp16)
