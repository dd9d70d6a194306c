"""What a step must leave finite: gradients, parameters and buffers. The loss is looked at when its backward pass starts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import torch

from mpdoctor.replay.live.finiteness import FINITE, NAN, status
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.optimizer_watch import OptimizerWatch


def look_at_end_tensors(tracer: OpTracer, model: torch.nn.Module, *, finite: Collection[int] = ()) -> None:
    """Gradients, parameters and buffers as the step leaves them.

    `finite` holds the ids of tensors that the guard has read already, and found finite.
    """
    seen = {e.name for e in tracer.ends if e.kind == "gradient"}
    parameters = list(model.named_parameters())
    for name, parameter in parameters:
        if parameter.grad is not None and name not in seen and id(parameter.grad) not in finite:
            tracer.end_of("gradient", name, parameter.grad)
    for name, parameter in parameters:
        if id(parameter) not in finite:
            tracer.end_of("parameter", name, parameter)
    buffers = list(model.named_buffers())
    damaged = set(damaged_buffers(model)) if buffers else ()
    bad_loss = any(e.kind == "loss" for e in tracer.ends)
    for name, buffer in buffers:
        if name in damaged or bad_loss or tracer.overflowed(buffer):
            tracer.end_of("buffer", name, buffer)


def seen_finite(tracer: OpTracer, parameters: Iterable[torch.Tensor], watch: OptimizerWatch, weight_norm: float) -> set[int]:
    """Ids of the gradients and parameters that need no second look after the guard's.

    The weights were read when the step was over. The gradients were read before the optimizer stepped; they are still finite if no op of
    the whole step made anything else.
    """
    found = {id(p) for p in parameters} if math.isfinite(weight_norm) else set()
    return found if tracer.events else found | {id(g) for g in watch.finite}


def damaged_buffers(model: torch.nn.Module) -> tuple[str, ...]:
    """Buffers that hold NaN, and running statistics that are infinite.

    Infinity in any other buffer can be a mask, or a minimum that has not seen a value.
    """
    statistics = {f"{n}.{s}" if n else s for n, m in model.named_modules() if hasattr(m, "running_var") for s in ("running_mean", "running_var")}
    found = ((name, status(buffer)) for name, buffer in model.named_buffers())
    return tuple(name for name, bits in found if bits & NAN or (bits != FINITE and name in statistics))
