"""What the op-level tracer notes: where a bad value came from, who made it, and what else a traced step shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_map_only
from torch.utils._traceback import CapturedTraceback

from mpdoctor.core.location import Phase
from mpdoctor.replay.live.finiteness import versions


@dataclass(slots=True)
class External:
    """A bad value that no traced op made: it arrived in a parameter, a buffer, the batch, or a stale gradient."""

    kind: str
    """`parameter`, `buffer`, `input`, `gradient` or `unknown`."""
    name: str
    status: int
    dtype: str
    index: tuple[int, ...]
    bad: torch.Tensor | None = None
    """Mask of its bad elements when it was first met: an optimizer may spread the damage later."""


@dataclass(slots=True)
class Call:
    """An op's call, kept to be run again."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: torch.Tensor
    versions: tuple[int, ...] = ()
    written: int | None = None
    """Position of the argument that `output` is, where the op wrote in place."""

    def intact(self) -> bool:
        """Whether no input was modified since the call."""
        return self.versions == versions(self.args)

    def copy_inputs(self) -> None:
        """Keep the inputs as they are now."""
        with torch.no_grad():
            self.args, self.kwargs = tree_map_only(torch.Tensor, lambda t: t.detach().clone(), (self.args, self.kwargs))
        self.versions = versions(self.args)


@dataclass(slots=True)
class Event:
    """A non-finite value in an op's result, or carried into another phase."""

    n: int
    """Which op of the step it was, from 1."""
    optimizer_ops: bool
    """Whether `n` counts the ops of the optimizer."""
    op: str
    phase: Phase
    module: str
    status: int
    dtype: str
    shape: tuple[int, ...]
    created: bool
    """No input held such a value; False for an event that only carries one into a new phase."""
    deliberate: bool
    """An infinity that the code wrote itself (`masked_fill(-inf)`)."""
    sources: list[Event | External]
    node: str | None = None
    target: tuple[str, str] | None = None
    """(kind, name) of the parameter, buffer or gradient that was written."""
    stack: CapturedTraceback | None = None
    forward_op: str | None = None
    call: Call | None = None
    optimizer: str | None = None
    sequence: int | None = None
    """Number of the autograd node that the op made, or (in the backward pass) that ran it."""


@dataclass(slots=True)
class ForwardSite:
    """The forward op that made an autograd node."""

    op: str
    module: str
    stack: CapturedTraceback


@dataclass(slots=True)
class EndTensor:
    """Something that the step must leave finite (loss, gradient, parameter, buffer) and did not."""

    kind: str
    name: str
    status: int
    source: Event | External | None


@dataclass(slots=True)
class Rescaling:
    """In-place scalings of one gradient by the loop's own code, since it was last cleared or used."""

    name: str
    factor: float
    passes: set[int]
    """After which backward passes of the step."""
    stack: CapturedTraceback


@dataclass(slots=True)
class Shadow:
    """fp64 sum beside a 16-bit tensor that is added to in place."""

    tensor: torch.Tensor
    exact: torch.Tensor
    additions: int
    name: str
    stack: CapturedTraceback


@dataclass(slots=True)
class AbsorbedUpdate:
    """An in-place update of a 16-bit tensor outside the optimizer, and how much of it rounded away."""

    name: str
    dtype: str
    op: str
    share: float
    stack: CapturedTraceback


@dataclass(slots=True)
class Observations:
    """What else a traced step shows, beside non-finite values."""

    amax: dict[tuple[str, str, str], float] = field(default_factory=dict)
    nonfinite: dict[tuple[str, str, str], int] = field(default_factory=dict)
    flops: dict[str, float] = field(default_factory=dict)
    read_parameters: set[str] = field(default_factory=set)
    vanished_eps: list[tuple[float, Event]] = field(default_factory=list)
    replaced_nan: list[Event] = field(default_factory=list)
    shadows: dict[int, Shadow] = field(default_factory=dict)
    absorbed: dict[int, AbsorbedUpdate] = field(default_factory=dict)
    rescaled: Rescaling | None = None
    """The gradient that was scaled after the most backward passes, if after more than one."""
    ops: int = 0
