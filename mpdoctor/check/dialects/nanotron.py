"""nanotron's YAML. `accumulate_grad_in_fp32` keeps fp32 copies of bf16 weights. Read from nanotron of 2026."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import clipping, fp32, joined, master_weights, optimizer_settings, pure
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "nanotron 0.5"


def claim(document: Document) -> float:
    """`general`, `parallelism` and `tokens` together."""
    return 70 if {"general", "parallelism", "tokens"} <= document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """Model dtype, optimizer, tokens."""
    schedule = "optimizer.learning_rate_scheduler"
    factory = "optimizer.optimizer_factory"
    clip = reader.number("optimizer.clip_grad")
    return TrainingConfig(
        dialect="nanotron",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.text(f"{factory}.name", default="adamW", note=VERSION)),
            clipping(clip) if clip.written else {"clip_kind": reader.constant("none", VERSION, key="optimizer.clip_grad")},
        ),
        lr=reader.number(f"{schedule}.learning_rate"),
        eps=reader.number(f"{factory}.adam_eps", "optimizer.adam_eps"),
        beta1=reader.number(f"{factory}.adam_beta1", "optimizer.adam_beta1"),
        beta2=reader.number(f"{factory}.adam_beta2", "optimizer.adam_beta2"),
        weight_decay=reader.number("optimizer.weight_decay"),
        schedule=reader.text(f"{schedule}.lr_decay_style"),
        warmup_steps=reader.number(f"{schedule}.lr_warmup_steps", default=0.0, note=VERSION),
        total_steps=reader.integer("tokens.train_steps"),
        micro_batch=reader.integer("tokens.micro_batch_size"),
        accumulation_steps=reader.integer("tokens.batch_accumulation_per_replica"),
        sequence_length=reader.integer("tokens.sequence_length"),
        world_size=_ranks(reader),
        distributed=_stage(reader),
        domain=reader.constant("language", VERSION),
        method=reader.constant("pretrain", "nanotron pretrains"),
        n_params=_size(reader),
        vocab_size=reader.integer("model.model_config.vocab_size"),
        hidden_size=reader.integer("model.model_config.hidden_size"),
    )


def _precision(reader: Reader) -> Fields:
    dtype = reader.dtype("model.dtype")
    if dtype.value == "fp32":
        return fp32(dtype)
    if dtype.value not in ("bf16", "fp16"):
        return {}
    copies = reader.flag("optimizer.accumulate_grad_in_fp32")
    if copies.value:
        return master_weights(dtype, str(dtype.value), reduce="fp32", note="accumulate_grad_in_fp32 keeps fp32 copies") | {
            "grad_accum_dtype": copies.becomes("fp32")
        }
    if copies.value is False:
        return pure(dtype, str(dtype.value), note="accumulate_grad_in_fp32 is off") | {"grad_accum_dtype": dtype}
    return {"compute_dtype": dtype, "param_dtype": dtype}


def _ranks(reader: Reader) -> Setting[int]:
    """Data-parallel ranks: the ones that sum gradients."""
    return reader.integer("parallelism.dp")


def _stage(reader: Reader) -> Setting[str]:
    stage = reader.integer("optimizer.zero_stage")
    return stage.becomes(f"zero{stage.value}") if stage.known else UNKNOWN


def _size(reader: Reader) -> Setting[int]:
    base = "model.model_config"
    width, layers, vocabulary = (reader.integer(f"{base}.{key}") for key in ("hidden_size", "num_hidden_layers", "vocab_size"))
    if width.value is None or layers.value is None or reader.has(f"{base}.moe_config") or max(width.value, layers.value) > 10**6:
        return UNKNOWN
    return Setting(12 * layers.value * width.value**2 + (vocabulary.value or 0) * width.value, Origin.DERIVED, width.at, None, "from width and depth")


DIALECT = Dialect(title="nanotron", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
