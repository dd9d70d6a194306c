"""ms-swift's YAML (`swift sft x.yaml`): TrainingArguments with `torch_dtype` deciding the precision.

`torch_dtype` bfloat16 selects bf16; float16 *and float32* select fp16 autocast. `loss_scale` is the name of a
token-weighting template here. Defaults: ms-swift of August 2026.
"""

from __future__ import annotations

from mpdoctor.check import hf_arguments as hf
from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import model_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "ms-swift 3.9"
MARKS = (
    "tuner_type", "train_type", "torch_dtype", "dataset", "target_modules", "split_dataset_ratio", "model_author", "model_name", "max_length",
    "rlhf_type", "lora_rank", "quant_method", "system", "loss_scale", "tuner_backend", "use_chat_template",
)  # fmt: skip


def claim(document: Document) -> float:
    """A `model` by name and three of its keys."""
    model = document.get("model")
    found = count(document, MARKS)
    named = model is not None and isinstance(model.value, str)
    return 48 + found if named and found >= 3 and "model_name_or_path" not in document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """TrainingArguments with ms-swift's precision and tuner."""
    fields = hf.trainer_fields(reader)
    method = _method(reader)
    adapters = method.value in hf.ADAPTERS
    fields |= _precision(reader, method) | model_settings(reader.text("model"))
    fields |= _quantization(reader, fields.get("compute_dtype", UNKNOWN))
    default = 1e-4 if adapters else 1e-5
    fields |= {
        "lr": reader.number("learning_rate", default=default, note=VERSION),
        "log_every": reader.integer("logging_steps", default=5, note=VERSION),
        "activation_checkpointing": reader.flag("gradient_checkpointing", default=True, note=VERSION),
        "beta2": reader.number("adam_beta2", default=0.95, note=VERSION),
        "weight_decay": reader.number("weight_decay", default=0.1, note=VERSION),
    }
    alias = reader.text("deepspeed")
    if alias.known and str(alias.value).startswith("zero") and len(str(alias.value)) >= 5 and str(alias.value)[4].isdecimal():
        fields |= _zero(alias, fields.get("compute_dtype", UNKNOWN))
    return TrainingConfig(
        dialect="ms_swift",
        files=(reader.path,),
        **fields,
        method=method,
        domain=reader.text("model").becomes("language"),
        sequence_length=reader.integer("max_length"),
        packing=reader.flag("packing"),
        attention=hf.attention(reader.text("attn_impl")),
        lora_rank=reader.integer("lora_rank", default=8, note=VERSION),
        lora_alpha=reader.number("lora_alpha", default=32.0, note=VERSION),
        lora_rank_stabilised=reader.flag("use_rslora"),
        adapter_dtype=reader.dtype("lora_dtype"),
        extra={"ms_swift.torch_dtype": reader.dtype("torch_dtype")},
    )


def _precision(reader: Reader, method: Setting[str]) -> Fields:
    fp16, bf16, dtype = reader.flag("fp16"), reader.flag("bf16"), reader.dtype("torch_dtype")
    if not fp16.written and not bf16.written:
        if not dtype.known:
            return {}  # from the model's config.json when it loads
        compute = dtype.becomes("bf16" if dtype.value == "bf16" else "fp16", "ms-swift derives fp16/bf16 from torch_dtype")
    else:
        compute = hf.switches(bf16 if bf16.written else fp16.becomes(False), fp16 if fp16.written else bf16.becomes(False))
    asked: Fields = {"fp16_requested": fp16, "bf16_requested": bf16}
    fields = asked | {"compute_dtype": compute, "param_dtype": dtype} | hf.scaling(reader, compute) | hf.mode_of(compute, dtype, method)
    if fields.get("precision_mode", UNKNOWN).value == "weights_lowp_autocast" and not reader.has("deepspeed"):
        fields["master_dtype"] = dtype.becomes("none", "ms-swift loads the model in torch_dtype")
    return fields


def _zero(alias: Setting[str], compute: Setting[str]) -> Fields:
    """`deepspeed: zero2` is the name of a built-in config, which keeps fp32 masters."""
    stage = f"zero{str(alias.value)[4]}"
    masters = {
        "precision_mode": compute.becomes("master_weights", f"DeepSpeed {stage}"),
        "master_dtype": compute.becomes("fp32", f"DeepSpeed {stage}"),
        "optimizer_state_dtype": compute.becomes("fp32", f"DeepSpeed {stage}"),
        "reduce_dtype": compute,
    }
    return {"distributed": alias.becomes(stage)} | (masters if compute.value in ("fp16", "bf16") else {})


def _method(reader: Reader) -> Setting[str]:
    tuner = reader.text("tuner_type", "train_type", "sft_type", default="lora", note=VERSION)
    if not tuner.known:
        return UNKNOWN
    preference = reader.has("rlhf_type")
    if tuner.value in ("lora", "longlora", "adalora", "dora"):
        quantised = reader.has("quant_method", "quant_bits")
        return tuner.becomes("prefer_lora" if preference else "qlora" if quantised else "lora")
    if tuner.value == "full":
        return tuner.becomes("prefer_full" if preference else "full_ft")
    return tuner.becomes("other_peft")


def _quantization(reader: Reader, compute: Setting[str]) -> Fields:
    method, bits = reader.text("quant_method"), reader.integer("quant_bits", default=4, note=VERSION)
    if not method.known:
        return {}
    name = {"bnb": f"bnb{bits.value}", "hqq": "hqq", "gptq": "gptq", "awq": "awq"}.get(str(method.value).lower(), "other")
    given = reader.dtype("bnb_4bit_compute_dtype")
    return {
        "quantization": method.becomes(name),
        "quant_compute_dtype": given if given.known else compute,
        "quant_type": reader.text("bnb_4bit_quant_type", default="nf4", note=VERSION),
    }


DIALECT = Dialect(title="ms-swift", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
