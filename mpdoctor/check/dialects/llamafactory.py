"""LLaMA-Factory's YAML: TrainingArguments plus `finetuning_type`, `stage`, `template`.

Trainable weights are cast to fp32 unless `pure_bf16` (or BAdam, or ZeRO-3 without quantisation), so
`bf16: true` means autocast over fp32 weights here. Defaults: LLaMA-Factory of August 2026.
"""

from __future__ import annotations

from mpdoctor.check import hf_arguments as hf
from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import model_settings, pure
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "LLaMA-Factory 0.9"
MARKS = (
    "finetuning_type", "stage", "cutoff_len", "lora_target", "lora_rank", "template", "overwrite_cache", "preprocessing_num_workers",
    "quantization_bit", "pure_bf16", "dataset_dir", "max_samples", "use_galore", "use_badam", "flash_attn", "pref_beta", "pref_loss",
)  # fmt: skip


def claim(document: Document) -> float:
    """A model and three of its keys."""
    found = count(document, MARKS)
    return 50 + found if "model_name_or_path" in document.keys and found >= 3 else 0


def lift(reader: Reader) -> TrainingConfig:
    """TrainingArguments with LLaMA-Factory's own precision, method and quantisation."""
    fields = hf.trainer_fields(reader)
    fields["optimizer_family"] = _family(reader, fields.get("optimizer_family", UNKNOWN))
    method = _method(reader)
    fields |= _precision(reader, method) | model_settings(reader.text("model_name_or_path"))
    fields |= _quantization(reader, fields["compute_dtype"])
    return TrainingConfig(
        dialect="llamafactory",
        files=(reader.path,),
        **fields,
        method=method,
        domain=reader.text("model_name_or_path").becomes("language"),
        sequence_length=reader.integer("cutoff_len", default=2048, note=VERSION),
        packing=reader.flag("packing", "neat_packing"),
        attention=hf.attention(reader.text("flash_attn")) if reader.text("flash_attn").value != "auto" else UNKNOWN,
        lora_rank=reader.integer("lora_rank", default=8, note=VERSION),
        lora_alpha=reader.number("lora_alpha"),
        lora_rank_stabilised=reader.flag("use_rslora"),
        fp8=reader.flag("fp8"),
        fp8_backend=reader.text("fp8_backend").becomes({"torchao": "ao"}.get(str(reader.text("fp8_backend").value), reader.text("fp8_backend").value))
        if reader.flag("fp8").value
        else UNKNOWN,
        fp8_allgather=reader.flag("fp8_enable_fsdp_float8_all_gather"),
        extra={
            "llamafactory.upcast_layernorm": reader.flag("upcast_layernorm", default=False, note=VERSION),
            "llamafactory.pure_bf16": reader.flag("pure_bf16"),
        },
    )


def _precision(reader: Reader, method: Setting[str]) -> Fields:
    fp16, bf16 = reader.flag("fp16", default=False, note=VERSION), reader.flag("bf16", default=False, note=VERSION)
    asked: Fields = {"fp16_requested": fp16, "bf16_requested": bf16}
    whole = reader.flag("pure_bf16")
    if whole.value:
        fields = pure(whole, "bf16", note="pure_bf16: weights, gradients and moments in bf16")
        if method.value in hf.ADAPTERS:
            fields |= {"adapter_dtype": whole.becomes("bf16")}
        if (badam := reader.flag("use_badam")).value:
            fields |= {"master_dtype": badam.becomes("fp32", "BAdam keeps an fp32 copy of the active block")}
        return asked | fields
    compute = hf.switches(bf16, fp16)
    if compute.value == "fp32" and not compute.explicit:
        compute = UNKNOWN  # neither is set: taken from the checkpoint's dtype when it loads
    kept = compute.becomes("fp32", "LLaMA-Factory casts trainable weights to fp32") if compute.known else UNKNOWN
    return asked | {"compute_dtype": compute, "param_dtype": kept} | hf.scaling(reader, compute) | hf.mode_of(compute, kept, method)


def _method(reader: Reader) -> Setting[str]:
    kind = reader.text("finetuning_type", default="lora", note=VERSION)
    stage = reader.text("stage", default="sft", note=VERSION).value
    if not kind.known:
        return UNKNOWN
    preference = stage in ("dpo", "kto", "ppo", "orpo", "simpo")
    if kind.value in ("lora", "oft"):
        quantised = reader.has("quantization_bit")
        return kind.becomes("prefer_lora" if preference else "qlora" if quantised else "lora" if kind.value == "lora" else "other_peft")
    if kind.value == "full":
        return kind.becomes("prefer_full" if preference else "pretrain" if stage == "pt" and reader.flag("train_from_scratch").value else "full_ft")
    return kind.becomes("freeze") if kind.value == "freeze" else UNKNOWN


def _family(reader: Reader, family: Setting[str]) -> Setting[str]:
    for key, name in (("use_galore", "galore_like"), ("use_apollo", "galore_like"), ("use_muon", "muon")):
        if (flag := reader.flag(key)).value:
            return flag.becomes(name)
    return family


def _quantization(reader: Reader, compute: Setting[str]) -> Fields:
    bits = reader.integer("quantization_bit")
    if bits.value is None:
        return {}
    method = str(reader.text("quantization_method", default="bnb").value).lower()
    name = (
        f"bnb{bits.value}" if method in ("bnb", "bitsandbytes") and bits.value in (4, 8) else method if method in ("hqq", "gptq", "awq") else "other"
    )
    return {
        "quantization": bits.becomes(name),
        "quant_compute_dtype": compute if compute.known else UNKNOWN,
        "quant_type": reader.text("quantization_type", default="nf4", note=VERSION),
    }


DIALECT = Dialect(title="LLaMA-Factory", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
