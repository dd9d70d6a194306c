"""What a replay runs: model, optimizer, batches, loss, and the settings of the loop around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from mpdoctor.replay.activation_range import ActivationRange
from mpdoctor.replay.data_evidence import DataEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """The training loop's settings.

    Attributes:
        precision: the run's own words for its precision (`fp16 autocast + GradScaler`).
        asked: `fp16`, `bf16`, `fp32`, or None where the words do not say.
        scaler: constructor arguments of the GradScaler, or None for a loop without one.
        clip: norm that gradients are clipped to, or None.
        accumulation: micro-batches per optimizer step.
    """

    precision: str = ""
    asked: str | None = None
    scaler: dict[str, Any] | None = None
    clip: float | None = None
    accumulation: int = 1


@dataclass(slots=True, kw_only=True)
class Session:
    """One run, ready to take its first step.

    `loss(model, batch)` gives the scalar loss, autocast included. `step`, where there is one, is the run's own loop body
    and replaces mpdoctor's; it gets (model, optimizer, batch, scaler) and may return a dict with `loss` and `grad_norm`.
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    batches: Sequence[Any]
    loss: Callable[[torch.nn.Module, Any], torch.Tensor]
    step: Callable[..., Any] | None = None
    scheduler: Any = None
    after_step: Callable[[torch.nn.Module], Any] | None = None
    settings: LoopSettings = field(default_factory=LoopSettings)
    scaler_state: dict[str, Any] | None = None
    """State to load into the scaler (from `scaler.pt`)."""
    first_step: int = 0
    """Number of the first replayed step, for display: the checkpoint's global step."""
    schedule_over: bool = False
    """Whether the checkpoint is of the run's last step, so that its learning rate is 0 on purpose."""
    zeroed_grads: bool = True
    """Whether mpdoctor's own loop clears the gradients."""


class SessionSource(Protocol):
    """Where sessions come from. `open` gives a fresh one in exactly the same state each time."""

    name: str
    notes: list[str]
    """What could not be restored as it was, in words for the report."""
    device: str
    """`cpu` or `cuda`: on the CPU, code that asks for CUDA gets the CPU with CUDA's autocast lists."""

    real_batches: bool
    """Whether the batches are the run's own, and not made up."""

    micro_batches: int
    """Batches to a step of the run; the replay counts each as a step."""

    def open(self) -> Session:
        """A fresh session: new model, optimizer and batches in the state of the run's start."""
        ...

    def data_evidence(self) -> DataEvidence | None:
        """The data against the model that reads it, or None where rows are not known."""
        ...

    def activations(self) -> ActivationRange | None:
        """The activations of a run in fp16 by one forward pass in a wider precision, or None where there is no such pass."""
        ...

    def line_of_row(self, step: int, row: int) -> str | None:
        """Where a batch row comes from (`data.jsonl:17`), or None."""
        ...
