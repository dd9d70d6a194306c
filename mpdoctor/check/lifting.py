"""Building blocks that dialects share: an optimizer's name, clipping, and rows of the precision table."""

from __future__ import annotations

from typing import Any

from mpdoctor.check.models import model_family, parameter_count
from mpdoctor.check.optimizers import lr_is_peak, optimizer_family, state_dtype
from mpdoctor.check.reader import Fields
from mpdoctor.core.training import UNKNOWN, Origin, Setting


def optimizer_settings(name: Setting[str]) -> Fields:
    """What an optimizer's name tells: family, state, whether its `lr` is a step size."""
    if not name.known:
        return {"optimizer": name}
    text = str(name.value)
    family, bits = optimizer_family(text), state_dtype(text)
    return {
        "optimizer": name,
        "optimizer_family": name.becomes(family),
        "optimizer_fused": name.becomes(True) if "fused" in text.lower() else UNKNOWN,
        "lr_is_peak": name.becomes(lr_is_peak(family)),
    } | ({"optimizer_state_dtype": name.becomes(bits)} if bits else {})


def model_settings(name: Setting[str]) -> Fields:
    """What a model's name tells: family and size."""
    text = str(name.value or "")
    family, size = model_family(text), parameter_count(text)
    return {
        "model": name,
        "model_family": name.becomes(family, "from the model's name") if family else UNKNOWN,
        "n_params": name.becomes(size, "from the model's name") if size else UNKNOWN,
    }


def clipping(norm: Setting[float], kind: str = "norm") -> Fields:
    """A clipping threshold, where 0 (or an explicit null read as 0) switches clipping off."""
    if not norm.known:
        return {"clip_norm": norm}
    return {"clip_norm": norm, "clip_kind": norm.becomes(kind if norm.value else "none")}


def fp32(at: Setting[Any], note: str | None = None) -> Fields:
    """No mixed precision."""
    return {
        "precision_mode": at.becomes("fp32", note),
        "compute_dtype": at.becomes("fp32", note),
        "param_dtype": at.becomes("fp32", note),
        "master_dtype": at.becomes("params", note),
        "optimizer_state_dtype": at.becomes("fp32", note),
        "scaler": at.becomes("none", note),
    }


def autocast(at: Setting[Any], compute: str, *, reduce: str | None = None, note: str | None = None) -> Fields:
    """fp32 parameters, 16-bit compute; a dynamic GradScaler for fp16."""
    return {
        "precision_mode": at.becomes("autocast", note),
        "compute_dtype": at.becomes(compute, note),
        "param_dtype": at.becomes("fp32", note),
        "master_dtype": at.becomes("params", note),
        "optimizer_state_dtype": at.becomes("fp32", note),
        "reduce_dtype": at.becomes(reduce, note) if reduce else UNKNOWN,
        "scaler": at.becomes("dynamic" if compute == "fp16" else "none", note),
    }


def master_weights(at: Setting[Any], compute: str, *, reduce: str | None = None, note: str | None = None) -> Fields:
    """16-bit parameters with fp32 copies in the optimizer; a dynamic scaler for fp16."""
    return autocast(at, compute, reduce=reduce, note=note) | {
        "precision_mode": at.becomes("master_weights", note),
        "param_dtype": at.becomes(compute, note),
        "master_dtype": at.becomes("fp32", note),
    }


def pure(at: Setting[Any], compute: str, *, note: str | None = None) -> Fields:
    """Parameters, gradients and optimizer state in 16 bits, updated in place; no scaler."""
    return {
        "precision_mode": at.becomes("pure_lowp", note),
        "compute_dtype": at.becomes(compute, note),
        "param_dtype": at.becomes(compute, note),
        "master_dtype": at.becomes("none", note),
        "optimizer_state_dtype": at.becomes(compute, note),
        "reduce_dtype": at.becomes(compute, note),
        "scaler": at.becomes("none", note),
    }


def torch_scaler(at: Setting[Any], note: str = "torch.amp.GradScaler's default") -> Fields:
    """The numbers of an unconfigured GradScaler: defaults, which nobody wrote."""
    numbers = {"init_scale": 65536.0, "growth_interval": 2000, "growth_factor": 2.0, "backoff_factor": 0.5}
    return {name: Setting(value, Origin.DEFAULT, at.at, None, note) for name, value in numbers.items()}


def joined(*parts: Fields) -> Fields:
    """Several parts as one; where two set the same field, the later part wins."""
    return {name: setting for part in parts for name, setting in part.items()}
