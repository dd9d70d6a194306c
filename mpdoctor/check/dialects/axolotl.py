"""Axolotl's YAML.

The model is loaded in the dtype that is computed in, so full fine-tuning without FSDP or ZeRO keeps 16-bit
weights without fp32 copies. `bf16: auto` is bf16 wherever torch says it is supported, and torch counts
emulation, so that is every CUDA GPU. Empty keys mean "default". Defaults: Axolotl of July 2026.
"""

from __future__ import annotations

from mpdoctor.check import hf_arguments as hf
from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, model_settings, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "Axolotl 0.12"
MARKS = (
    "micro_batch_size", "adapter", "sequence_len", "datasets", "num_epochs", "lora_target_linear", "val_set_size", "attn_implementation",
    "flash_attention", "special_tokens", "pretraining_dataset", "sample_packing", "dataset_prepared_path", "pad_to_sequence_len", "rl",
)  # fmt: skip


def claim(document: Document) -> float:
    """`base_model` and two of its keys."""
    found = count(document, MARKS)
    return 55 + found if "base_model" in document.keys and found >= 2 else 0


def lift(reader: Reader) -> TrainingConfig:
    """Axolotl's settings; what it leaves out falls to the HF Trainer."""
    method = _method(reader)
    optimizer = reader.text("optimizer", default="adamw_torch_fused", note=VERSION)
    name = reader.text("base_model")
    return TrainingConfig(
        dialect="axolotl",
        files=(reader.path,),
        **joined(
            _precision(reader, method),
            optimizer_settings(optimizer),
            model_settings(name),
            clipping(reader.number("max_grad_norm", default=1.0, note=hf.VERSION)),
            hf.warmup(reader),
            _quantization(reader),
            _fp8(reader),
        ),
        lr=reader.number("learning_rate"),
        eps=reader.number("adam_epsilon", default=1e-8, note=hf.VERSION),
        beta1=reader.number("adam_beta1", default=0.9, note=hf.VERSION),
        beta2=reader.number("adam_beta2", default=0.999, note=hf.VERSION),
        weight_decay=reader.number("weight_decay", default=0.0, note=VERSION),
        schedule=reader.text("lr_scheduler", default="cosine", note=VERSION),
        total_steps=hf.positive(reader.integer("max_steps")),
        epochs=reader.number("num_epochs", default=1.0, note=VERSION),
        micro_batch=reader.integer("micro_batch_size", default=1, note=VERSION),
        accumulation_steps=reader.integer("gradient_accumulation_steps", default=1, note=VERSION),
        sequence_length=reader.integer("sequence_len", default=512, note=VERSION),
        packing=reader.flag("sample_packing"),
        tf32=reader.flag("tf32"),
        distributed=_distributed(reader),
        domain=name.becomes("language"),
        method=method,
        attention=_attention(reader),
        lora_rank=reader.integer("lora_r"),
        lora_alpha=reader.number("lora_alpha"),
        lora_rank_stabilised=reader.flag("peft_use_rslora"),
        adapter_autocast=reader.flag("peft_autocast_adapter_dtype"),
        activation_checkpointing=reader.flag("gradient_checkpointing"),
        compile=reader.flag("torch_compile", default=False, note=VERSION),
        nan_filter=reader.flag("logging_nan_inf_filter", default=True, note=hf.VERSION),
        log_every=reader.integer("logging_steps", default=500, note=hf.VERSION),
        resume=reader.text("resume_from_checkpoint"),
        save_only_model=reader.flag("save_only_model", default=False, note=hf.VERSION),
    )


def _precision(reader: Reader, method: Setting[str]) -> Fields:
    word = reader.document.get("bf16")
    bf16 = reader.flag("bf16")
    fp16 = reader.flag("fp16", default=False, note=VERSION)
    if word is not None and word.value in ("auto", "full"):
        note = "wherever torch says that bf16 is supported, which counts emulation" if word.value == "auto" else "bf16 weights too"
        bf16 = Setting(True, Origin.DERIVED if word.value == "auto" else Origin.EXPLICIT, word.span("bf16"), word.raw, note)
    elif not bf16.known and bf16.at is None:
        cast = next((flag for key in ("bfloat16", "float16", "float32") if (flag := reader.flag(key)).value), None)
        if cast is None and not fp16.value:
            bf16 = reader.constant(True, f"{VERSION}: `bf16: auto`", key="bf16")
        else:
            bf16 = reader.constant(False, VERSION, key="bf16")
    asked: Fields = {"fp16_requested": fp16, "bf16_requested": bf16}
    if bf16.value:
        return asked | _weights(bf16, "bf16", reader, method)
    if fp16.value:
        return asked | _weights(fp16, "fp16", reader, method) | hf.scaling(reader, fp16.becomes("fp16"))
    if not bf16.known:
        return asked
    for key, name in (("bfloat16", "bf16"), ("float16", "fp16")):
        if (flag := reader.flag(key)).value:
            none = {"precision_mode": flag.becomes("pure_lowp"), "master_dtype": flag.becomes("none"), "scaler": flag.becomes("none")}
            return asked | _weights(flag, name, reader, method) | (none if method.value == "full_ft" else {})
    return asked | fp32(bf16 if bf16.explicit else fp16)


def _weights(at: Setting[bool], compute: str, reader: Reader, method: Setting[str]) -> Fields:
    """Weights are loaded in the compute dtype: without masters for full fine-tuning, unless FSDP or ZeRO keep some."""
    fields = autocast(at, compute)
    if method.value in hf.ADAPTERS:
        return fields | {"param_dtype": at.becomes(compute, "the frozen base; adapters are fp32")}
    if _distributed(reader).known or reader.has("deepspeed"):
        return fields
    note = "Axolotl loads the model in this dtype, and keeps no fp32 copy without FSDP or ZeRO"
    return fields | {
        "precision_mode": at.becomes("weights_lowp_autocast", note),
        "param_dtype": at.becomes(compute, note),
        "master_dtype": at.becomes("none", note),
        "optimizer_state_dtype": at.becomes(compute, note),
        "reduce_dtype": at.becomes(compute, note),
    }


def _method(reader: Reader) -> Setting[str]:
    adapter, preference = reader.text("adapter"), reader.has("rl")
    if adapter.known:
        name = str(adapter.value).lower()
        return adapter.becomes("prefer_lora" if preference else name if name in ("lora", "qlora") else "other_peft")
    if preference:
        return reader.text("rl").becomes("prefer_full")
    if reader.has("pretraining_dataset") and not reader.has("datasets"):
        return UNKNOWN  # continued or from scratch: the file does not tell
    return reader.text("base_model").becomes("full_ft", "no adapter")


def _quantization(reader: Reader) -> Fields:
    four, eight = reader.flag("load_in_4bit"), reader.flag("load_in_8bit")
    if four.value:
        dtype = four.becomes("fp16" if reader.flag("fp16").value else "bf16", "Axolotl passes the model's dtype")
        return {"quantization": four.becomes("bnb4"), "quant_compute_dtype": dtype, "quant_type": reader.constant("nf4", VERSION)}
    return {"quantization": eight.becomes("bnb8")} if eight.value else {}


def _fp8(reader: Reader) -> Fields:
    fp8 = reader.flag("fp8")
    if not fp8.value:
        return {}
    return {"fp8": fp8, "fp8_backend": reader.constant("ao", VERSION), "fp8_allgather": reader.flag("fp8_enable_fsdp_float8_all_gather")}


def _distributed(reader: Reader) -> Setting[str]:
    node = reader.node("fsdp_config") or reader.node("fsdp")
    if node is None or not (node.mapping or node.items):
        return UNKNOWN
    version = reader.integer("fsdp_version", default=1, note=VERSION)
    return Setting("fsdp2" if version.value == 2 else "fsdp1", Origin.EXPLICIT, node.span("fsdp_config"), str(version.value))


def _attention(reader: Reader) -> Setting[str]:
    named = reader.text("attn_implementation")
    if named.known:
        return hf.attention(named)
    for key, kind in (
        ("flash_attention", "flash2"), ("sdp_attention", "sdpa"), ("xformers_attention", "xformers"), ("flex_attention", "flex"),
        ("eager_attention", "eager"), ("sage_attention", "sage"),
    ):  # fmt: skip
        if (flag := reader.flag(key)).value:
            return flag.becomes(kind)
    return UNKNOWN


DIALECT = Dialect(title="Axolotl", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
