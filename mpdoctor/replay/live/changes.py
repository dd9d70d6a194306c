"""The one thing that a counterfactual run changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, slots=True)
class OpOfStep:
    """An op of a step by its number: how many ops came before it. `optimizer_ops` tells whether those of the optimizer are counted."""

    step: int
    number: int
    optimizer_ops: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs from the unchanged run. The default changes nothing.

    Attributes:
        lr_factor: the learning rate is multiplied by this at each optimizer step.
        compute_dtype: stands wherever the run asks for a 16-bit dtype (autocast, casts, weights, constants); fp64 stands for fp32 too.
        dynamic_scaling: a GradScaler with torch's defaults, added where the loop has none.
        scale: fixed loss scale for all steps, backoff and growth off.
        scale_at: (step, scale): the loss scale of one step alone.
        backward_scale: factor that each backward pass starts with, on top of the loop's own scaling; the gradients keep it.
        backward_scale_at: (step, factor): the same for one step alone.
        finite_op: the op whose result is made finite.
        without_batches: steps whose batch is left out.
        rows_kept: step -> rows of its batch that stay.
        clip_after_unscale: gradients are unscaled before they are clipped.
        adam_eps: eps of every optimizer that has one.
        master_weights: the optimizer works on fp32 copies of 16-bit weights, gradients and moments.
        fresh_optimizer: optimizer state is dropped before the first step.
        math_attention: attention by the math kernel.
        fp32_modules: names of modules whose forward runs in fp32.
        uncached_autocast: autocast's weight cache is off.
        finite_parameters: non-finite values of parameters and buffers are replaced before the first step.
        weights: (parameter, index, value) of single elements that are set before the first step.
        nonreentrant_checkpointing: `torch.utils.checkpoint` runs without reentrant autograd.
        cleared_gradients: gradients are cleared after each optimizer step, and after each step with a bad gradient.
    """

    lr_factor: float = 1.0
    compute_dtype: torch.dtype | None = None
    dynamic_scaling: bool = False
    scale: float | None = None
    scale_at: tuple[int, float] | None = None
    backward_scale: float = 1.0
    backward_scale_at: tuple[int, float] | None = None
    finite_op: OpOfStep | None = None
    without_batches: frozenset[int] = frozenset()
    rows_kept: dict[int, tuple[int, ...]] = field(default_factory=dict)
    clip_after_unscale: bool = False
    adam_eps: float | None = None
    master_weights: bool = False
    fresh_optimizer: bool = False
    math_attention: bool = False
    fp32_modules: tuple[str, ...] = ()
    uncached_autocast: bool = False
    finite_parameters: bool = False
    weights: tuple[tuple[str, tuple[int, ...], float], ...] = ()
    nonreentrant_checkpointing: bool = False
    cleared_gradients: bool = False

    @property
    def replaced_dtypes(self) -> tuple[torch.dtype, ...]:
        """The dtypes that `compute_dtype` stands for."""
        low = (torch.float16, torch.bfloat16)
        return (*low, torch.float32) if self.compute_dtype is torch.float64 else low


NOTHING = Changes()
