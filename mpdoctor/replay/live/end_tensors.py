"""What a step must leave finite: gradients, parameters and buffers. The loss is looked at when its backward pass starts."""

from __future__ import annotations

import torch

from mpdoctor.replay.live.finiteness import NAN, status
from mpdoctor.replay.live.op_trace import OpTracer


def look_at_end_tensors(tracer: OpTracer, model: torch.nn.Module) -> None:
    """Gradients, parameters and buffers as the step leaves them."""
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not any(e.kind == "gradient" and e.name == name for e in tracer.ends):
            tracer.end_of("gradient", name, parameter.grad)
    for name, parameter in model.named_parameters():
        tracer.end_of("parameter", name, parameter)
    for name, buffer in model.named_buffers():
        if status(buffer) & NAN or any(e.kind == "loss" for e in tracer.ends):
            tracer.end_of("buffer", name, buffer)
