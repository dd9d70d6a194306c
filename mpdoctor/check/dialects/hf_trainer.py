"""Hugging Face `TrainingArguments` and TRL: flat YAML or JSON, read by `HfArgumentParser`.

TRL's files are the same with a model, PEFT and quantisation keys beside. What launches the run (accelerate
with FSDP or ZeRO) is not in the file, so whether 16-bit weights get fp32 master copies stays unknown here.
Defaults: transformers 5.24 and 4.46, TRL of July 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.dtypes import SIXTEEN_BIT
from mpdoctor.check.models import model_family, parameter_count
from mpdoctor.check.optimizers import lr_is_peak, optimizer_family, state_dtype
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "transformers 5.24"
MARKS = (
    "per_device_train_batch_size", "num_train_epochs", "learning_rate", "output_dir", "lr_scheduler_type", "logging_steps",
    "gradient_accumulation_steps", "bf16", "fp16", "report_to", "save_strategy", "eval_strategy", "evaluation_strategy",
    "warmup_ratio", "adam_epsilon", "max_grad_norm", "per_device_eval_batch_size", "save_total_limit", "optim", "logging_strategy",
    "fp16_full_eval", "bf16_full_eval", "gradient_checkpointing", "dataloader_num_workers", "remove_unused_columns",
)  # fmt: skip
TRL_MARKS = (
    "use_peft", "lora_r", "lora_target_modules", "load_in_4bit", "load_in_8bit", "dataset_mixture", "max_seq_length", "max_length",
    "bnb_4bit_quant_type", "use_bnb_nested_quant", "attn_implementation", "num_generations", "beta", "max_prompt_length", "max_completion_length",
)  # fmt: skip
PREFERENCE_MARKS = ("num_generations", "max_completion_length", "beta", "max_prompt_length", "kl_coef", "reward_model_path", "reward_funcs")
V4_KEYS = (
    "warmup_ratio", "fp16_opt_level", "half_precision_backend", "fp16_backend", "adafactor", "group_by_length", "no_cuda",
    "evaluation_strategy", "save_safetensors", "logging_dir", "jit_mode_eval", "use_ipex", "dispatch_batches", "split_batches",
    "past_index", "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap", "overwrite_output_dir",
)  # fmt: skip
V5_KEYS = ("activation_checkpointing",)


def claim(document: Document) -> float:
    """Weak on purpose: LLaMA-Factory and ms-swift files hold the same keys and more telling ones."""
    found = count(document, MARKS)
    if found < 3 and not (found and count(document, ("bf16", "fp16")) and count(document, ("learning_rate", "optim"))):
        return 0
    return 10 + found


def lift(reader: Reader) -> TrainingConfig:
    """TrainingArguments' settings; TRL's model, PEFT and quantisation keys where they stand."""
    version = framework_version(reader)
    trl = is_trl(reader)
    precision = amp(reader, trl=trl)
    compute = precision["compute_dtype"]
    param = param_dtype(reader, version, trl=trl)
    method = method_of(reader, trl=trl)
    optimizer = reader.text("optim", default="adamw_torch_fused", note=VERSION)
    if reader.flag("adafactor").value:
        optimizer = reader.flag("adafactor").becomes("adafactor")
    family = optimizer.becomes(optimizer_family(str(optimizer.value))) if optimizer.known else UNKNOWN
    model = reader.text("model_name_or_path", "model_init_kwargs.model_name_or_path")
    bits = state_dtype(str(optimizer.value))
    args = reader.text("optim_args")
    learning_rate = reader.number("learning_rate", default=2e-5 if trl else 5e-5, note="TRL's SFTConfig" if trl else VERSION)
    if trl and not learning_rate.explicit and reader.has(*PREFERENCE_MARKS):
        learning_rate = reader.number("learning_rate", default=1e-6, note="TRL's DPOConfig and GRPOConfig")
    clip = reader.number("max_grad_norm", default=1.0, note=VERSION)
    return TrainingConfig(
        dialect="hf_trainer",
        files=(reader.path,),
        framework_version=version,
        **precision,
        **mode_of(compute, param, method),
        param_dtype=param,
        optimizer_state_dtype=optimizer.becomes(bits) if bits else _state_follows(param, args),
        reduce_dtype=UNKNOWN,
        eval_dtype=_eval_dtype(reader),
        tf32=reader.flag("tf32"),
        apex_level=reader.text("fp16_opt_level") if reader.text("half_precision_backend", "fp16_backend").value == "apex" else UNKNOWN,
        optimizer=optimizer,
        optimizer_family=family,
        optimizer_fused=optimizer.becomes("fused" in str(optimizer.value)) if optimizer.known else UNKNOWN,
        compensated=args.becomes("use_kahan_summation=true" in str(args.value).lower().replace(" ", "")) if args.known else UNKNOWN,
        lr=learning_rate,
        lr_is_peak=family.becomes(lr_is_peak(str(family.value))) if family.known else UNKNOWN,
        eps=reader.number("adam_epsilon", default=1e-8, note=VERSION),
        beta1=reader.number("adam_beta1", default=0.9, note=VERSION),
        beta2=reader.number("adam_beta2", default=0.999, note=VERSION),
        weight_decay=reader.number("weight_decay", default=0.0, note=VERSION),
        **warmup(reader),
        schedule=reader.text("lr_scheduler_type", default="linear", note=VERSION),
        total_steps=_positive(reader.integer("max_steps")),
        epochs=reader.number("num_train_epochs", default=3.0, note=VERSION),
        clip_norm=clip,
        clip_kind=clip.becomes("norm" if clip.value else "none") if clip.known else UNKNOWN,
        micro_batch=reader.integer("per_device_train_batch_size", "per_gpu_train_batch_size", default=8, note=VERSION),
        accumulation_steps=reader.integer("gradient_accumulation_steps", default=1, note=VERSION),
        sequence_length=reader.integer("max_length", "max_seq_length"),
        packing=reader.flag("packing"),
        distributed=_distributed(reader),
        domain=model.becomes("language", "TRL trains language models") if trl and model.known else UNKNOWN,
        method=method,
        model=model,
        model_family=model.becomes(model_family(str(model.value))) if model_family(str(model.value)) else UNKNOWN,
        n_params=model.becomes(parameter_count(str(model.value))) if parameter_count(str(model.value)) else UNKNOWN,
        attention=attention(reader),
        lora_rank=reader.integer("lora_r"),
        lora_alpha=reader.number("lora_alpha"),
        lora_rank_stabilised=reader.flag("use_rslora"),
        **_quantization(reader, param, trl=trl),
        activation_checkpointing=reader.flag("activation_checkpointing", "gradient_checkpointing", default=trl, note=VERSION),
        compile=reader.flag("torch_compile", default=False, note=VERSION),
        anomaly_mode=_anomaly(reader),
        nan_filter=reader.flag("logging_nan_inf_filter", default=True, note=VERSION),
        log_every=reader.integer("logging_steps", default=10 if trl else 500, note=VERSION),
        resume=reader.text("resume_from_checkpoint"),
        save_only_model=reader.flag("save_only_model", default=False, note=VERSION),
    )


def framework_version(reader: Reader) -> Setting[str]:
    """4 or 5: from the command line, or from keys that only one of them has."""
    if reader.version:
        return Setting(reader.version, Origin.EXPLICIT, None, reader.version, "given on the command line")
    for keys, major in ((V4_KEYS, "4"), (V5_KEYS, "5")):
        for key in keys:
            if (node := reader.document.get(key)) is not None:
                return Setting(major, Origin.DERIVED, node.span(key), None, f"`{key}` is a key of transformers {major}")
    return UNKNOWN


def is_trl(reader: Reader) -> bool:
    """Whether the file holds TRL's keys beside TrainingArguments'."""
    return reader.has("model_name_or_path") and any(reader.has(key) for key in TRL_MARKS)


def amp(reader: Reader, *, trl: bool = False) -> Fields:
    """The two switches and what comes of them: what is computed in, and with which scaler.

    Accelerate makes a dynamic GradScaler (2^16, growth 2, backoff 0.5, every 2000 steps) for fp16.
    """
    bf16 = reader.flag("bf16", default=False, note=VERSION)
    fp16 = reader.flag("fp16", default=False, note=VERSION)
    if trl and not reader.has("bf16"):
        bf16 = fp16.becomes(False) if fp16.value else UNKNOWN  # newer TRL: bf16 unless fp16 is set
    if (bf16.value and fp16.value) or not bf16.known or not fp16.known:
        compute: Setting[object] = fp16.becomes("fp16") if fp16.value and not bf16.known else UNKNOWN
        if bf16.value and not fp16.known:
            compute = bf16.becomes("bf16")
    elif bf16.value:
        compute = bf16.becomes("bf16")
    elif fp16.value:
        compute = fp16.becomes("fp16")
    else:
        compute = (bf16 if bf16.explicit else fp16).becomes("fp32")
    found: Fields = {"fp16_requested": fp16, "bf16_requested": bf16, "compute_dtype": compute}
    if compute.value == "fp16":
        note = "Accelerate's GradScaler"
        found |= {
            "scaler": compute.becomes("dynamic", note),
            "init_scale": reader.constant(65536.0, note),
            "growth_interval": reader.constant(2000, note),
            "growth_factor": reader.constant(2.0, note),
            "backoff_factor": reader.constant(0.5, note),
        }
    elif compute.known:
        found["scaler"] = compute.becomes("none", "no fp16, no scaler")
    return found


def param_dtype(reader: Reader, version: Setting[str], *, trl: bool) -> Setting[str]:
    """What the weights are loaded in: the dtype that stands in the file, or the loader's default."""
    given = reader.dtype("dtype", "torch_dtype", "model_init_kwargs.dtype", "model_init_kwargs.torch_dtype")
    if given.known or given.at:
        return given
    if trl:
        return reader.constant("fp32", "TRL's default `dtype: float32`", key="dtype")
    if str(version.value).startswith("4"):
        return reader.constant("fp32", "from_pretrained's default in transformers 4", key="torch_dtype")
    return UNKNOWN


def mode_of(compute: Setting[object], param: Setting[str], method: Setting[str]) -> Fields:
    """Precision mode and master copy, from what is computed in and what the trainable weights are."""
    if not compute.known:
        return {}
    if compute.value == "fp32":
        return {"precision_mode": compute.becomes("fp32"), "master_dtype": compute.becomes("params")}
    adapters = method.value in ("lora", "qlora", "prefer_lora")
    if param.value in SIXTEEN_BIT and method.known and not adapters:
        return {"precision_mode": param.becomes("weights_lowp_autocast", "16-bit weights under autocast, unless FSDP or ZeRO keeps masters")}
    if param.value == "fp32" or adapters:
        return {"precision_mode": compute.becomes("autocast"), "master_dtype": compute.becomes("params")}
    return {}


def method_of(reader: Reader, *, trl: bool) -> Setting[str]:
    """Full fine-tuning, LoRA, QLoRA, or preference tuning with or without an adapter."""
    peft = reader.flag("use_peft")
    quantised = reader.flag("load_in_4bit")
    preference = next((key for key in PREFERENCE_MARKS if reader.has(key)), None) if trl else None
    if peft.value:
        return peft.becomes("prefer_lora" if preference else "qlora" if quantised.value else "lora")
    if not trl:
        return UNKNOWN
    full = "prefer_full" if preference else "full_ft"
    model = reader.text("model_name_or_path")
    return Setting(full, Origin.DERIVED, model.at, model.raw, "a pretrained model and no `use_peft`")


def warmup(reader: Reader) -> Fields:
    """Steps or a share of them: in transformers 5 `warmup_steps` below 1 is a share; in 4 steps win over `warmup_ratio`."""
    steps = reader.number("warmup_steps")
    ratio = reader.number("warmup_ratio")
    if steps.known and steps.value is not None and 0 < steps.value < 1:
        return {"warmup_ratio": steps}
    if steps.value:
        return {"warmup_steps": steps, "warmup_ratio": ratio}
    if ratio.known:
        return {"warmup_ratio": ratio}
    return {"warmup_steps": steps if steps.known or steps.at else reader.constant(0.0, VERSION, key="warmup_steps")}


def attention(reader: Reader) -> Setting[str]:
    """The attention kernel."""
    given = reader.text("attn_implementation", "model_init_kwargs.attn_implementation")
    if not given.known:
        return UNKNOWN
    name = str(given.value).lower()
    for part, kind in (
        ("flash_attention_3", "flash3"), ("flash-attn3", "flash3"), ("flash", "flash2"), ("sdpa", "sdpa"), ("eager", "eager"),
        ("flex", "flex"), ("xformers", "xformers"), ("sage", "sage"),
    ):  # fmt: skip
        if part in name:
            return given.becomes(kind)
    return given.becomes("other")


def _state_follows(param: Setting[str], args: Setting[str]) -> Setting[str]:
    text = str(args.value or "").lower()
    for name in ("bfloat16", "float16", "float32"):
        if f"variance_dtype={name}" in text.replace(" ", "").replace("torch.", ""):
            return args.becomes({"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[name])
    return param.becomes(param.value, "follows the parameters") if param.known and param.value == "fp32" else UNKNOWN


def _eval_dtype(reader: Reader) -> Setting[str]:
    for key, name in (("fp16_full_eval", "fp16"), ("bf16_full_eval", "bf16")):
        flag = reader.flag(key)
        if flag.value:
            return flag.becomes(name)
    return UNKNOWN


def _distributed(reader: Reader) -> Setting[str]:
    fsdp = reader.node("fsdp")
    if fsdp is not None and fsdp.value not in (False, "", "False"):
        version = reader.integer("fsdp_config.version", "fsdp_config.fsdp_version").value
        return Setting("fsdp1" if version == 1 else "fsdp2", Origin.EXPLICIT, fsdp.span("fsdp"), fsdp.raw)
    return UNKNOWN


def _quantization(reader: Reader, param: Setting[str], *, trl: bool) -> Fields:
    four, eight = reader.flag("load_in_4bit"), reader.flag("load_in_8bit")
    if four.value:
        return {
            "quantization": four.becomes("bnb4"),
            "quant_compute_dtype": param.becomes(param.value, "TRL passes `dtype`") if trl else reader.dtype("bnb_4bit_compute_dtype"),
            "quant_storage_dtype": reader.dtype("bnb_4bit_quant_storage"),
            "quant_type": reader.text(
                "bnb_4bit_quant_type", default="nf4" if trl else "fp4", note="TRL's default" if trl else "BitsAndBytesConfig's default"
            ),
        }
    if eight.value:
        return {"quantization": eight.becomes("bnb8")}
    return {}


def _anomaly(reader: Reader) -> Setting[bool]:
    debug = reader.text("debug")
    return debug.becomes(True) if debug.known and "underflow_overflow" in str(debug.value) else UNKNOWN


def _positive(setting: Setting[int]) -> Setting[int]:
    """`max_steps: -1` means "not set"."""
    return setting if setting.known and setting.value is not None and setting.value > 0 else UNKNOWN


DIALECT = Dialect(title="Hugging Face TrainingArguments / TRL", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift, plain_yaml=True)
