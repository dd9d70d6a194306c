"""What an optimizer's name says: its family, and the dtype of its state.

Names of PyTorch, bitsandbytes, torchao, DeepSpeed, Megatron, Composer, timm and the HF Trainer's `optim`.
"""

from __future__ import annotations

_PRODIGY = ("prodigy", "dadapt", "d_adapt", "dadaptation")
_FAMILIES = (
    (("adafactor",), "adafactor"),
    (_PRODIGY, "prodigy_like"),
    (("galore", "apollo", "sinkgd"), "galore_like"),
    (("lomo",), "lomo"),
    (("muon", "dion"), "muon"),
    (("lion",), "lion"),
    (("adam", "lamb", "came", "ademamix", "novograd"), "adam"),
    (("sgd", "momentum", "nag"), "sgd"),
)


def optimizer_family(name: str) -> str:
    """`adam`, `adam8bit`, `adam4bit`, `adafactor`, `lion`, `sgd`, `muon`, `prodigy_like`, `lomo`, `galore_like` or `other`."""
    lowered = name.lower()
    for parts, family in _FAMILIES:
        if any(part in lowered for part in parts):
            if family != "adam":
                return family
            bits = state_dtype(name)
            return {"int8": "adam8bit", "int4": "adam4bit"}.get(bits or "", "adam")
    return "other"


def state_dtype(name: str) -> str | None:
    """`int8`, `int4` or `fp8` for optimizers with quantised state, else None (the state follows the parameters)."""
    lowered = name.lower().replace("_", "").replace("-", "")
    if "4bit" in lowered:
        return "int4"
    if "8bit" in lowered:
        return "int8"
    if lowered.endswith("fp8"):
        return "fp8"
    return None


def lr_is_peak(family: str) -> bool:
    """Whether its `lr` is a step size that may be compared with others' (a Prodigy multiplier is not)."""
    return family not in ("prodigy_like", "adafactor")
