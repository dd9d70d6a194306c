"""Configs that look wrong and are right: no rule may speak on them (or no louder than said)."""

from __future__ import annotations

import pytest

from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.core.finding import Severity


@pytest.fixture
def codes(tmp_path, cards):
    def run(text, *, name="config.yaml", gpu="", **more):
        path = tmp_path / name
        path.write_text(text)
        paths = [str(path)]
        for other, content in more.items():
            (tmp_path / other.replace("__", ".")).write_text(content)
            paths.append(str(tmp_path / other.replace("__", ".")))
        gpus = tuple(cards(item) for item in gpu.split(",") if item)
        return {finding.code: finding.severity for finding in check_files(paths, Options(gpus=gpus)).findings}

    return run


HF = "output_dir: out\nlearning_rate: 2.0e-5\n"
TRL = "model_name_or_path: meta-llama/Llama-3.1-8B\nuse_peft: {peft}\noutput_dir: out\n"


def test_eps_1e8_with_autocast_is_fine(codes):
    assert "CFG303" not in codes(HF + "fp16: true\nadam_epsilon: 1.0e-8\n")


def test_auto_in_both_deepspeed_blocks_is_not_both(codes):
    text = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4, "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}'
    assert "CFG103" not in codes(text, name="ds.json")


def test_knobs_of_a_block_that_is_off_mean_nothing(codes):
    text = (
        '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true},'
        ' "fp16": {"enabled": false, "loss_scale_window": 3, "initial_scale_power": 40, "hysteresis": 99, "min_loss_scale": 0}}'
    )
    assert not [code for code in codes(text, name="ds.json") if code.startswith("CFG2")]


def test_lora_over_a_16_bit_base_loses_no_updates(codes):
    found = codes(TRL.format(peft="true") + "dtype: bfloat16\nbf16: true\nlearning_rate: 1.0e-5\n")
    assert "CFG302" not in found
    assert "CFG112" not in codes(TRL.format(peft="true") + "dtype: float16\nfp16: true\nlearning_rate: 1.0e-5\n")


def test_fsdp_by_accelerate_keeps_masters(codes):
    found = codes(
        TRL.format(peft="false") + "dtype: bfloat16\nbf16: true\nlearning_rate: 1.0e-5\n",
        accelerate__yaml="distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\nfsdp_config: {fsdp_version: 2}\n",
    )
    assert "CFG302" not in found


def test_zero_keeps_masters_and_takes_fp16_weights(codes):
    ds = '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}'
    assert "CFG302" not in codes(TRL.format(peft="false") + "dtype: bfloat16\nbf16: true\nlearning_rate: 1.0e-5\n", ds__json=ds)
    assert "CFG112" not in codes(TRL.format(peft="false") + "dtype: float16\nfp16: true\nlearning_rate: 1.0e-5\n", ds__json=ds)


def test_tf32_off_matters_in_fp32_only(codes):
    assert "CFG105" not in codes(HF + "bf16: true\ntf32: false\n", gpu="a100")
    assert "CFG105" in codes(HF + "bf16: false\nfp16: false\ntf32: false\n", gpu="a100")


def test_bf16_on_cards_that_torch_calls_supported(codes):
    assert codes(HF + "bf16: true\n", gpu="t4")["CFG101"] is Severity.WARNING
    assert "CFG101" not in codes(HF + "bf16: true\n", gpu="a100")


def test_preference_rates_are_not_too_small(codes):
    assert "CFG310" not in codes(TRL.format(peft="false") + "beta: 0.1\nbf16: true\nlearning_rate: 1.0e-7\n")


@pytest.mark.parametrize("value", ["${lr}", "'???'", "null", "auto", "{{ lr }}", "'${oc.env:LR}'"])
def test_unresolved_values_are_silent(codes, value):
    text = f"model_name_or_path: meta-llama/Llama-3.1-8B\nuse_peft: true\noutput_dir: out\nbf16: true\nlearning_rate: '{value.strip(chr(39))}'\n"
    loud = [code for code, severity in codes(text).items() if severity is not Severity.INFO]
    assert not loud


def test_a_default_is_one_severity_lower(codes):
    text = (
        "trainer: {{precision: bf16-true, max_steps: 100}}\nmodel: {{class_path: m.M}}\n"
        "optimizer: {{class_path: torch.optim.Adam, init_args: {{lr: 1.0e-3{}}}}}\n"
    )
    assert codes(text.format(", betas: [0.9, 0.999]"))["CFG315"] is Severity.ERROR
    axolotl = "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 4\nsequence_len: 512\nlearning_rate: 0.001\nfp16: true\nbf16: false\n"
    assert codes(axolotl + "logging_nan_inf_filter: true\n")["CFG601"] is Severity.WARNING
    assert codes(axolotl)["CFG601"] is Severity.INFO


def test_vision_is_not_judged_by_language_models_rates(codes):
    assert not [code for code in codes("lr0: 0.01\nlrf: 0.01\nimgsz: 640\nnbs: 64\noptimizer: AdamW\n") if code.startswith("CFG30")]


def test_an_empty_map_fires_nothing(codes):
    assert codes("{}\n") == {}
