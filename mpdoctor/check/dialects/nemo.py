"""NVIDIA NeMo 1 YAML: Lightning's `trainer`, `exp_manager`, and `model.optim`.

`model.megatron_amp_O2` decides whether the weights are 16-bit with fp32 copies. `NoamAnnealing` makes `lr` a
factor, not a rate. Defaults: NeMo of September 2025.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import clipping, joined, master_weights, optimizer_settings
from mpdoctor.check.lightning_precision import precision_fields, requested
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

VERSION = "NeMo 2.4"


def claim(document: Document) -> float:
    """`trainer` with `exp_manager` or `model.optim`."""
    trainer = document.get("trainer")
    if trainer is None or len(trainer.mapping) < 2:
        return 0
    marks = ("exp_manager" in document.keys) + (document.get("model.optim") is not None)
    return 50 + 5 * marks if marks else 0


def lift(reader: Reader) -> TrainingConfig:
    """Trainer, optimizer and the Megatron switches under `model`."""
    precision = reader.text("trainer.precision", default="32", note=VERSION)
    fields = precision_fields(precision, fsdp=False, deepspeed=False) | requested(precision)
    compute = str(fields["compute_dtype"].value) if "compute_dtype" in fields else ""
    o2 = reader.flag("model.megatron_amp_O2", "model.megatron_amp_02")
    megatron = reader.has("model.megatron_amp_O2", "model.micro_batch_size", "model.tensor_model_parallel_size")
    if o2.value and compute in ("fp16", "bf16"):
        fields |= master_weights(precision, compute, note="megatron_amp_O2: 16-bit weights, fp32 copies")
    if compute == "fp16" and megatron:
        fields |= _scaler(reader)
    if reader.has("model.fsdp_grad_reduce_dtype"):
        fields["reduce_dtype"] = reader.dtype("model.fsdp_grad_reduce_dtype")
    schedule = reader.text("model.optim.sched.name")
    noam = str(schedule.value or "").startswith("Noam")
    optimizer = optimizer_settings(reader.text("model.optim.name"))
    if noam:
        optimizer["lr_is_peak"] = schedule.becomes(False, "Noam scales by d_model^-0.5 and warm-up^-0.5")
    clip = reader.number("trainer.gradient_clip_val", default=0.0, note=f"{VERSION}: no clipping unless asked for")
    return TrainingConfig(
        dialect="nemo",
        files=(reader.path,),
        **joined(
            fields,
            optimizer,
            clipping(clip),
            _fp8(reader),
        ),
        lr=reader.number("model.optim.lr"),
        eps=reader.number("model.optim.eps", default=1e-8, note="torch.optim"),
        beta1=reader.number("model.optim.betas.0"),
        beta2=reader.number("model.optim.betas.1"),
        weight_decay=reader.number("model.optim.weight_decay"),
        schedule=schedule.becomes("noam") if noam else schedule,
        warmup_steps=reader.number("model.optim.sched.warmup_steps"),
        warmup_ratio=reader.number("model.optim.sched.warmup_ratio"),
        total_steps=_positive(reader.integer("trainer.max_steps")),
        epochs=reader.number("trainer.max_epochs"),
        micro_batch=reader.integer("model.micro_batch_size", "model.train_ds.batch_size"),
        global_batch=reader.integer("model.global_batch_size"),
        accumulation_steps=reader.integer("trainer.accumulate_grad_batches", default=1, note="Lightning"),
        sequence_length=reader.integer("model.encoder_seq_length"),
        softmax_fp32=reader.flag("model.attention_softmax_in_fp32"),
        logit_dtype=_logits(reader),
        distributed=reader.text("trainer.strategy").becomes("megatron") if megatron else UNKNOWN,
        domain=_domain(reader, megatron=megatron),
        method=_method(reader),
        n_params=UNKNOWN,
        lora_rank=reader.integer("model.peft.lora_tuning.adapter_dim"),
        log_every=reader.integer("trainer.log_every_n_steps", default=50, note="Lightning"),
        extra={
            "lightning.sync_batchnorm": reader.flag("trainer.sync_batchnorm"),
            "scaling.unused": reader.number("model.native_amp_init_scale") if compute in ("bf16", "fp32") else UNKNOWN,
        },
    )


def _scaler(reader: Reader) -> Fields:
    return {
        "init_scale": reader.number("model.native_amp_init_scale", default=2.0**32, note=VERSION),
        "growth_interval": reader.integer("model.native_amp_growth_interval", default=1000, note=VERSION),
        "hysteresis": reader.integer("model.hysteresis", default=2, note=VERSION),
    }


def _fp8(reader: Reader) -> Fields:
    fp8 = reader.flag("model.fp8")
    if not fp8.value:
        return {}
    e4m3 = reader.flag("model.fp8_e4m3")
    return {
        "fp8": fp8,
        "fp8_backend": reader.constant("te", VERSION),
        "fp8_format": e4m3.becomes("e4m3") if e4m3.value else reader.flag("model.fp8_hybrid", default=True, note=VERSION).becomes("hybrid"),
        "fp8_recipe": reader.constant("delayed", VERSION),
        "fp8_history": reader.integer("model.fp8_amax_history_len", default=1024, note=VERSION),
        "fp8_amax": reader.text("model.fp8_amax_compute_algo", default="max", note=VERSION),
    }


def _logits(reader: Reader) -> Setting[str]:
    flag = reader.flag("model.fp16_lm_cross_entropy")
    return flag.becomes("fp16") if flag.value else UNKNOWN


def _domain(reader: Reader, *, megatron: bool) -> Setting[str]:
    for key in ("model.encoder", "model.preprocessor", "model.sample_rate"):
        if (node := reader.node(key)) is not None and not megatron:
            return Setting("speech", Origin.DERIVED, node.span(key), None, "an acoustic model")
    node = reader.node("model")
    return Setting("language", Origin.DERIVED, node.span("model") if node else None, None, "a Megatron model") if megatron else UNKNOWN


def _method(reader: Reader) -> Setting[str]:
    scheme = reader.text("model.peft.peft_scheme")
    if scheme.known:
        name = str(scheme.value).lower()
        return scheme.becomes("lora" if "lora" in name else "full_ft" if name in ("none", "null") else "other_peft")
    restore = reader.text("model.restore_from_path")
    return restore.becomes("full_ft") if restore.known and reader.has("model.data.train_ds") else UNKNOWN


def _positive(setting: Setting[int]) -> Setting[int]:
    return setting if setting.value is not None and setting.value > 0 else UNKNOWN


DIALECT = Dialect(title="NVIDIA NeMo", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
