"""kohya sd-scripts' TOML, and diffusers' training scripts on a command line.

Tables are flattened, their names mean nothing. `full_fp16` and `full_bf16` make gradients and weights 16-bit.
Defaults: sd-scripts of February 2026, diffusers of August 2026.
"""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.lifting import autocast, clipping, fp32, joined, optimizer_settings, pure, torch_scaler
from mpdoctor.check.reader import Fields, Reader
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.training import UNKNOWN, Setting, TrainingConfig

VERSION = "sd-scripts 0.9"
MARKS = (
    "network_module", "network_dim", "unet_lr", "train_data_dir", "clip_skip", "no_half_vae", "save_model_as", "full_bf16", "full_fp16",
    "fp8_base", "max_data_loader_n_workers", "text_encoder_lr", "min_snr_gamma", "cache_latents", "bucket_no_upscale", "enable_bucket",
    "max_train_epochs", "optimizer_type", "save_precision", "caption_extension", "pretrained_model_name_or_path",
)  # fmt: skip


def claim(document: Document) -> float:
    """Three of its arguments at any place."""
    names = set(document.keys)
    for node in document.root.mapping.values():
        names.update(node.mapping)
    found = len(names.intersection(MARKS))
    telling = names.intersection(
        ("network_module", "unet_lr", "no_half_vae", "clip_skip", "full_fp16", "full_bf16", "save_model_as", "optimizer_type")
    )
    return 45 + found if found >= 3 and telling and "model_name_or_path" not in names else 0


def lift(reader: Reader) -> TrainingConfig:
    """The arguments, tables flattened."""
    reader = Reader(_flattened(reader.document), siblings=reader.siblings, version=reader.version)
    network = reader.text("network_module")
    optimizer = reader.text("optimizer_type", default="AdamW", note=VERSION)
    if reader.flag("use_8bit_adam").value:
        optimizer = reader.flag("use_8bit_adam").becomes("AdamW8bit")
    model = reader.text("pretrained_model_name_or_path")
    return TrainingConfig(
        dialect="kohya",
        files=(reader.path,),
        **joined(
            _precision(reader),
            optimizer_settings(optimizer),
            clipping(reader.number("max_grad_norm", default=1.0, note=VERSION)),
            _warmup(reader),
        ),
        lr=reader.number("unet_lr", "learning_rate", default=2e-6, note=VERSION),
        schedule=reader.text("lr_scheduler", default="constant", note=VERSION),
        total_steps=reader.integer("max_train_steps"),
        epochs=reader.number("max_train_epochs"),
        micro_batch=reader.integer("train_batch_size", default=1, note=VERSION),
        accumulation_steps=reader.integer("gradient_accumulation_steps", default=1, note=VERSION),
        domain=reader.constant("diffusion", VERSION),
        method=network.becomes("lora") if network.known else UNKNOWN,
        model=model,
        lora_rank=reader.integer("network_dim"),
        lora_alpha=reader.number("network_alpha", default=1.0, note=VERSION),
        save_dtype=reader.dtype("save_precision"),
        activation_checkpointing=reader.flag("gradient_checkpointing"),
        attention=_attention(reader),
        lr_scaled=reader.flag("scale_lr"),
        extra={
            "kohya.no_half_vae": reader.flag("no_half_vae", "sdxl_no_half_vae", default=False, note=VERSION),
            "kohya.vae": reader.text("vae", "pretrained_vae_model_name_or_path"),
            "kohya.sdxl": _sdxl(reader, model),
        },
    )


def _flattened(document: Document) -> Document:
    """All tables' entries at the top, as sd-scripts reads them."""
    flat: dict[str, Node] = {}
    for name, node in document.root.mapping.items():
        if node.is_mapping and node.mapping:
            flat.update(node.mapping)
        else:
            flat[name] = node
    root = Node(flat, document.root.source, document.root.line, document.root.column)
    return Document(path=document.path, syntax=document.syntax, root=root, text=document.text)


def _precision(reader: Reader) -> Fields:
    word = reader.text("mixed_precision", default="no", note=VERSION)
    name = str(word.value).lower()
    asked: Fields = {"fp16_requested": word.becomes(name == "fp16"), "bf16_requested": word.becomes(name == "bf16")} if word.known else {}
    for key, compute in (("full_fp16", "fp16"), ("full_bf16", "bf16")):
        flag = reader.flag(key)
        if flag.value:
            fields = pure(flag, compute)
            return asked | fields | ({"scaler": flag.becomes("dynamic", "a GradScaler made to unscale fp16 gradients")} if compute == "fp16" else {})
    if name in ("fp16", "bf16"):
        return asked | autocast(word, name) | (torch_scaler(word) if name == "fp16" else {})
    return asked | fp32(word) if name in ("no", "false") else asked


def _warmup(reader: Reader) -> Fields:
    steps = reader.number("lr_warmup_steps", default=0.0, note=VERSION)
    return {"warmup_ratio": steps} if steps.value is not None and 0 < steps.value < 1 else {"warmup_steps": steps}


def _attention(reader: Reader) -> Setting[str]:
    for key, kind in (
        ("xformers", "xformers"),
        ("enable_xformers_memory_efficient_attention", "xformers"),
        ("sdpa", "sdpa"),
        ("mem_eff_attn", "other"),
    ):
        if (flag := reader.flag(key)).value:
            return flag.becomes(kind)
    return UNKNOWN


def _sdxl(reader: Reader, model: Setting[str]) -> Setting[bool]:
    """Whether the model is SDXL: by the network's or the model's name, or a trainer that says so."""
    for setting in (reader.text("model_type", "model_train_type"), model, reader.text("output_name")):
        if setting.known and any(mark in str(setting.value).lower() for mark in ("sdxl", "sd-xl", "sd_xl", "stable-diffusion-xl")):
            return setting.becomes(True)
    return UNKNOWN


DIALECT = Dialect(title="kohya sd-scripts", role=Role.TRAINER, version=VERSION, claim=claim, lift=lift)
