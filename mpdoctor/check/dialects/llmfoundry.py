"""MosaicML Composer and llm-foundry YAML.

`fsdp_config.mixed_precision` decides what gradients are summed in: PURE in 16 bits, DEFAULT in fp32.
Defaults: Composer of April 2026, llm-foundry of July 2025.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, model_settings, optimizer_settings, pure, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "Composer 0.32"
MARKS = ("max_duration", "global_train_batch_size", "device_train_microbatch_size", "device_eval_batch_size")
BESIDE = ("train_loader", "algorithms", "callbacks", "fsdp_config", "precision", "train_dataset")


def claim(document: Document) -> float:
    """Two of its batch keys and one of its parts."""
    found, beside = count(document, MARKS), count(document, BESIDE)
    return 45 + 2 * found + beside if found >= 2 and beside and document.get("optimizer.learning_rate") is None else 0


def lift(reader: Reader) -> TrainingConfig:
    """The Composer trainer's settings."""
    sharded = reader.has("fsdp_config")
    precision = reader.text("precision")
    if not precision.known and precision.at is None:
        foundry = reader.has("train_loader") and reader.has("model")
        precision = reader.constant(
            "amp_bf16" if foundry else "amp_fp16", "llm-foundry's default" if foundry else f"{VERSION}, on a GPU", key="precision"
        )
    fields = _precision(reader, precision, sharded=sharded)
    name = reader.text("model.pretrained_model_name_or_path", "model.name")
    model = model_settings(name)
    size = _size(reader)
    clip = reader.number("algorithms.gradient_clipping.clipping_threshold")
    return TrainingConfig(
        dialect="llmfoundry",
        files=(reader.path,),
        **joined(
            fields,
            optimizer_settings(reader.text("optimizer.name")),
            (model | ({"n_params": size} if size.known else {})),
            _clip(reader, clip),
        ),
        lr=reader.number("optimizer.lr"),
        eps=reader.number("optimizer.eps"),
        beta1=reader.number("optimizer.betas.0"),
        beta2=reader.number("optimizer.betas.1"),
        weight_decay=reader.number("optimizer.weight_decay"),
        schedule=reader.text("scheduler.name"),
        warmup_steps=_warmup(reader.text("scheduler.t_warmup")),
        total_steps=_batches(reader.text("max_duration")),
        global_batch=reader.integer("global_train_batch_size"),
        micro_batch=reader.integer("device_train_microbatch_size"),
        sequence_length=reader.integer("max_seq_len"),
        distributed=Setting("fsdp1", Origin.DERIVED, None, None, "fsdp_config is given") if sharded else UNKNOWN,
        domain=name.becomes("language"),
        method=_method(reader),
        attention=_attention(reader),
        quantization=reader.flag("model.load_in_8bit").becomes("bnb8") if reader.flag("model.load_in_8bit").value else UNKNOWN,
        nan_check=Setting(True, Origin.EXPLICIT) if reader.document.get("callbacks.nan_monitor") is not None else UNKNOWN,
        activation_checkpointing=reader.flag("fsdp_config.activation_checkpointing"),
        lora_rank=reader.integer("model.peft_config.r"),
        lora_alpha=reader.number("model.peft_config.lora_alpha"),
        extra={"composer.default_precision": precision if not precision.explicit else UNKNOWN},
    )


def _precision(reader: Reader, precision: Setting[str], *, sharded: bool) -> Fields:
    if not precision.known:
        return {}
    word = str(precision.value).lower()
    if word == "fp32":
        return fp32(precision)
    compute = {"amp_fp16": "fp16", "amp_bf16": "bf16", "amp_fp8": "bf16"}.get(word)
    if compute is None:
        return {}
    masters = reader.dtype("model.master_weights_dtype")
    fields = pure(masters, str(masters.value)) if masters.value in ("fp16", "bf16") else autocast(precision, compute)
    fields |= {"fp16_requested": precision.becomes(compute == "fp16"), "bf16_requested": precision.becomes(compute == "bf16")}
    if sharded:
        fields["reduce_dtype"] = _reduce(reader, compute)
    if compute == "fp16":
        fields |= torch_scaler(precision)
    if word == "amp_fp8":
        fields |= {
            "precision_mode": precision.becomes("fp8"),
            "fp8": precision.becomes(True),
            "fp8_backend": precision.becomes("te"),
            "fp8_recipe": reader.constant("delayed", "Transformer Engine's DelayedScaling"),
            "fp8_format": reader.text("precision_config.fp8_format", default="hybrid", note=VERSION),
            "fp8_history": reader.integer("precision_config.amax_history_len", default=16, note=VERSION),
            "fp8_amax": reader.text("precision_config.amax_compute_algo", default="max", note=VERSION),
        }
    return fields


def _reduce(reader: Reader, compute: str) -> Setting[str]:
    """PURE reduces in 16 bits, DEFAULT and FULL in fp32; a mapping names the dtype."""
    named = reader.dtype("fsdp_config.mixed_precision.reduce_dtype")
    if named.known:
        return named
    word = reader.text("fsdp_config.mixed_precision", default="DEFAULT", note=VERSION)
    return word.becomes(compute if str(word.value).upper() == "PURE" else "fp32") if word.known else UNKNOWN


def _clip(reader: Reader, threshold: Setting[float]) -> Fields:
    if threshold.known:
        return clipping(threshold, str(reader.text("algorithms.gradient_clipping.clipping_type", default="norm").value))
    return {"clip_kind": reader.constant("none", "no gradient_clipping under algorithms", key="algorithms")}


def _batches(time: Setting[str]) -> Setting[int]:
    """`100ba` is 100 steps; epochs and tokens cannot be told in steps here."""
    text = str(time.value or "")
    return time.becomes(int(text[:-2])) if text.endswith("ba") and text[:-2].isdecimal() and len(text) < 15 else UNKNOWN


def _warmup(time: Setting[str]) -> Setting[float]:
    steps = _batches(time)
    return time.becomes(float(steps.value)) if steps.value is not None else UNKNOWN


def _method(reader: Reader) -> Setting[str]:
    peft = reader.node("model.peft_config")
    if peft is not None:
        return Setting("lora", Origin.EXPLICIT, peft.span("model.peft_config"))
    kind = reader.text("train_loader.name")
    pretrained = reader.flag("model.pretrained")
    if kind.value == "finetuning" or pretrained.value:
        return (kind if kind.value == "finetuning" else pretrained).becomes("full_ft")
    return kind.becomes("pretrain") if kind.value == "text" else UNKNOWN


def _size(reader: Reader) -> Setting[int]:
    """12 d^2 per layer and the embeddings, for models built from these numbers."""
    width, layers, vocabulary = reader.integer("model.d_model"), reader.integer("model.n_layers"), reader.integer("model.vocab_size")
    if width.value is None or layers.value is None or max(width.value, layers.value) > 10**6:
        return UNKNOWN
    return Setting(12 * layers.value * width.value**2 + (vocabulary.value or 0) * width.value, Origin.DERIVED, width.at, None, "from width and depth")


def _attention(reader: Reader) -> Setting[str]:
    name = reader.text("model.attn_config.attn_impl", "model.config_overrides.attn_config.attn_impl")
    return name.becomes({"flash": "flash2", "torch": "eager"}.get(str(name.value), "other")) if name.known else UNKNOWN


DIALECT = Dialect(title="Composer / llm-foundry", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
