"""What to train in, and the settings to copy."""

import ast
import json

import pytest
import yaml

from mpdoctor.gpu.examine import examine
from mpdoctor.gpu.fleet import resolve_gpus
from mpdoctor.gpu.probe import of_named, probe
from mpdoctor.gpu.recommend import advise
from mpdoctor.gpu.settings import FRAMEWORKS, settings
from tests.gpu.conftest import MACHINES


@pytest.mark.parametrize(
    ("names", "precision", "scaler", "tf32"),
    [
        (["a100"], "bf16", False, True),
        (["v100"], "fp16", True, False),
        (["t4"], "fp16", True, False),
        (["gtx 1660"], "fp32", False, False),
        (["gtx 1080"], "fp32", False, False),
        (["p100"], "fp16", True, False),
        (["k80"], "fp32", False, False),
        (["v100", "a100"], "fp16", True, False),
        (["a100", "gtx 1660"], "fp32", False, False),
        (["h100", "4090"], "bf16", False, True),
        (["mi300x"], "bf16", False, True),
        (["mi250x"], "bf16", False, False),
        (["rx 6900 xt"], "fp16", True, False),
        (["m1"], "fp32", False, False),
        (["m4"], "bf16", False, False),
        (["arc a770"], "bf16", False, False),
    ],
)
def test_the_weakest_card_decides(names, precision, scaler, tf32):
    advice = advise(resolve_gpus(names))
    assert (advice.precision, advice.scaler, advice.tf32) == (precision, scaler, tf32)
    assert advice.why


@pytest.mark.parametrize(
    ("names", "words"),
    [(["h100"], "delayed"), (["b200"], "MXFP8"), (["5090"], "current scaling"), (["mi300x"], "fnuz"), (["a100"], None), (["h100", "a100"], None)],
)
def test_fp8_where_every_card_has_it(names, words):
    advice = advise(resolve_gpus(names))
    assert (advice.fp8 is None) if words is None else words in advice.fp8


def test_those_who_could_do_better_alone_are_named_with_the_way_to_select_them(read):
    alone = examine(read("mixed_fleet")).recommendation["better_alone"]
    assert [(group["precision"], group["indices"], group["select"]) for group in alone] == [
        ("bf16", [0], "CUDA_VISIBLE_DEVICES=GPU-40904090-0000-0000-0000-000000000001"),
        ("fp16", [1], "CUDA_VISIBLE_DEVICES=GPU-74747474-0000-0000-0000-000000000002"),
    ]
    amd = examine(probe(root=MACHINES / "rx7900_with_igpu", environ={})).recommendation["better_alone"]
    assert [group["select"] for group in amd] == ["HIP_VISIBLE_DEVICES=0"]


@pytest.mark.parametrize("value", ["", "7", "nonsense"])
def test_with_no_gpu_visible_the_cpu_is_advised(value, read):
    report = examine(read("b200", environ={"CUDA_VISIBLE_DEVICES": value}))
    assert report.headline.text.startswith(f"no GPU is visible (CUDA_VISIBLE_DEVICES={value}); on the CPU")
    assert report.recommendation["device"] == "cpu"


def test_hidden_gpus_do_not_decide(read):
    advice = examine(read("mixed_fleet", environ={"CUDA_VISIBLE_DEVICES": "GPU-4090"})).recommendation
    assert advice["precision"] == "bf16"
    assert [device["used"] for device in advice["devices"]] == [True, False, False]


@pytest.mark.parametrize("name", ["a100", "v100", "gtx 1660", "mi300x", "m4", "arc b580"])
def test_settings_are_valid_in_each_frameworks_language(name):
    advice = advise(resolve_gpus([name]))
    snippets = settings(advice)
    assert tuple(snippets) == FRAMEWORKS
    ast.parse(snippets["PyTorch"])
    trainer = {keyword.arg: keyword.value.value for keyword in ast.parse(snippets["HF Trainer"], mode="eval").body.keywords}
    assert trainer.get("bf16", False) is (advice.precision == "bf16")
    assert trainer.get("fp16", False) is (advice.precision == "fp16")
    deepspeed = json.loads("{" + snippets["DeepSpeed"] + "}")
    assert {key for key, section in deepspeed.items() if section["enabled"]} == {advice.precision} - {"fp32"}
    assert yaml.safe_load(snippets["accelerate"])["mixed_precision"] == {"fp32": False}.get(advice.precision, advice.precision)
    assert yaml.safe_load(snippets["torchtune"])["dtype"] in ("bf16", "fp32")
    axolotl = yaml.safe_load(snippets["Axolotl"])
    assert (axolotl["bf16"], axolotl["fp16"]) == (advice.precision == "bf16", advice.precision == "fp16")
    assert isinstance(yaml.safe_load(snippets["LLaMA-Factory"]), dict)
    ast.parse(snippets["Lightning"])


def test_every_precision_has_a_scaler_exactly_when_it_is_fp16():
    for name in ("a100", "v100", "k80"):
        snippet = settings(advise(resolve_gpus([name])))["PyTorch"]
        assert ("GradScaler" in snippet) == (name == "v100")


def test_named_gpus_of_several_makers_count_together():
    report = examine(of_named(resolve_gpus(["v100", "mi300x"])))
    assert report.recommendation["precision"] == "fp16"
    assert [skip.what for skip in report.skipped] == ["health"]


def test_a_cpu_alone_gets_advice():
    report = examine(probe(root=MACHINES / "xeon_amx", environ={}))
    assert report.recommendation["precision"] == "bf16"
    assert "use_cpu=True" in report.recommendation["settings"]["HF Trainer"]
    assert examine(probe(root=MACHINES / "old_xeon", environ={})).recommendation["precision"] == "fp32"
