"""torchtune's YAML: components by `_component_`.

`dtype: bf16` means weights, gradients and optimizer states in bf16 with no fp32 copy; fp16 is refused.
Defaults: torchtune of April 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import clipping, fp32, joined, model_settings, optimizer_settings, pure
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "torchtune 0.7"


def claim(document: Document) -> float:
    """Two top-level maps that name a `_component_`."""
    found = sum(1 for node in document.root.mapping.values() if "_component_" in node.mapping)
    return 60 + found if found >= 2 else 0


def lift(reader: Reader) -> TrainingConfig:
    """A recipe's settings."""
    dtype = reader.dtype("dtype", default="fp32", note=VERSION)
    component = reader.text("model._component_")
    name = component.becomes(str(component.value).rpartition(".")[2]) if component.known else UNKNOWN
    clip = reader.number("clip_grad_norm")
    if not clip.known:
        clip = _null(reader, "clip_grad_norm")
    return TrainingConfig(
        dialect="torchtune",
        files=(reader.path,),
        **joined(
            _precision(dtype),
            optimizer_settings(reader.text("optimizer._component_", "optimizer.optimizer._component_")),
            model_settings(name),
            clipping(clip),
            _fp8(reader),
            _quantization(name, dtype),
        ),
        lr=reader.number("optimizer.lr", "optimizer.optimizer.lr"),
        eps=reader.number("optimizer.eps", default=1e-8, note="torch.optim.AdamW"),
        beta2=reader.number("optimizer.betas.1", default=0.999, note="torch.optim.AdamW"),
        weight_decay=reader.number("optimizer.weight_decay", default=0.01, note="torch.optim.AdamW"),
        optimizer_in_backward=reader.flag("optimizer_in_bwd", default=False, note=VERSION),
        schedule=reader.text("lr_scheduler._component_"),
        warmup_steps=reader.number("lr_scheduler.num_warmup_steps", default=0.0, note=f"{VERSION}: no scheduler, no warm-up"),
        total_steps=_total(reader),
        epochs=reader.number("epochs"),
        micro_batch=reader.integer("batch_size"),
        accumulation_steps=reader.integer("gradient_accumulation_steps", default=1, note=VERSION),
        sequence_length=reader.integer("tokenizer.max_seq_len"),
        packing=reader.flag("dataset.packed"),
        domain=name.becomes("language") if name.known and "clip" not in str(name.value) else UNKNOWN,
        method=_method(reader, name),
        lora_rank=reader.integer("model.lora_rank"),
        lora_alpha=reader.number("model.lora_alpha"),
        activation_checkpointing=reader.flag("enable_activation_checkpointing"),
        compile=reader.flag("compile", default=False, note=VERSION),
        log_every=reader.integer("log_every_n_steps", default=1, note=VERSION),
    )


def _precision(dtype: Setting[str]) -> Fields:
    if dtype.value in ("fp16", "bf16"):
        fields = pure(dtype, str(dtype.value), note="torchtune keeps weights, gradients and states in this dtype")
        return fields | {"fp16_requested": dtype.becomes(dtype.value == "fp16"), "bf16_requested": dtype.becomes(dtype.value == "bf16")}
    return fp32(dtype) if dtype.known else {}


def _method(reader: Reader, name: Setting[str]) -> Setting[str]:
    text = str(name.value or "")
    if not name.known:
        return UNKNOWN
    preference = "dpo" in str(reader.text("loss._component_").value).lower() or "ppo" in str(reader.text("loss._component_").value).lower()
    adapters = "qlora" in text or "lora" in text or "dora" in text
    if preference:
        return name.becomes("prefer_lora" if adapters else "prefer_full")
    return name.becomes("qlora" if "qlora" in text else "lora" if adapters else "full_ft")


def _quantization(name: Setting[str], dtype: Setting[str]) -> Fields:
    # NF4 by torchao, which multiplies in the dtype of its input.
    return {"quantization": name.becomes("other"), "quant_compute_dtype": dtype} if "qlora" in str(name.value) else {}


def _fp8(reader: Reader) -> Fields:
    fp8 = reader.flag("enable_fp8_training")
    if not fp8.value:
        return {}
    return {
        "fp8": fp8,
        "fp8_backend": reader.constant("ao", VERSION),
        "fp8_recipe": reader.text("fp8_recipe_name", default="tensorwise", note=VERSION),
    }


def _null(reader: Reader, key: str) -> Setting[float]:
    """`clip_grad_norm: null` says "off"; a key that is not there too."""
    node = reader.document.get(key)
    if node is None:
        return reader.constant(0.0, f"{VERSION}: no clipping unless asked for", key=key)
    return Setting(0.0, Origin.EXPLICIT, node.span(key), node.raw) if node.value is None else UNKNOWN


def _total(reader: Reader) -> Setting[int]:
    """Steps per epoch times epochs, where both are given."""
    steps, epochs = reader.integer("max_steps_per_epoch"), reader.integer("epochs", default=1, note=VERSION)
    if steps.value is None or steps.value <= 0 or epochs.value is None:
        return UNKNOWN
    return steps.becomes(steps.value * epochs.value, f"{steps.value} an epoch x {epochs.value} epochs")


DIALECT = Dialect(title="torchtune", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
