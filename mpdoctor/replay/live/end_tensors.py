"""What a step must leave finite: gradients, parameters and buffers. The loss is looked at when its backward pass starts."""

from __future__ import annotations

import torch

from mpdoctor.replay.live.finiteness import FINITE, NAN, status
from mpdoctor.replay.live.op_trace import OpTracer


def look_at_end_tensors(tracer: OpTracer, model: torch.nn.Module) -> None:
    """Gradients, parameters and buffers as the step leaves them."""
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not any(e.kind == "gradient" and e.name == name for e in tracer.ends):
            tracer.end_of("gradient", name, parameter.grad)
    for name, parameter in model.named_parameters():
        tracer.end_of("parameter", name, parameter)
    damaged, bad_loss = set(damaged_buffers(model)), any(e.kind == "loss" for e in tracer.ends)
    for name, buffer in model.named_buffers():
        if name in damaged or bad_loss:
            tracer.end_of("buffer", name, buffer)


def damaged_buffers(model: torch.nn.Module) -> tuple[str, ...]:
    """Buffers that hold NaN, and running statistics that are infinite.

    Infinity in any other buffer can be a mask, or a minimum that has not seen a value.
    """
    statistics = {f"{n}.{s}" if n else s for n, m in model.named_modules() if hasattr(m, "running_var") for s in ("running_mean", "running_var")}
    found = ((name, status(buffer)) for name, buffer in model.named_buffers())
    return tuple(name for name, bits in found if bits & NAN or (bits != FINITE and name in statistics))
