"""Megatron-LM: flags on a command line or in a shell script, or the `MODEL_ARGS` map of its test configs.

16-bit parameters with fp32 main copies. Gradients of bf16 runs are summed in fp32 unless
`--grad-reduce-in-bf16`; of fp16 runs in fp16 unless `--accumulate-allreduce-grads-in-fp32`. Defaults:
Megatron-LM of August 2026.
"""

from __future__ import annotations

import re

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import clipping, fp32, joined, master_weights, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "Megatron-LM core 0.14"
MARKS = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "micro_batch_size", "global_batch_size", "num_layers", "hidden_size",
    "num_attention_heads", "seq_length", "train_iters", "train_samples", "lr_decay_style", "use_mcore_models", "transformer_impl", "clip_grad",
    "use_distributed_optimizer", "max_position_embeddings", "tokenizer_type",
)  # fmt: skip
_SCRIPT = re.compile(r"pretrain_(gpt|bert|t5|mamba|vlm|retro|ict)\w*\.py|megatron")


def claim(document: Document) -> float:
    """`MODEL_ARGS` with dashed flags, a launch of `pretrain_*.py`, or `language_model` with batch keys."""
    flags = document.get("MODEL_ARGS")
    if flags is not None and any(key.startswith("--") for key in flags.mapping):
        return 80
    if document.syntax == "arguments":
        found = count(document, MARKS)
        return 50 + found if found >= 4 or (found and _SCRIPT.search(document.text)) else 0
    return 60 if "language_model" in document.keys and count(document, ("micro_batch_size", "global_batch_size")) else 0


def lift(reader: Reader) -> TrainingConfig:
    """The flags' meaning."""
    fields = _precision(reader)
    compute = fields["compute_dtype"].value if "compute_dtype" in fields else None
    return TrainingConfig(
        dialect="megatron",
        files=(reader.path,),
        **joined(
            fields,
            (_scaler(reader) if compute == "fp16" else {}),
            optimizer_settings(reader.text(*_flag("optimizer"), default="adam", note=VERSION)),
            clipping(reader.number(*_flag("clip-grad"), default=1.0, note=VERSION)),
            _fp8(reader),
            _warmup(reader),
        ),
        lr=reader.number(*_flag("lr")),
        eps=reader.number(*_flag("adam-eps"), default=1e-8, note=VERSION),
        beta1=reader.number(*_flag("adam-beta1"), default=0.9, note=VERSION),
        beta2=reader.number(*_flag("adam-beta2"), default=0.999, note=VERSION),
        weight_decay=reader.number(*_flag("weight-decay"), default=0.01, note=VERSION),
        schedule=reader.text(*_flag("lr-decay-style"), default="linear", note=VERSION),
        total_steps=reader.integer(*_flag("train-iters")),
        micro_batch=reader.integer(*_flag("micro-batch-size")),
        global_batch=reader.integer(*_flag("global-batch-size")),
        sequence_length=reader.integer(*_flag("seq-length")),
        softmax_fp32=_softmax(reader),
        logit_dtype=_logits(reader),
        router_dtype=reader.dtype(*_flag("moe-router-dtype")),
        nan_check=_nan_check(reader),
        distributed=reader.constant("megatron", VERSION),
        domain=reader.constant("language", VERSION),
        method=_method(reader),
        n_params=_size(reader),
        vocab_size=reader.integer(*_flag("vocab-size")),
        hidden_size=reader.integer(*_flag("hidden-size")),
        log_every=reader.integer(*_flag("log-interval"), default=100, note=VERSION),
        resume=reader.text(*_flag("load")),
        extra={
            "megatron.experts": reader.integer(*_flag("num-experts")),
            "scaling.unused": UNKNOWN if compute == "fp16" else reader.number(*_flag("loss-scale"), *_flag("initial-loss-scale")),
        },
    )


def _flag(name: str) -> tuple[str, ...]:
    """Where a flag may stand: on a command line, under MODEL_ARGS, in a nested YAML."""
    plain = name.replace("-", "_")
    return plain, f"MODEL_ARGS.--{name}", f"language_model.{plain}"


def _precision(reader: Reader) -> Fields:
    fp16, bf16 = reader.flag(*_flag("fp16"), default=False, note=VERSION), reader.flag(*_flag("bf16"), default=False, note=VERSION)
    asked: Fields = {"fp16_requested": fp16, "bf16_requested": bf16}
    if (fp16.value and bf16.value) or not fp16.known or not bf16.known:
        return asked
    if not fp16.value and not bf16.value:
        return asked | fp32(bf16)
    at, compute = (fp16, "fp16") if fp16.value else (bf16, "bf16")
    in_fp32 = reader.flag(*_flag("accumulate-allreduce-grads-in-fp32"))
    in_bf16 = reader.flag(*_flag("grad-reduce-in-bf16"))
    wide = bool(in_fp32.value) or (compute == "bf16" and not in_bf16.value)
    fields = master_weights(at, compute, reduce="fp32" if wide else compute, note="Megatron keeps fp32 main parameters")
    if in_bf16.value and not wide:
        fields["reduce_dtype"] = in_bf16.becomes("bf16")
        fields["grad_accum_dtype"] = in_bf16.becomes("bf16")
    elif not wide:
        fields["grad_accum_dtype"] = at.becomes(compute, "no --accumulate-allreduce-grads-in-fp32")
    main = reader.dtype(*_flag("main-params-dtype"))
    if main.value == "fp16" and reader.flag(*_flag("use-precision-aware-optimizer")).value:
        fields |= {"master_dtype": main.becomes("fp16")}
    state = reader.dtype(*_flag("exp-avg-sq-dtype"))
    return asked | fields | ({"optimizer_state_dtype": state} if state.known else {})


def _scaler(reader: Reader) -> Fields:
    static = reader.number(*_flag("loss-scale"))
    if static.value:
        return {"scaler": static.becomes("static"), "static_scale": static}
    return {
        "init_scale": reader.number(*_flag("initial-loss-scale"), default=2.0**32, note=VERSION),
        "growth_interval": reader.integer(*_flag("loss-scale-window"), default=1000, note=VERSION),
        "hysteresis": reader.integer(*_flag("hysteresis"), default=2, note=VERSION),
        "min_scale": reader.number(*_flag("min-loss-scale"), default=1.0, note=VERSION),
    }


def _fp8(reader: Reader) -> Fields:
    kind = reader.text(*_flag("fp8-format"), *_flag("fp8"))
    if not kind.known:
        return {}
    edges = reader.flag(*_flag("first-last-layers-bf16"))
    return {
        "precision_mode": kind.becomes("fp8"),
        "fp8": kind.becomes(True),
        "fp8_backend": reader.constant("te", VERSION),
        "fp8_format": kind,
        "fp8_recipe": reader.text(*_flag("fp8-recipe"), default="delayed", note=VERSION),
        "fp8_history": reader.integer(*_flag("fp8-amax-history-len"), default=1, note=VERSION),
        "fp8_amax": reader.text(*_flag("fp8-amax-compute-algo"), default="most_recent", note=VERSION),
        "fp8_edges_bf16": edges if edges.written else reader.constant(False, VERSION, key="first-last-layers-bf16"),
        "fp8_attention": _either(reader.flag(*_flag("fp8-dot-product-attention")), reader.flag(*_flag("fp8-multi-head-attention"))),
    }


def _either(one: Setting[bool], other: Setting[bool]) -> Setting[bool]:
    return one if one.value else other


def _warmup(reader: Reader) -> Fields:
    steps, share, samples = (reader.number(*_flag(f"lr-warmup-{kind}")) for kind in ("iters", "fraction", "samples"))
    if share.known:
        return {"warmup_ratio": share}
    if samples.written and samples.value != 0:
        return {}  # some warm-up, of unknown length in steps
    return {"warmup_steps": steps if steps.written else reader.constant(0.0, VERSION, key="lr-warmup-iters")}


def _softmax(reader: Reader) -> Setting[bool]:
    forced = reader.flag(*_flag("apply-query-key-layer-scaling"))
    if forced.value:
        return forced.becomes(True)
    return reader.flag(*_flag("attention-softmax-in-fp32"), default=True, note=VERSION)


def _logits(reader: Reader) -> Setting[str]:
    flag = reader.flag(*_flag("fp16-lm-cross-entropy"))
    return flag.becomes("fp16") if flag.value else reader.dtype(*_flag("output-logit-dtype"))


def _nan_check(reader: Reader) -> Setting[bool]:
    off = reader.flag(*_flag("no-check-for-nan-in-loss-and-grad"))
    return off.becomes(False) if off.value else reader.constant(True, VERSION)


def _method(reader: Reader) -> Setting[str]:
    tuning = reader.flag(*_flag("sft"))
    if tuning.value:
        return tuning.becomes("full_ft")
    if reader.flag(*_flag("finetune")).value:
        return UNKNOWN  # weights are loaded without the optimizer's state, for whatever purpose
    provider = reader.text(*_flag("model-provider"))
    if reader.has(*_flag("pretrained-checkpoint"), *_flag("language-model-checkpoint")) or "vlm" in str(provider.value):
        return UNKNOWN  # what is trained may be the projector alone
    return reader.constant("pretrain", "Megatron-LM pretrains")


def _size(reader: Reader) -> Setting[int]:
    """12 h^2 per layer and the embeddings; more with experts, so unknown then."""
    hidden, layers = reader.integer(*_flag("hidden-size")), reader.integer(*_flag("num-layers"))
    if hidden.value is None or layers.value is None or reader.has(*_flag("num-experts")) or max(hidden.value, layers.value) > 10**6:
        return UNKNOWN
    return Setting(12 * layers.value * hidden.value**2, Origin.DERIVED, hidden.at, None, "from width and depth")


DIALECT = Dialect(title="Megatron-LM", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
