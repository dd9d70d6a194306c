"""What the tracer does with an op: decided once per op from its schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

_UNREAD_OPS = ("empty", "new_empty", "resize", "_unsafe_view", "detach", "lift_fresh", "_local_scalar_dense", "_nested")
"""Results that are views, no tensors, or uninitialised memory."""
_UNINITIALISED = ("empty", "new_empty", "resize")
_OVERWRITING = ("copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "exponential_", "random_")
"""In-place ops to which the old values do not matter."""
_DRAWING = ("bernoulli_", "uniform_", "random_")
"""They draw finite numbers, whatever was there before."""
_REARRANGING = ("clone", "stack", "cat", "select_backward", "slice_backward")
"""Their results hold only values of their inputs, and zeros."""
_NAN_REPLACING = ("nan_to_num", "nan_to_num_", "nansum")
_UPDATING = ("lerp_", "add_", "sub_", "addcmul_", "addcdiv_", "_foreach_lerp_", "_foreach_add_", "_foreach_sub_")
_SCALING = ("mul_", "div_", "_foreach_mul_", "_foreach_div_")
_WITH_EPS = ("add", "add_", "clamp", "clamp_min", "maximum")


@dataclass(frozen=True, slots=True)
class OpPlan:
    """How to treat an op.

    Attributes:
        label: its name for people, `aten.addmm`.
        short: the name without namespace.
        read: whether its results are looked at. Views are not: their values have been.
        uninitialised: whether it hands out memory that holds anything.
        written: position and name of each argument that it modifies.
        overwrites: whether the old values of those do not matter.
        draws: whether it writes random numbers that are finite for any arguments.
        copies: whether its results hold only values of its inputs, and zeros, in another order, dtype or device.
        unscales: whether it is the GradScaler's own check, which tells by itself whether a gradient was bad.
        replaces_nan: whether it may hide NaN.
        updates: whether it is a way to update a weight or an average in place.
        scales: whether it may multiply a tensor in place by a number.
        takes_eps: whether a small constant may be added or clamped to.
        formula: FLOPs of a call, or None for ops that are no matrix product, convolution or attention.
    """

    label: str
    short: str
    read: bool
    uninitialised: bool
    written: tuple[tuple[int, str], ...]
    overwrites: bool
    draws: bool
    copies: bool
    unscales: bool
    replaces_nan: bool
    updates: bool
    scales: bool
    takes_eps: bool
    formula: Callable[..., float] | None


@cache
def plan_of(func: Any) -> OpPlan:
    """The plan of an op overload."""
    schema = func._schema
    short = schema.name.split("::")[-1]
    written = []
    for i, argument in enumerate(schema.arguments):
        declared = argument.alias_info is not None and argument.alias_info.is_write
        # Older batch-norm ops update their statistics without saying so in the schema.
        if declared or ("batch_norm" in short and "backward" not in short and argument.name in ("running_mean", "running_var")):
            written.append((i, argument.name))
    view = bool(schema.returns) and all(r.alias_info is not None for r in schema.returns)
    return OpPlan(
        label=schema.name.replace("::", "."),
        short=short,
        read=not short.startswith(_UNREAD_OPS) and (bool(written) or not view),
        uninitialised=short.startswith(_UNINITIALISED),
        written=tuple(written),
        overwrites=short in _OVERWRITING,
        draws=short in _DRAWING,
        copies=short == "_to_copy" or short in _REARRANGING,
        unscales=short == "_amp_foreach_non_finite_check_and_unscale_",
        replaces_nan=short in _NAN_REPLACING,
        updates=short in _UPDATING,
        scales=short in _SCALING,
        takes_eps=short in _WITH_EPS,
        formula=_flop_formulas().get(func._overloadpacket),
    )


@cache
def _flop_formulas() -> dict[Any, Callable[..., float]]:
    from torch.utils.flop_counter import flop_registry

    return dict(flop_registry)
