"""`CUDA_VISIBLE_DEVICES` and its relatives, parsed as torch does."""

import pytest

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.location import DeviceRef
from mpdoctor.gpu.visible import MIG, MIXED, visible


def gpu(index, name="NVIDIA A100", uuid=None, vendor="nvidia", **metrics):
    ref = DeviceRef(name=name, index=index, uuid=uuid or f"GPU-{index}{index}{index}{index}-ab")
    return GpuInfo(ref=ref, vendor=vendor, source="nvml", metrics={key: Reading(value) for key, value in ({"state": "ok"} | metrics).items()})


FOUR = [gpu(i) for i in range(4)]
MIXED_PAIR = [gpu(0, "NVIDIA T4"), gpu(1, "NVIDIA A100")]


def indices(value, gpus=FOUR, **environ):
    return [device.index for device in visible(gpus, {"CUDA_VISIBLE_DEVICES": value, **environ}).devices]


def test_unset_leaves_everything_in_order():
    seen = visible(FOUR, {})
    assert [d.index for d in seen.devices] == [0, 1, 2, 3]
    assert seen.certain and seen.variable is None and seen.hidden == ()


@pytest.mark.parametrize(
    ("value", "left", "words"),
    [
        ("2,0", [2, 0], ""),
        ("0", [0], ""),
        ("", [], "empty"),
        ("  ", [], "empty"),
        ("-1", [], "no device is visible"),
        ("NoDevFiles", [], "no device is visible"),
        ("1,-1,2", [1], "the list ends there"),
        ("1,x,2", [1], "'x' is no device"),
        ("1gpu2,2ampere", [1, 2], ""),
        ("0,0", [], "listed twice"),
        ("0,9,1", [0], "there is no device 9"),
        ("9", [], "there is no device 9"),
        (" 1 , 3 ", [1, 3], ""),
    ],
)
def test_lists_of_numbers(value, left, words):
    seen = visible(FOUR, {"CUDA_VISIBLE_DEVICES": value})
    assert [d.index for d in seen.devices] == left
    assert [d.ordinal for d in seen.devices] == list(range(len(left)))
    assert words in seen.problem and bool(words) == bool(seen.problem)
    assert seen.hidden == tuple(i for i in range(4) if i not in left)


@pytest.mark.parametrize(
    ("value", "left", "words"),
    [
        ("GPU-2222-ab", [2], ""),
        ("GPU-3,GPU-0", [3, 0], ""),
        ("GPU-", [], "short for several"),
        ("GPU-9", [], "no device here"),
        ("GPU-1,GPU-9,GPU-2", [1], "the list ends there"),
        ("GPU-1,GPU-1111", [], "listed twice"),
        ("GPU-1,2", [1], "does not start with GPU-"),
    ],
)
def test_lists_of_uuids(value, left, words):
    seen = visible(FOUR, {"CUDA_VISIBLE_DEVICES": value})
    assert [d.index for d in seen.devices] == left
    assert words in seen.problem and bool(words) == bool(seen.problem)


def test_numbers_of_different_gpus_are_uncertain_without_a_fixed_order():
    seen = visible(MIXED_PAIR, {"CUDA_VISIBLE_DEVICES": "1"})
    assert seen.uncertain == MIXED and [d.index for d in seen.devices] == [None]
    assert indices("1", MIXED_PAIR, CUDA_DEVICE_ORDER="PCI_BUS_ID") == [1]
    assert visible(MIXED_PAIR, {}).uncertain == MIXED
    assert visible(MIXED_PAIR, {"CUDA_VISIBLE_DEVICES": "GPU-1"}).certain


def test_lost_gpus_are_not_counted():
    gpus = [gpu(0), gpu(1, state="lost"), gpu(2)]
    assert indices("1", gpus) == [2]


def test_mig_devices():
    slices = [
        {"uuid": "MIG-aa-1", "name": "A100 MIG 1g", "gpu_instance": 7, "compute_instance": 0},
        {"uuid": "MIG-aa-2", "name": "A100 MIG 2g", "gpu_instance": 5, "compute_instance": 0},
    ]
    gpus = [gpu(0, uuid="GPU-parent", mig_enabled=True, mig_devices=slices), gpu(1, mig_enabled=False)]
    assert visible(gpus, {}).uncertain == MIG
    assert [d.uuid for d in visible(gpus, {"CUDA_VISIBLE_DEVICES": "MIG-aa-2"}).devices] == ["MIG-aa-2"]
    assert [d.name for d in visible(gpus, {"CUDA_VISIBLE_DEVICES": "MIG-GPU-parent/7/0"}).devices] == ["A100 MIG 1g"]
    both = visible(gpus, {"CUDA_VISIBLE_DEVICES": "MIG-aa-1,MIG-aa-2"})
    assert "one MIG device only" in both.problem


def test_amd_variables_filter_one_after_the_other():
    gpus = [gpu(i, "MI300X", f"GPU-{i}", "amd") for i in range(4)]
    assert [d.index for d in visible(gpus, {"HIP_VISIBLE_DEVICES": "2,1"}).devices] == [2, 1]
    assert [d.index for d in visible(gpus, {"ROCR_VISIBLE_DEVICES": "3,2", "HIP_VISIBLE_DEVICES": "1"}).devices] == [2]
    assert [d.index for d in visible(gpus, {"CUDA_VISIBLE_DEVICES": "1"}).devices] == [1]
    assert [d.index for d in visible(gpus, {"ROCR_VISIBLE_DEVICES": "GPU-3"}).devices] == [3]
    assert "not here" in visible(gpus, {"ROCR_VISIBLE_DEVICES": "7"}).problem


def test_no_gpus_no_failure():
    assert visible([], {"CUDA_VISIBLE_DEVICES": "0"}).devices == ()
