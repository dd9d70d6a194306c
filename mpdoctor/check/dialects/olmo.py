"""OLMo's YAML: Composer-like keys with `optimizer.learning_rate`.

`fsdp.precision: pure`, the default, sums gradients in 16 bits; `mixed` in fp32. Defaults: OLMo of 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "OLMo 0.6"
MARKS = ("max_duration", "global_train_batch_size", "device_train_microbatch_size", "device_eval_batch_size")
BESIDE = ("fsdp", "max_grad_norm", "save_overwrite", "evaluators", "precision", "scheduler", "gen1_gc_interval")


def claim(document: Document) -> float:
    """Composer's batch keys, `optimizer.learning_rate`, no `train_loader`."""
    found, beside = count(document, MARKS), count(document, BESIDE)
    telling = document.get("optimizer.learning_rate") is not None and "train_loader" not in document.keys
    return 60 + found + beside if telling and found and beside >= 2 else 0


def lift(reader: Reader) -> TrainingConfig:
    """OLMo's settings."""
    clip = reader.number("max_grad_norm")
    units = reader.text("scheduler.units", default="steps", note=VERSION)
    warmup = reader.number("scheduler.t_warmup")
    return TrainingConfig(
        dialect="olmo",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.text("optimizer.name")),
            (clipping(clip) if clip.written else {"clip_kind": reader.constant("none", VERSION, key="max_grad_norm")}),
        ),
        lr=reader.number("optimizer.learning_rate"),
        eps=reader.number("optimizer.eps", default=1e-5, note=VERSION),
        beta1=reader.number("optimizer.betas.0", default=0.9, note=VERSION),
        beta2=reader.number("optimizer.betas.1", default=0.95, note=VERSION),
        weight_decay=reader.number("optimizer.weight_decay"),
        schedule=reader.text("scheduler.name"),
        warmup_steps=warmup if units.value == "steps" else UNKNOWN,
        total_steps=_steps(reader),
        global_batch=reader.integer("global_train_batch_size"),
        micro_batch=reader.integer("device_train_microbatch_size"),
        sequence_length=reader.integer("model.max_sequence_length"),
        distributed=_sharding(reader),
        domain=reader.constant("language", VERSION),
        method=reader.constant("pretrain", "OLMo pretrains"),
        n_params=_size(reader),
        vocab_size=reader.integer("model.vocab_size"),
        hidden_size=reader.integer("model.d_model"),
        attention=_attention(reader),
        resume=reader.text("load_path", "try_load_latest_save"),
        log_every=reader.integer("console_log_interval", default=1, note=VERSION),
    )


def _precision(reader: Reader) -> Fields:
    word = reader.text("precision")
    compute = {"amp_bf16": "bf16", "amp_fp16": "fp16"}.get(str(word.value))
    if word.value == "fp32":
        return fp32(word)
    if compute is None:
        return {}
    fields = autocast(word, compute) | {"fp16_requested": word.becomes(compute == "fp16"), "bf16_requested": word.becomes(compute == "bf16")}
    if reader.has("fsdp"):
        kind = reader.text("fsdp.precision", default="pure", note=VERSION)
        fields["reduce_dtype"] = kind.becomes("fp32" if kind.value == "mixed" else compute) if kind.known else UNKNOWN
    return fields | (torch_scaler(word) if compute == "fp16" else {})


def _steps(reader: Reader) -> Setting[int]:
    """A plain number of steps; tokens (`2e12T`) and epochs (`1ep`) cannot be told in steps here."""
    return reader.integer("max_duration")


def _sharding(reader: Reader) -> Setting[str]:
    node = reader.node("fsdp")
    return Setting("fsdp1", Origin.EXPLICIT, node.span("fsdp")) if node is not None else UNKNOWN


def _size(reader: Reader) -> Setting[int]:
    width, layers, vocabulary = reader.integer("model.d_model"), reader.integer("model.n_layers"), reader.integer("model.vocab_size")
    if width.value is None or layers.value is None or max(width.value, layers.value) > 10**6:
        return UNKNOWN
    return Setting(12 * layers.value * width.value**2 + (vocabulary.value or 0) * width.value, Origin.DERIVED, width.at, None, "from width and depth")


def _attention(reader: Reader) -> Setting[str]:
    flash = reader.flag("model.flash_attention")
    return flash.becomes("flash2" if flash.value else "sdpa") if flash.known else UNKNOWN


DIALECT = Dialect(title="OLMo", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
