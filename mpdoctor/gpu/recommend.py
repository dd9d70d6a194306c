"""Which precision to train in, per device and for the devices that a run uses together: the weakest decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpdoctor.core.device import GpuInfo, Support
from mpdoctor.core.record import dataclass
from mpdoctor.gpu.machine import Machine

SUPPORT_WORDS = {
    Support.TENSOR_CORES: "natively, with matrix units",
    Support.NATIVE: "natively, without matrix units",
    Support.EMULATED: "emulated only",
    Support.STORAGE: "for storage only",
    Support.NONE: "not at all",
    Support.UNKNOWN: "in a way that is not known",
}

AUTOCAST_DEVICE = {"nvidia": "cuda", "amd": "cuda", "intel": "xpu", "apple": "mps"}
"""torch's device type by vendor; ROCm builds call themselves cuda."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to train in.

    Attributes:
        precision: `bf16`, `fp16` or `fp32`, with fp32 weights kept (mixed precision).
        scaler: whether a loss scaler is needed.
        tf32: whether TF32 is there for what stays in fp32.
        fp8: how fp8 would be used where it pays, None where there is none.
        device: torch's device type.
        why: the reason, in a few words.
    """

    precision: str
    scaler: bool
    tf32: bool
    fp8: str | None
    device: str
    why: str

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in ("precision", "scaler", "tf32", "fp8", "device", "why")}

    def __str__(self) -> str:
        scaler = " with a loss scaler" if self.scaler else ", no loss scaler" if self.precision == "bf16" else ""
        return f"{self.precision}{scaler}{', TF32 for the rest' if self.tf32 and self.precision != 'fp32' else ', TF32 on' if self.tf32 else ''}"


def together(machine: Machine) -> tuple[GpuInfo, ...]:
    """The GPUs that one run would use: those the environment leaves visible, all of them where that cannot be told."""
    seen = machine.visible
    if seen is None or not seen.certain:
        return machine.accelerators
    indices = {device.index for device in seen.devices}
    return tuple(gpu for gpu in machine.accelerators if gpu.ref.index in indices)


def advise(gpus: Sequence[GpuInfo]) -> Advice:
    """One precision for all `gpus` together (one or more)."""
    precision = next(choice for choice in ("bf16", "fp16", "fp32") if all(choice in _choices(gpu) for gpu in gpus))
    weakest = min(gpus, key=lambda gpu: len(_choices(gpu)))
    return Advice(
        precision=precision,
        scaler=precision == "fp16",
        tf32=all(gpu.formats.tf32.native for gpu in gpus),
        fp8=_fp8(gpus),
        device="cpu" if gpus[0].source == "cpu" else AUTOCAST_DEVICE.get(gpus[0].vendor, "cpu"),
        why=_why(precision, weakest, alone=len({gpu.name for gpu in gpus}) == 1),
    )


def recommendation(machine: Machine) -> dict[str, Any]:
    """The recommendation as plain JSON: for what a run would use (the CPU where no GPU is left to it), per device, and the settings to copy."""
    from mpdoctor.gpu.settings import settings

    gpus = together(machine)
    chosen: Sequence[GpuInfo] = gpus or (machine.cpu,)
    advice = advise(chosen)
    return {
        **advice.as_json(),
        "text": str(advice),
        "devices": [
            {"index": gpu.ref.index, "name": gpu.name, **advise([gpu]).as_json(), "text": str(advise([gpu])), "used": gpu in chosen}
            for gpu in machine.accelerators or chosen
        ],
        "better_alone": _better_alone(advice, gpus),
        "settings": settings(advice),
    }


def _choices(gpu: GpuInfo) -> tuple[str, ...]:
    """Precisions that a device should train in: native ones only.

    fp16 on a CPU never: its autocast keeps too little in fp32. On Apple neither: fp16 needs a loss scaler, which MPS lacked for long and which zeroed
    16-bit gradients until 2026 (pytorch#142397, #150255, #184286).
    """
    formats = gpu.formats
    bf16 = ("bf16",) if formats.bf16.native else ()
    fp16 = ("fp16",) if formats.fp16.native and gpu.source != "cpu" and gpu.vendor != "apple" else ()
    return (*bf16, *fp16, "fp32")


def _why(precision: str, weakest: GpuInfo, *, alone: bool) -> str:
    formats = weakest.formats
    who = "" if alone else f"{weakest.name}: "
    if precision == "bf16":
        return f"{who}bf16 is native and has fp32's range"
    if precision == "fp16":
        return f"{who}bf16 is {'only emulated' if formats.bf16 is Support.EMULATED else 'missing'}, fp16 is native and needs loss scaling"
    if formats.fp16 is Support.UNKNOWN:
        return f"{who}what it computes in is not known, and fp32 is right everywhere"
    if formats.fp16.native:
        return f"{who}bf16 is {'only emulated' if formats.bf16 is Support.EMULATED else 'missing'}, and fp16 has no dependable loss scaler here"
    note = next((note for note in formats.notes if note.startswith("fp16: ")), "fp16: no native fp16 arithmetic")
    return who + note.removeprefix("fp16: ")


def _fp8(gpus: Sequence[GpuInfo]) -> str | None:
    """How fp8 is used where every device has it. It pays for large matrix products only; bf16 stays the baseline."""
    if not all(gpu.formats.fp8.native for gpu in gpus):
        return None
    if any(str(gpu.metric("target").value or "").startswith("gfx94") for gpu in gpus):
        return "e4m3fnuz, through Transformer Engine for ROCm"
    capabilities = [gpu.compute_capability.value for gpu in gpus]
    known = [capability for capability in capabilities if capability]
    if any(capability >= (12, 0) for capability in known):
        return "per-tensor or current scaling, through Transformer Engine or torchao"
    if known and all((10, 0) <= capability < (12, 0) for capability in known):
        return "MXFP8, through Transformer Engine"
    return "per-tensor (delayed) scaling, through Transformer Engine or torchao"


def _better_alone(advice: Advice, gpus: Sequence[GpuInfo]) -> list[dict[str, Any]]:
    """Groups of devices that would train in a better precision without the others, and how to select them."""
    order = ("bf16", "fp16", "fp32")
    groups: dict[str, list[GpuInfo]] = {}
    for gpu in gpus:
        groups.setdefault(advise([gpu]).precision, []).append(gpu)
    found = []
    for precision in order[: order.index(advice.precision)]:
        members = groups.get(precision, [])
        if members:
            found.append(
                {
                    "precision": precision,
                    "names": [gpu.name for gpu in members],
                    "indices": [gpu.ref.index for gpu in members],
                    "select": _select(members),
                }
            )
    return found


def _select(gpus: Sequence[GpuInfo]) -> str | None:
    """The environment variable that leaves only these devices visible; None where their identities are not known."""
    if gpus[0].vendor == "amd":
        return f"HIP_VISIBLE_DEVICES={','.join(str(gpu.ref.index) for gpu in gpus)}" if all(gpu.ref.index is not None for gpu in gpus) else None
    uuids = [gpu.ref.uuid for gpu in gpus if gpu.ref.uuid]
    return f"CUDA_VISIBLE_DEVICES={','.join(uuids)}" if len(uuids) == len(gpus) else None
