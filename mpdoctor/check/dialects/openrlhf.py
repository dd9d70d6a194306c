"""OpenRLHF's flags: `--ds.param_dtype bf16 --actor.adam.lr 5e-7`, or in versions before 0.9 `--bf16 --actor_learning_rate 5e-7`.

DeepSpeed's ZeRO under it keeps fp32 master weights; the actor is what is judged. Defaults: OpenRLHF 0.9.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import clipping, fp32, joined, master_weights, model_settings, optimizer_settings
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "OpenRLHF 0.9"
MARKS = (
    "ds.zero_stage", "ds.param_dtype", "ds.packing_samples", "ds.attn_implementation", "adam.lr", "actor.adam.lr", "critic.adam.lr",
    "train.micro_batch_size", "ckpt.output_dir", "rollout.batch_size",
)  # fmt: skip
OLDER = (
    "micro_train_batch_size", "actor_learning_rate", "critic_learning_rate", "zero_stage", "pretrain", "reward_pretrain", "init_kl_coef",
    "rollout_batch_size", "adam_offload", "max_epochs", "packing_samples",
)  # fmt: skip


def claim(document: Document) -> float:
    """Three of its flags, in either spelling."""
    if document.syntax != "arguments":
        return 0
    found, older = count(document, MARKS), count(document, OLDER)
    return 70 + found if found >= 3 else 60 + older if older >= 4 and "zero_stage" in document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """The actor's (or the only model's) settings."""
    learning = reader.has("actor.adam.lr", "actor_learning_rate", "critic.adam.lr", "critic_learning_rate")
    preference = learning or reader.has("beta", "dpo.beta", "algo.dpo.beta", "ref_pretrain")
    rank = reader.integer("lora_rank", "model.lora.rank", "actor.lora.rank", default=0, note=VERSION)
    method = ("prefer_lora" if preference else "lora") if rank.value else ("prefer_full" if preference else "full_ft")
    return TrainingConfig(
        dialect="openrlhf",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(reader.constant("FusedAdam", VERSION, key="optimizer")),
            model_settings(reader.text("actor.model_name_or_path", "model.model_name_or_path", "pretrain")),
            clipping(reader.number("actor.max_norm", "max_norm", default=1.0, note=VERSION)),
        ),
        lr=reader.number("actor.adam.lr", "adam.lr", "actor_learning_rate", "learning_rate"),
        beta2=reader.number("actor.adam.betas.1", "adam.betas.1", "adam_betas.1", default=0.95, note=VERSION),
        warmup_ratio=reader.number("actor.lr_warmup_ratio", "lr_warmup_ratio", default=0.03, note=VERSION),
        epochs=reader.number("train.max_epochs", "max_epochs"),
        micro_batch=reader.integer("train.micro_batch_size", "micro_train_batch_size"),
        global_batch=reader.integer("train.batch_size", "train_batch_size"),
        sequence_length=reader.integer("data.max_len", "max_len"),
        packing=reader.flag("ds.packing_samples", "packing_samples"),
        distributed=_stage(reader),
        domain=reader.constant("language", VERSION),
        method=rank.becomes(method) if rank.known else UNKNOWN,
        lora_rank=rank if rank.value else UNKNOWN,
    )


def _precision(reader: Reader) -> Fields:
    dtype = reader.dtype("ds.param_dtype")
    older = reader.flag("bf16")
    if dtype.value in ("bf16", "fp16"):
        return master_weights(dtype, str(dtype.value), note="ZeRO keeps fp32 master weights")
    if older.value:
        return master_weights(older, "bf16", note="ZeRO keeps fp32 master weights") | {"bf16_requested": older}
    return fp32(dtype) if dtype.value == "fp32" else {}


def _stage(reader: Reader) -> Setting[str]:
    stage = reader.integer("ds.zero_stage", "zero_stage", default=2, note=VERSION)
    return stage.becomes(f"zero{stage.value}") if stage.value in (1, 2, 3) else UNKNOWN


DIALECT = Dialect(title="OpenRLHF", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
