"""Accelerate's launch config (`default_config.yaml`): how processes start, and in which precision.

With FSDP, parameters, buffers and gradient reduction all take the dtype of `mixed_precision`; trainable
16-bit parameters are upcast to fp32 first, so master copies exist. Read from accelerate of July 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import joined, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "accelerate 1.x"
MARKS = (
    "compute_environment", "mixed_precision", "num_processes", "num_machines", "fsdp_config", "deepspeed_config", "fp8_config",
    "main_training_function", "machine_rank", "same_network", "dynamo_config", "megatron_lm_config",
)  # fmt: skip


def claim(document: Document) -> float:
    """`distributed_type` beside any other of its keys is conclusive: no other dialect has it."""
    if document.constructor == "Accelerator":
        return 90
    found = count(document, MARKS)
    return 70 + found if "distributed_type" in document.keys and found else 0


def lift(reader: Reader) -> TrainingConfig:
    """The launcher's share: precision, ranks, sharding, fp8."""
    kind = reader.text("distributed_type").value or "NO"
    mixed = _mixed_precision(reader)
    deepspeed = str(kind).upper() == "DEEPSPEED"
    from_file = reader.text("deepspeed_config.deepspeed_config_file")
    fsdp = str(kind).upper() == "FSDP"
    fp8 = mixed.value == "fp8"
    compute = mixed.becomes("bf16", "accelerate runs the rest in bf16 beside fp8") if fp8 else mixed
    return TrainingConfig(
        dialect="accelerate",
        files=(reader.path,),
        **joined(
            _precision(compute, fsdp=fsdp, deepspeed=deepspeed),
            (_fp8(reader, mixed) if fp8 or reader.has("fp8_config") else {}),
        ),
        fp16_requested=mixed.becomes(mixed.value == "fp16") if mixed.explicit else UNKNOWN,
        bf16_requested=mixed.becomes(mixed.value == "bf16") if mixed.explicit else UNKNOWN,
        distributed=_distributed(reader, str(kind).upper()) if not from_file.known else UNKNOWN,
        world_size=reader.integer("num_processes"),
        clip_norm=reader.number("deepspeed_config.gradient_clipping", "megatron_lm_config.megatron_lm_gradient_clipping"),
        accumulation_steps=reader.integer("deepspeed_config.gradient_accumulation_steps"),
        activation_checkpointing=reader.flag("fsdp_config.fsdp_activation_checkpointing"),
        compile=_compile(reader),
        softmax_fp32=reader.flag("megatron_lm_config.megatron_lm_attention_softmax_in_fp32"),
        save_dtype=_save_dtype(reader, compute),
        extra={
            "accelerate.deepspeed_config_file": from_file,
            "accelerate.mixed_precision": mixed,
            "accelerate.fsdp": reader.text("distributed_type").becomes(fsdp) if reader.has("distributed_type") else UNKNOWN,
        },
    )


def _mixed_precision(reader: Reader) -> Setting[str]:
    """`no` unquoted is False in YAML 1.1; the legacy key `fp16: true` still counts."""
    given = reader.text("mixed_precision")
    if given.known:
        name = str(given.value).lower()
        return given.becomes("fp32" if name in ("no", "false", "off", "fp32") else name)
    if given.at:
        return given
    if reader.flag("fp16").value:
        return reader.flag("fp16").becomes("fp16")
    return reader.constant("fp32", f"{VERSION}: no mixed precision unless asked for", key="mixed_precision")


def _precision(compute: Setting[str], *, fsdp: bool, deepspeed: bool) -> Fields:
    if not compute.known or compute.value not in ("fp16", "bf16", "fp32"):
        return {}
    found: Fields = {"compute_dtype": compute}
    if compute.value == "fp32":
        found |= {"precision_mode": compute.becomes("fp32"), "scaler": compute.becomes("none")}
        return found
    if deepspeed:
        found |= {
            "precision_mode": compute.becomes("master_weights", "DeepSpeed keeps fp32 master weights"),
            "param_dtype": compute,
            "master_dtype": compute.becomes("fp32", "DeepSpeed keeps fp32 master weights"),
            "optimizer_state_dtype": compute.becomes("fp32"),
            "reduce_dtype": compute,
        }
    elif fsdp:
        note = "accelerate's FSDP: parameters are upcast to fp32 and sharded, gradients are reduced in the compute dtype"
        found |= {
            "precision_mode": compute.becomes("autocast", note),
            "param_dtype": compute.becomes("fp32", note),
            "master_dtype": compute.becomes("params", note),
            "optimizer_state_dtype": compute.becomes("fp32", note),
            "reduce_dtype": compute.becomes(compute.value, note),
            "buffer_dtype": UNKNOWN,
        }
    else:
        # What the weights are loaded in is the training script's business.
        found["reduce_dtype"] = UNKNOWN
    found["scaler"] = compute.becomes("dynamic" if compute.value == "fp16" else "none")
    if compute.value == "fp16" and not deepspeed:
        found |= torch_scaler(compute, "GradScalerKwargs' default")
    return found


def _distributed(reader: Reader, kind: str) -> Setting[str]:
    setting = reader.text("distributed_type")
    if kind == "FSDP":
        version = reader.integer("fsdp_config.fsdp_version", default=1)
        return setting.becomes("fsdp2" if version.value == 2 else "fsdp1")
    if kind == "DEEPSPEED":
        stage = reader.integer("deepspeed_config.zero_stage", default=2, note=VERSION)
        return stage.becomes(f"zero{stage.value}") if stage.known else UNKNOWN
    if kind == "MEGATRON_LM":
        return setting.becomes("megatron")
    return setting.becomes("none" if kind == "NO" else "ddp")


def _compile(reader: Reader) -> Setting[bool]:
    backend = reader.text("dynamo_config.dynamo_backend", "dynamo_backend")
    return backend.becomes(str(backend.value).upper() not in ("NO", "FALSE")) if backend.known else UNKNOWN


def _save_dtype(reader: Reader, compute: Setting[str]) -> Setting[str]:
    flag = reader.flag("deepspeed_config.zero3_save_16bit_model")
    return flag.becomes(compute.value) if flag.value and compute.value in ("fp16", "bf16") else UNKNOWN


def _fp8(reader: Reader, mixed: Setting[str]) -> Fields:
    backend = reader.text("fp8_config.backend")
    format_ = reader.text("fp8_config.fp8_format", default="HYBRID", note=f"{VERSION}, TERecipeKwargs")
    amax = reader.text("fp8_config.amax_compute_algo", default="most_recent", note=f"{VERSION}, TERecipeKwargs")
    block = reader.flag("fp8_config.use_mxfp8_block_scaling")
    names = {"TE": "te", "AO": "ao", "MSAMP": "msamp", "MS-AMP": "msamp"}
    found: Fields = {
        "fp8": mixed.becomes(mixed.value == "fp8"),
        "fp8_backend": backend.becomes(names.get(str(backend.value).upper(), "te")) if backend.known else UNKNOWN,
        "fp8_allgather": reader.flag("fp8_config.enable_fsdp_float8_all_gather"),
    }
    if found["fp8_backend"].value in ("te", None):
        found |= {
            "fp8_format": format_.becomes(str(format_.value).lower()) if format_.known else UNKNOWN,
            "fp8_history": reader.integer("fp8_config.amax_history_len", default=1024, note=f"{VERSION}, TERecipeKwargs"),
            "fp8_amax": amax,
            "fp8_recipe": block.becomes("mxfp8") if block.value else reader.constant("delayed", f"{VERSION}, TERecipeKwargs"),
        }
    return found


DIALECT = Dialect(title="Accelerate config", role=Role.LAUNCHER, version=VERSION, claim=claim, lift=lift)
