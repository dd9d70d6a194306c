"""The flags of diffusers' training scripts (`accelerate launch train_dreambooth.py --mixed_precision=fp16 ...`). Defaults: diffusers 0.35.

What is trained stays in fp32 under accelerate's autocast; frozen parts are cast. Without `--mixed_precision` accelerate's own config decides.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role, count
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, model_settings, optimizer_settings, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document
from mpdoctor.core.training import UNKNOWN, TrainingConfig

VERSION = "diffusers 0.35"
MARKS = (
    "pretrained_model_name_or_path", "train_batch_size", "max_train_steps", "resolution", "lr_warmup_steps", "lr_scheduler", "learning_rate",
    "gradient_accumulation_steps", "mixed_precision", "max_grad_norm", "seed", "output_dir", "dataset_name", "gradient_checkpointing", "rank",
)  # fmt: skip
TELLING = (
    "instance_data_dir", "instance_prompt", "class_data_dir", "with_prior_preservation", "validation_prompt", "validation_prompts", "center_crop",
    "random_flip", "snr_gamma", "checkpointing_steps", "use_8bit_adam", "enable_xformers_memory_efficient_attention", "train_text_encoder",
    "pretrained_vae_model_name_or_path", "max_train_steps", "noise_offset", "use_ema", "controlnet_model_name_or_path", "placeholder_token",
)  # fmt: skip


def claim(document: Document) -> float:
    """Five of its flags, two of them its own."""
    found, own = count(document, MARKS), count(document, TELLING)
    return 40 + found + own if document.syntax == "arguments" and own >= 2 and found + own >= 5 else 0


def lift(reader: Reader) -> TrainingConfig:
    """The script's flags."""
    schedule = reader.text("lr_scheduler", default="constant", note=VERSION)
    small, prodigy = reader.flag("use_8bit_adam"), reader.text("optimizer")
    optimizer = small.becomes("AdamW8bit") if small.value else prodigy if prodigy.written else reader.constant("AdamW", VERSION, key="optimizer")
    rank = reader.integer("rank")
    return TrainingConfig(
        dialect="diffusers",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(optimizer),
            model_settings(reader.text("pretrained_model_name_or_path")),
            clipping(reader.number("max_grad_norm", default=1.0, note=VERSION)),
        ),
        lr=reader.number("learning_rate") if not reader.flag("scale_lr").value else UNKNOWN,
        eps=reader.number("adam_epsilon", default=1e-8, note=VERSION),
        beta2=reader.number("adam_beta2", default=0.999, note=VERSION),
        weight_decay=reader.number("adam_weight_decay", default=1e-2, note=VERSION),
        schedule=schedule,
        warmup_steps=UNKNOWN if schedule.value == "constant" else reader.number("lr_warmup_steps", default=500.0, note=VERSION),
        total_steps=reader.integer("max_train_steps"),
        epochs=reader.number("num_train_epochs"),
        micro_batch=reader.integer("train_batch_size"),
        accumulation_steps=reader.integer("gradient_accumulation_steps", default=1, note=VERSION),
        domain=reader.constant("diffusion", VERSION),
        method=rank.becomes("lora") if rank.written else UNKNOWN,
        lora_rank=rank,
    )


def _precision(reader: Reader) -> Fields:
    word = reader.text("mixed_precision")
    name = str(word.value).lower()
    if name in ("fp16", "bf16"):
        asked: Fields = {"fp16_requested": word.becomes(name == "fp16"), "bf16_requested": word.becomes(name == "bf16")}
        return asked | autocast(word, name) | (torch_scaler(word) if name == "fp16" else {})
    return fp32(word) if name == "no" else {}


DIALECT = Dialect(title="diffusers' training scripts", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
