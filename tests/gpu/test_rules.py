"""The rules: documented, each fires where it should, none on healthy hardware."""

from dataclasses import replace

import pytest

from mpdoctor.core import rule
from mpdoctor.core.device import GpuInfo, known
from mpdoctor.core.finding import Severity
from mpdoctor.core.location import DeviceRef
from mpdoctor.gpu.examine import RULES, examine, judge
from mpdoctor.gpu.fleet import resolve_gpus
from mpdoctor.gpu.probe import of_named, probe
from mpdoctor.gpu.require import parse
from mpdoctor.gpu.torch_install import TorchInstall
from tests.gpu.conftest import FIXTURES, MACHINES

ALL = rule.load(RULES)
SECTIONS = ("What it looks for", "Why training breaks", "When it is fine", "How to confirm", "References")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.code)
def test_each_rule_is_documented(each):
    assert each.code.startswith("GPU") and len(each.code) == 6
    assert tuple(each.doc.sections) == SECTIONS
    assert all(each.doc.sections.values())
    assert each.doc.summary.endswith(".")


def codes(machine) -> dict[str, str]:
    judged = judge(machine)
    assert judged.crashes == ()
    return {finding.code: finding.severity.value for finding in judged.findings}


BY_SPEC = {
    "mismatch": {"GPU101": "error"},
    "init_unknown": {"GPU103": "error"},
    "no_init_permission": {"GPU103": "warning"},
    "crash": {"GPU104": "warning", "GPU312": "info"},
    "one_lost": {"GPU105": "error", "GPU312": "info"},
    "reset_required": {"GPU105": "error"},
    "no_permission": {"GPU106": "warning"},
    "gtx1660": {"GPU210": "warning", "GPU211": "info", "GPU312": "info", "GPU403": "info"},
    "two_5090": {"GPU212": "info", "GPU312": "info"},
    "future": {"GPU215": "info", "GPU314": "info"},
    "sram_threshold": {"GPU302": "error"},
    "spare_rows_low": {"GPU305": "warning"},
    "remap_pending": {"GPU301": "info", "GPU304": "warning", "GPU309": "error"},
    "ecc_off": {"GPU311": "warning"},
    "mig_empty": {"GPU404": "warning"},
    "mig_seven": {"GPU405": "info"},
    "vgpu": {"GPU407": "info"},
    "v100_retired": {"GPU211": "info", "GPU301": "info", "GPU306": "warning", "GPU307": "warning"},
    "worn_k80": {"GPU301": "info", "GPU307": "error", "GPU314": "warning", "GPU403": "info", "GPU406": "error"},
    "b200": {},
    "p100": {},
    "empty": {},
    "eight_one_lost": {"GPU105": "error"},
    "a100_sick": {
        "GPU301": "error", "GPU303": "error", "GPU304": "warning", "GPU305": "warning", "GPU308": "warning", "GPU309": "error", "GPU311": "warning",
        "GPU313": "warning", "GPU314": "warning", "GPU403": "info",
    },
    "mixed_fleet": {"GPU201": "warning", "GPU210": "warning", "GPU211": "info", "GPU312": "info", "GPU402": "warning"},
}  # fmt: skip

BY_MACHINE = {
    "mi250_sick": {"GPU213": "info", "GPU301": "error", "GPU306": "warning", "GPU307": "warning", "GPU313": "warning"},
    "mi300x_pair": {"GPU214": "info"},
    "mi355x": {},
    "xeon_amx": {},
    "intel_integrated": {},
}


@pytest.mark.parametrize(("spec", "expected"), BY_SPEC.items(), ids=BY_SPEC)
def test_rules_fire_on_nvidia_machines(spec, expected, read):
    assert codes(read(spec)) == expected


@pytest.mark.parametrize(("machine", "expected"), BY_MACHINE.items(), ids=BY_MACHINE)
def test_rules_fire_on_other_machines(machine, expected):
    assert codes(probe(root=MACHINES / machine, environ={})) == expected


def test_the_driver_that_is_not_loaded(read, monkeypatch, tmp_path):
    spec = tmp_path / "not_loaded.spec"
    spec.write_text("[system]\nerror.nvmlInit = DRIVER_NOT_LOADED\n")
    assert codes(read(spec)) == {"GPU102": "warning"}


@pytest.mark.parametrize(
    ("torch", "spec", "expected"),
    [
        (TorchInstall(version="2.13.0+cpu"), "b200", {"GPU111": "warning"}),
        (TorchInstall(version="2.11.0+cu130", cuda="13.0", kernels=((7, 5), (8, 0), (12, 0))), "p100", {"GPU110": "error"}),
        (TorchInstall(version="2.11.0+cu130", cuda="13.0", kernels=((8, 0), (10, 0))), "b200", {}),
        (TorchInstall(version="2.99+cu140", cuda="14.0"), "b200", {"GPU112": "error"}),
        (TorchInstall(version="2.99+cu130", cuda="13.2"), "b200", {}),
        (TorchInstall(version="2.11+rocm6.4", hip="6.4"), "b200", {"GPU111": "warning"}),
        (None, "b200", {}),
    ],
)
def test_the_installed_torch_is_held_against_gpu_and_driver(torch, spec, expected, read):
    assert codes(replace(read(spec), torch=torch)) == expected


def test_what_torch_claims_is_held_against_the_truth(read):
    device = {"ordinal": 0, "name": "Tesla T4", "capability": [7, 5], "bf16_claimed": True, "bf16_native": False, "hip": False}
    says = {"arch_list": ["sm_80"], "devices": [device], "flags": {"matmul.allow_fp16_accumulation": True}}
    machine = replace(read("old_driver"), torch=TorchInstall(version="2.13+cu126", cuda="11.4"), torch_says=says)
    found = codes(machine)
    assert found["GPU203"] == "info" and found["GPU204"] == "warning"
    assert found["GPU110"] == "error", "torch's own list has no 7.5"
    notes = examine(machine).notes
    assert any("torch calls bf16 supported; it is not native" in note for note in notes)


def test_a_wrong_variable_is_told(read):
    assert codes(read("b200", environ={"CUDA_VISIBLE_DEVICES": "7"})) == {"GPU401": "warning"}
    assert codes(read("b200", environ={"CUDA_VISIBLE_DEVICES": ""})) == {"GPU401": "info"}
    assert codes(read("b200", environ={"CUDA_VISIBLE_DEVICES": "0"})) == {}


def test_xids_are_weighed_by_their_number(read):
    machine = read("eight_one_lost", log=FIXTURES / "kernel_log" / "xids.log")
    found = [f for f in judge(machine).findings if f.code == "GPU310"]
    assert [(f.severity, f.cause) for f in found] == [(Severity.WARNING, "hardware"), (Severity.WARNING, "hardware"), (Severity.INFO, None)]


def test_a_requirement_that_is_not_met_is_an_error():
    machine = replace(of_named(resolve_gpus(["v100", "a100"])), required=parse(["bf16"]))
    found = [f for f in judge(machine).findings if f.code == "GPU202"]
    assert [f.location.name for f in found] == ["Tesla V100"]


def test_unknown_support_does_not_open_the_gate():
    machine = replace(probe(root=MACHINES / "amd_without_kfd", environ={}), required=parse(["fp16:emulated"]))
    assert "GPU202" in codes(machine)


def test_rules_can_be_selected_and_ignored(read):
    machine = read("a100_sick")
    assert {f.code for f in judge(machine, select=["GPU30"]).findings} == {"GPU301", "GPU303", "GPU304", "GPU305", "GPU308", "GPU309"}
    assert "GPU301" not in {f.code for f in judge(machine, ignore=["uncorrected-memory-errors"]).findings}


def test_every_rule_fired_somewhere_in_these_tests():
    here = {code for table in (BY_SPEC, BY_MACHINE) for expected in table.values() for code in expected}
    elsewhere = {"GPU102", "GPU110", "GPU111", "GPU112", "GPU202", "GPU203", "GPU204", "GPU310", "GPU401"}
    assert {each.code for each in ALL} == here | elsewhere


def test_an_unread_gpu_fires_nothing_and_is_listed():
    ref = DeviceRef(name="NVIDIA A100", index=0, uuid=None)
    bare = GpuInfo(ref=ref, vendor="nvidia", source="nvml")
    for each in rule.load(f"{RULES}.device"):
        ran = rule.run([each], bare, known)
        assert ran.crashes == () and ran.findings == ()
