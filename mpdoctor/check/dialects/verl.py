"""verl's YAML for reinforcement learning and SFT; the actor is what is trained. Defaults: verl of 2026."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, joined, model_settings, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "verl 0.6"
MARKS = ("actor_rollout_ref", "reward_model", "algorithm", "critic", "custom_reward_function")
_ACTOR = "actor_rollout_ref.actor"


def claim(document: Document) -> float:
    """Two of its parts, or an SFT file's trainer and optimizer."""
    found = count(document, MARKS)
    if found >= 2:
        return 65 + found
    tuning = document.get("trainer.default_local_dir") or document.get("trainer.total_epochs")
    return 62 if tuning is not None and "data" in document.keys and "optim" in document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """The actor's optimizer and FSDP precision."""
    learning = reader.has("actor_rollout_ref")
    optim = (f"{_ACTOR}.optim", "optim")
    name = reader.text("actor_rollout_ref.model.path", "model.partial_pretrain", "model.path")
    lora = reader.integer("actor_rollout_ref.model.lora_rank", "model.lora_rank", default=0, note=VERSION)
    adapters = bool(lora.value)
    return TrainingConfig(
        dialect="verl",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.text(*(f"{base}.optimizer" for base in optim), default="AdamW", note=VERSION)),
            model_settings(name),
            clipping(reader.number(f"{_ACTOR}.grad_clip", *(f"{base}.clip_grad" for base in optim), default=1.0, note=VERSION)),
        ),
        lr=reader.number(*(f"{base}.lr" for base in optim)),
        weight_decay=reader.number(*(f"{base}.weight_decay" for base in optim)),
        warmup_steps=reader.number(*(f"{base}.lr_warmup_steps" for base in optim)),
        warmup_ratio=reader.number(*(f"{base}.lr_warmup_steps_ratio" for base in optim)),
        total_steps=_positive(reader.integer("trainer.total_training_steps")),
        epochs=reader.number("trainer.total_epochs"),
        micro_batch=reader.integer(f"{_ACTOR}.ppo_micro_batch_size_per_gpu", "data.micro_batch_size_per_gpu"),
        global_batch=reader.integer("data.train_batch_size"),
        distributed=_strategy(reader),
        domain=reader.constant("language", VERSION),
        method=lora.becomes("prefer_lora" if learning else "lora") if adapters else lora.becomes("prefer_full" if learning else "full_ft"),
        lora_rank=lora if adapters else UNKNOWN,
        lora_alpha=reader.number("actor_rollout_ref.model.lora_alpha", "model.lora_alpha"),
    )


def _precision(reader: Reader) -> Fields:
    bases = (f"{_ACTOR}.fsdp_config", "model.fsdp_config", "engine")
    compute = reader.dtype(
        *(f"{base}.mixed_precision.param_dtype" for base in bases), *(f"{base}.dtype" for base in bases), default="bf16", note=VERSION
    )
    if compute.value not in ("bf16", "fp16"):
        return {}
    reduce = reader.dtype(*(f"{base}.mixed_precision.reduce_dtype" for base in bases), default="fp32", note=VERSION)
    model = reader.dtype(*(f"{base}.model_dtype" for base in bases), default="fp32", note=VERSION)
    fields = autocast(compute, str(compute.value), note="FSDP's mixed precision") | {"reduce_dtype": reduce}
    if model.value in ("bf16", "fp16"):
        fields |= {
            "param_dtype": model,
            "master_dtype": model.becomes("none"),
            "precision_mode": model.becomes("weights_lowp_autocast"),
            "optimizer_state_dtype": model,
        }
    if compute.value == "fp16":
        fields["scaler"] = UNKNOWN  # newer engines bring a sharded scaler, older ones none
    return fields


def _strategy(reader: Reader) -> Setting[str]:
    named = reader.text(f"{_ACTOR}.strategy", "model.strategy", default="fsdp", note=VERSION)
    return named.becomes({"fsdp": "fsdp1", "fsdp2": "fsdp2", "megatron": "megatron"}.get(str(named.value), "other")) if named.known else UNKNOWN


def _positive(setting: Setting[int]) -> Setting[int]:
    return setting if setting.value is not None and setting.value > 0 else UNKNOWN


DIALECT = Dialect(title="verl", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
