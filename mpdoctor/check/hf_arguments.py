"""The arguments of the HF `Trainer`, which several dialects share.

Keys, defaults and precision as transformers 5.24 and 4.46 have them. Accelerate makes the gradient
scaler for fp16 (2^16, growth 2, backoff 0.5, every 2000 steps).
"""

from __future__ import annotations

from mpdoctor.check.dtypes import SIXTEEN_BIT
from mpdoctor.check.lifting import clipping, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.core.training import UNKNOWN, Origin, Setting

VERSION = "transformers 5.24"
ADAPTERS = ("lora", "qlora", "other_peft", "prefer_lora")
V4_KEYS = (
    "warmup_ratio", "fp16_opt_level", "half_precision_backend", "fp16_backend", "adafactor", "group_by_length", "no_cuda", "evaluation_strategy",
    "save_safetensors", "logging_dir", "jit_mode_eval", "use_ipex", "dispatch_batches", "split_batches", "past_index", "fsdp_min_num_params",
    "fsdp_transformer_layer_cls_to_wrap", "overwrite_output_dir", "tpu_num_cores", "tpu_metrics_debug",
)  # fmt: skip
"""Keys that transformers 5 no longer has."""
V5_KEYS = ("activation_checkpointing",)
_ATTENTION = (
    ("flash_attention_3", "flash3"), ("flash-attn3", "flash3"), ("fa3", "flash3"), ("flash", "flash2"), ("fa2", "flash2"), ("sdpa", "sdpa"),
    ("sdp", "sdpa"), ("eager", "eager"), ("disabled", "eager"), ("math", "eager"), ("flex", "flex"), ("xformers", "xformers"), ("sage", "sage"),
)  # fmt: skip


def framework_version(reader: Reader) -> Setting[str]:
    """4 or 5: from the command line, or from keys that only one of them has."""
    if reader.version:
        return Setting(reader.version, Origin.EXPLICIT, None, reader.version, "given on the command line")
    for keys, major in ((V4_KEYS, "4"), (V5_KEYS, "5")):
        for key in keys:
            if (node := reader.document.get(key)) is not None:
                return Setting(major, Origin.DERIVED, node.span(key), None, f"`{key}` is a key of transformers {major}")
    return UNKNOWN


def switches(bf16: Setting[bool], fp16: Setting[bool]) -> Setting[str]:
    """What two switches come to; unknown when both are on, or one is unknown and the other off."""
    if bf16.value and not fp16.value:
        return bf16.becomes("bf16")
    if fp16.value and not bf16.value:
        return fp16.becomes("fp16")
    if bf16.known and fp16.known and not bf16.value and not fp16.value:
        return (bf16 if bf16.explicit else fp16).becomes("fp32")
    return UNKNOWN


def scaling(reader: Reader, compute: Setting[str]) -> Fields:
    """Accelerate's GradScaler for fp16, none for anything else."""
    if not compute.known:
        return {}
    if compute.value != "fp16":
        return {"scaler": compute.becomes("none", "no fp16, no scaler")}
    note = "Accelerate's GradScaler"
    return {
        "scaler": compute.becomes("dynamic", note),
        "init_scale": reader.constant(65536.0, note),
        "growth_interval": reader.constant(2000, note),
        "growth_factor": reader.constant(2.0, note),
        "backoff_factor": reader.constant(0.5, note),
    }


def mode_of(compute: Setting[str], param: Setting[str], method: Setting[str]) -> Fields:
    """Precision mode and master copy, from what is computed in, what the weights are kept in, and what is trained."""
    if not compute.known:
        return {}
    if compute.value == "fp32":
        return {"precision_mode": compute.becomes("fp32"), "master_dtype": compute.becomes("params")}
    adapters = method.value in ADAPTERS
    if param.value in SIXTEEN_BIT and method.known and not adapters:
        return {"precision_mode": param.becomes("weights_lowp_autocast", "16-bit weights under autocast, unless FSDP or ZeRO keeps masters")}
    if param.value == "fp32" or adapters:
        return {"precision_mode": compute.becomes("autocast"), "master_dtype": compute.becomes("params")}
    return {}


def trainer_fields(reader: Reader) -> Fields:
    """Everything but precision, model and method: optimizer, schedule, batch, watching."""
    optimizer = reader.text("optim", default="adamw_torch_fused", note=VERSION)
    if reader.flag("adafactor").value:
        optimizer = reader.flag("adafactor").becomes("adafactor")
    return {
        "framework_version": framework_version(reader),
        **optimizer_fields(reader, optimizer),
        "lr": reader.number("learning_rate", default=5e-5, note=VERSION),
        "eps": reader.number("adam_epsilon", default=1e-8, note=VERSION),
        "beta1": reader.number("adam_beta1", default=0.9, note=VERSION),
        "beta2": reader.number("adam_beta2", default=0.999, note=VERSION),
        "weight_decay": reader.number("weight_decay", default=0.0, note=VERSION),
        **warmup(reader),
        "schedule": reader.text("lr_scheduler_type", default="linear", note=VERSION),
        "total_steps": positive(reader.integer("max_steps")),
        "epochs": reader.number("num_train_epochs", default=3.0, note=VERSION),
        **clipping(reader.number("max_grad_norm", default=1.0, note=VERSION)),
        "micro_batch": reader.integer("per_device_train_batch_size", "per_gpu_train_batch_size", default=8, note=VERSION),
        "accumulation_steps": reader.integer("gradient_accumulation_steps", default=1, note=VERSION),
        "tf32": reader.flag("tf32"),
        "eval_dtype": _eval_dtype(reader),
        "apex_level": _apex(reader),
        "distributed": fsdp(reader),
        "activation_checkpointing": reader.flag("activation_checkpointing", "gradient_checkpointing", default=False, note=VERSION),
        "compile": reader.flag("torch_compile", default=False, note=VERSION),
        "anomaly_mode": _anomaly(reader),
        "nan_filter": reader.flag("logging_nan_inf_filter", default=True, note=VERSION),
        "log_every": reader.integer("logging_steps", default=500, note=VERSION),
        "resume": reader.text("resume_from_checkpoint"),
        "save_only_model": reader.flag("save_only_model", default=False, note=VERSION),
    }


def optimizer_fields(reader: Reader, optimizer: Setting[str]) -> Fields:
    """What the optimizer's name tells, and the arguments of `optim_args`."""
    fields = optimizer_settings(optimizer)
    args = reader.text("optim_args")
    if not args.known:
        return fields
    words = str(args.value).lower().replace(" ", "").replace("torch.", "")
    for dtype, short in (("bfloat16", "bf16"), ("float16", "fp16"), ("float32", "fp32")):
        if f"variance_dtype={dtype}" in words:
            fields["optimizer_state_dtype"] = args.becomes(short)
    return fields | {"compensated": args.becomes("use_kahan_summation=true" in words)}


def warmup(reader: Reader) -> Fields:
    """Steps or a share of them: in transformers 5 `warmup_steps` below 1 is a share; in 4 steps win over `warmup_ratio`."""
    steps, ratio = reader.number("warmup_steps"), reader.number("warmup_ratio")
    if steps.value is not None and 0 < steps.value < 1:
        return {"warmup_ratio": steps}
    if steps.value or (not steps.known and steps.at is not None):
        return {"warmup_steps": steps, "warmup_ratio": ratio}
    if ratio.known or ratio.at is not None:
        return {"warmup_ratio": ratio}
    return {"warmup_steps": steps if steps.known else reader.constant(0.0, VERSION, key="warmup_steps")}


def attention(given: Setting[str]) -> Setting[str]:
    """The attention kernel that a name stands for."""
    if not given.known:
        return UNKNOWN
    name = str(given.value).lower()
    return given.becomes(next((kind for part, kind in _ATTENTION if part in name), "other"))


def fsdp(reader: Reader) -> Setting[str]:
    """`fsdp1` or `fsdp2` when TrainingArguments switch it on; else unknown: a launcher may."""
    node = reader.node("fsdp")
    if node is None or node.value in (False, "", "False", "[]"):
        return UNKNOWN
    version = reader.integer("fsdp_config.version", "fsdp_config.fsdp_version", "fsdp_version").value
    return Setting("fsdp1" if version == 1 else "fsdp2", Origin.EXPLICIT, node.span("fsdp"), node.raw)


def positive(setting: Setting[int]) -> Setting[int]:
    """`max_steps: -1` means "not set"."""
    return setting if setting.value is not None and setting.value > 0 else UNKNOWN


def _eval_dtype(reader: Reader) -> Setting[str]:
    for key, name in (("fp16_full_eval", "fp16"), ("bf16_full_eval", "bf16")):
        flag = reader.flag(key)
        if flag.value:
            return flag.becomes(name)
    return UNKNOWN


def _apex(reader: Reader) -> Setting[str]:
    backend = reader.text("half_precision_backend", "fp16_backend")
    return reader.text("fp16_opt_level", default="O1", note="transformers 4") if backend.value == "apex" else UNKNOWN


def _anomaly(reader: Reader) -> Setting[bool]:
    debug = reader.text("debug")
    return debug.becomes(True) if debug.known and "underflow_overflow" in str(debug.value) else UNKNOWN
