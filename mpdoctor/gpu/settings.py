"""The settings to copy, for each framework: one precision as each of them spells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpdoctor.gpu.recommend import Advice

FRAMEWORKS = ("PyTorch", "HF Trainer", "accelerate", "DeepSpeed", "Lightning", "torchtune", "Axolotl", "LLaMA-Factory")


_LIGHTNING = {"bf16": "bf16-mixed", "fp16": "16-mixed", None: "32-true"}

_TORCHTUNE = {
    "bf16": "dtype: bf16  # weights and optimizer state too, no fp32 copy",
    "fp16": "dtype: fp32  # torchtune refuses fp16: it has no loss scaler",
    None: "dtype: fp32",
}


def settings(advice: Advice) -> dict[str, str]:
    """Snippets by framework, in the framework's own language (Python, YAML or JSON)."""
    half = advice.precision if advice.precision != "fp32" else None
    tf32 = advice.tf32 and advice.device == "cuda"
    return {
        "PyTorch": _pytorch(advice, tf32=advice.tf32),
        "HF Trainer": _trainer(advice, half, tf32=tf32),
        "accelerate": f"mixed_precision: {half or 'no'}",
        "DeepSpeed": _deepspeed(half),
        "Lightning": _lightning(half, tf32=tf32),
        "torchtune": _TORCHTUNE[half],
        "Axolotl": "\n".join([f"bf16: {_flag(half == 'bf16')}", f"fp16: {_flag(half == 'fp16')}", *(["tf32: true"] if tf32 else [])]),
        "LLaMA-Factory": f"{half}: true" if half else "bf16: false\nfp16: false",
    }


def _trainer(advice: Advice, half: str | None, *, tf32: bool) -> str:
    arguments = [f"{half}=True"] if half else ["bf16=False", "fp16=False"]
    arguments += ["tf32=True"] if tf32 else []
    arguments += ["use_cpu=True"] if advice.device == "cpu" else []
    return f"TrainingArguments({', '.join(arguments)})"


def _flag(on: bool) -> str:
    return "true" if on else "false"


def _pytorch(advice: Advice, *, tf32: bool) -> str:
    lines = ['torch.set_float32_matmul_precision("high")'] if tf32 else []
    match advice.precision:
        case "bf16":
            lines += [
                f'with torch.autocast("{advice.device}", dtype=torch.bfloat16):',
                "    loss = model(batch)",
                "loss.backward(); optimizer.step()",
            ]
        case "fp16":
            lines += [
                f'scaler = torch.amp.GradScaler("{advice.device}")',
                f'with torch.autocast("{advice.device}", dtype=torch.float16):',
                "    loss = model(batch)",
                "scaler.scale(loss).backward(); scaler.unscale_(optimizer)",
                "scaler.step(optimizer); scaler.update()",
            ]
        case _:
            lines += ["loss = model(batch)  # fp32: no autocast, no scaler", "loss.backward(); optimizer.step()"]
    return "\n".join(lines)


def _deepspeed(half: str | None) -> str:
    match half:
        case "bf16":
            return '"bf16": {"enabled": true}'
        case "fp16":
            return '"fp16": {"enabled": true, "loss_scale": 0,\n         "initial_scale_power": 16}'
    return '"fp16": {"enabled": false}, "bf16": {"enabled": false}'


def _lightning(half: str | None, *, tf32: bool) -> str:
    trainer = f'Trainer(precision="{_LIGHTNING[half]}")'
    return ('torch.set_float32_matmul_precision("high")\n' if tf32 else "") + trainer
