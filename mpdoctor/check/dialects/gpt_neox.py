"""gpt-neox: YAML in JSON style, DeepSpeed's blocks beside the model's numbers. Defaults: gpt-neox of 2026."""

from __future__ import annotations

from typing import Any

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.dialects.deepspeed import loss_scale
from mpdoctor.check.lifting import clipping, fp32, joined, master_weights, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "gpt-neox 2.0"
MARKS = (
    "num_layers", "hidden_size", "num_attention_heads", "seq_length", "pos_emb", "checkpoint_activations", "train_iters", "lr_decay_style",
    "pipe_parallel_size", "model_parallel_size", "init_method", "output_layer_parallelism", "checkpoint_factor", "no_weight_tying",
)  # fmt: skip


def claim(document: Document) -> float:
    """Four of its keys, with `-` or `_`; outranks DeepSpeed, whose blocks it contains."""
    names = {key.replace("-", "_") for key in document.keys}
    found = len(names.intersection(MARKS))
    return 75 + found if found >= 4 and document.syntax != "arguments" else 0


def lift(reader: Reader) -> TrainingConfig:
    """Precision block, optimizer, schedule."""
    optimizer = reader.text("optimizer.type", default="Adam", note=VERSION)
    clip = reader.number(*_key("gradient_clipping"), default=1.0, note=VERSION)
    steps = reader.integer(*_key("train_iters"))
    return TrainingConfig(
        dialect="gpt_neox",
        files=(reader.path, *(part.path for part in reader.document.parts)),
        **joined(_precision(reader), optimizer_settings(optimizer), clipping(clip)),
        lr=reader.number("optimizer.params.lr"),
        eps=reader.number("optimizer.params.eps", default=1e-8, note=VERSION),
        beta1=reader.number("optimizer.params.betas.0", default=0.9, note=VERSION),
        beta2=reader.number("optimizer.params.betas.1", default=0.999, note=VERSION),
        weight_decay=reader.number(*_key("weight_decay"), default=0.1, note=VERSION),
        schedule=reader.text(*_key("lr_decay_style"), default="linear", note=VERSION),
        warmup_ratio=reader.number("warmup", default=0.01, note=VERSION),
        total_steps=steps,
        micro_batch=reader.integer(*_key("train_micro_batch_size_per_gpu")),
        accumulation_steps=reader.integer(*_key("gradient_accumulation_steps")),
        sequence_length=reader.integer(*_key("seq_length")),
        softmax_fp32=reader.flag(*_key("attention_softmax_in_fp32")),
        logit_dtype=reader.flag(*_key("fp16_lm_cross_entropy")).becomes("fp16") if reader.flag(*_key("fp16_lm_cross_entropy")).value else UNKNOWN,
        distributed=_stage(reader),
        domain=reader.constant("language", VERSION),
        method=_method(reader),
        n_params=_size(reader),
        hidden_size=reader.integer(*_key("hidden_size")),
        log_every=reader.integer(*_key("log_interval"), default=100, note=VERSION),
    )


def _key(name: str) -> tuple[str, str]:
    return name, name.replace("_", "-")


def _precision(reader: Reader) -> Fields:
    word = reader.text("precision")
    fp16 = reader.flag("fp16.enabled", default=False, note=VERSION)
    bf16 = reader.flag("bf16.enabled", "bfloat16.enabled", default=False, note=VERSION)
    compute = {"fp16": "fp16", "bfloat16": "bf16", "fp32": "fp32"}.get(str(word.value))
    at: Setting[Any] = word
    if compute is None:
        at, compute = (fp16, "fp16") if fp16.value else (bf16, "bf16") if bf16.value else (fp16, "fp32")
    if not at.known:
        return {}
    if compute == "fp32":
        return fp32(at)
    wide = reader.flag(*_key("fp32_allreduce"))
    asked = {"fp16_requested": at.becomes(compute == "fp16"), "bf16_requested": at.becomes(compute == "bf16")}
    fields = asked | master_weights(at, compute, reduce=compute, note="DeepSpeed keeps fp32 copies")
    if wide.value:
        fields["reduce_dtype"] = wide.becomes("fp32")
    accumulate = reader.dtype("data_types.grad_accum_dtype")
    if accumulate.known:
        fields["grad_accum_dtype"] = accumulate
    return fields | (loss_scale(reader, at.becomes("fp16")) if compute == "fp16" else {})


def _stage(reader: Reader) -> Setting[str]:
    stage = reader.integer("zero_optimization.stage")
    return stage.becomes(f"zero{stage.value}") if stage.known else UNKNOWN


def _method(reader: Reader) -> Setting[str]:
    tuning = reader.flag("finetune")
    return tuning.becomes("full_ft") if tuning.value else reader.constant("pretrain", "gpt-neox pretrains")


def _size(reader: Reader) -> Setting[int]:
    hidden, layers = reader.integer(*_key("hidden_size")), reader.integer(*_key("num_layers"))
    if hidden.value is None or layers.value is None or max(hidden.value, layers.value) > 10**6:
        return UNKNOWN
    return Setting(12 * layers.value * hidden.value**2 + 50_304 * hidden.value, Origin.DERIVED, hidden.at, None, "from width and depth")


DIALECT = Dialect(title="gpt-neox", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift, split=True)
