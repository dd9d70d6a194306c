"""Where a fact was seen: a place in a file, an operation of a training step, or a device."""

from __future__ import annotations

from enum import StrEnum

from mpdoctor.core.record import dataclass


class Phase(StrEnum):
    """Part of a training step, in the order in which a step runs through them."""

    INPUT = "input"
    """The batch as the data loader yields it."""
    PARAMETER = "parameter"
    """Weights as they are before the step."""
    BUFFER = "buffer"
    """Non-trained module state, such as BatchNorm's running statistics."""
    FORWARD = "forward"
    """The model's forward pass (code inside a module)."""
    LOSS = "loss"
    """Code outside any module, from the model's output to the scalar loss."""
    BACKWARD = "backward"
    """Autograd's backward pass."""
    UNSCALE = "unscale"
    """Division of the gradients by the loss scale, and gradient clipping."""
    OPTIMIZER = "optimizer"
    """The parameter update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpan:
    """A place in a user's file. `line` and `column` count from 1; `key` is the dotted config key."""

    file: str
    line: int | None = None
    column: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSite:
    """A place in a training step.

    `module` is the dotted module name (empty for code outside any module and for the root's own
    forward). `op` is an aten name without overload in the forward pass, and the name of the
    autograd node in the backward pass. `tensor` names a parameter, buffer or input where the site is one.
    """

    step: int
    phase: Phase
    module: str = ""
    op: str | None = None
    tensor: str | None = None
    source: FileSpan | None = None
    """Line of the user's code that ran the op (for backward: that ran the forward op)."""

    def __str__(self) -> str:
        what = self.tensor or self.op or ""
        where = f" in {self.module}" if self.module else ""
        return f"step {self.step}, {self.phase}: {what}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRef:
    """A device. `index` is the management library's index (NVML order), which need not be CUDA's."""

    name: str
    index: int | None = None
    uuid: str | None = None

    def __str__(self) -> str:
        return self.name if self.index is None else f"GPU {self.index} ({self.name})"


Location = FileSpan | TensorSite | DeviceRef
