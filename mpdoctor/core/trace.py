"""What a run did: steps as a guard sees them, and one step op by op. Plain data, no tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mpdoctor.core.location import FileSpan, TensorSite
from mpdoctor.core.numerics import FP16
from mpdoctor.core.report import NonFinite, TimelineEntry

LOST_MASS = 1e-3
"""Share of the gradient's squared mass that may fall below fp16's smallest number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipCall:
    """A call of `clip_grad_norm_` or `clip_grad_value_`: the norm it saw, and the loss scale still in the gradients."""

    norm: float
    limit: float
    scale: float
    """Loss scale that the gradients still carried; 1.0 when they were unscaled, or never scaled."""
    by_value: bool = False
    """Whether it was `clip_grad_value_`: then `norm` is the largest magnitude."""
    source: FileSpan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepObservation:
    """One step as the guard sees it: nothing here needs an op-level trace.

    Norms are L2 in fp32. `grad_norm` is of unscaled gradients before clipping where the loop clips them so; else of what the optimizer received.
    """

    step: int
    loss: float | None = None
    grad_norm: float | None = None
    scale: float | None = None
    """Loss scale at the start of the step; None without a scaler."""
    lr: float | None = None
    optimizer_steps: int = 0
    """How often an optimizer stepped in this step."""
    skipped: bool | None = None
    """Whether a scaler skipped the optimizer step; None without a scaler."""
    weight_norm: float | None = None
    """Norm of all parameters after the step."""
    nonfinite_grads: tuple[str, ...] = ()
    nonfinite_weights: tuple[str, ...] = ()
    nonfinite_buffers: tuple[str, ...] = ()
    grads_missing: tuple[str, ...] = ()
    """Trainable parameters of the optimizer whose gradient is None."""
    stale_grads: tuple[str, ...] = ()
    """Parameters whose gradient was already non-finite before this step's backward pass."""
    uncleared_grads: bool = False
    """Whether the optimizer stepped twice on the same gradient tensors with no zero_grad between."""
    clip_calls: tuple[ClipCall, ...] = ()
    scale_not_removed: float | None = None
    """Loss scale that the gradients still carried when an optimizer stepped on them outside the scaler."""
    scale_not_applied: float | None = None
    """Loss scale that gradients were divided by although their backward pass had started from an unscaled loss."""
    outside_optimizers: tuple[str, ...] = ()
    """Parameters that got a gradient and belong to no optimizer that stepped."""
    autocast_left_on: bool = False
    """Whether an autocast region with its weight cache on was still open after the step."""
    nonfinite_inputs: tuple[str, ...] = ()

    @property
    def took_a_step(self) -> bool:
        """Whether the weights were updated."""
        return self.optimizer_steps > 0

    @property
    def passed_over(self) -> bool:
        """Whether the step was not taken because of its gradients: skipped by the scaler, or by the loop's own check."""
        return bool(self.skipped) or (bool(self.nonfinite_grads) and not self.took_a_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepException:
    """A step that raised."""

    step: int
    type: str
    message: str
    site: TensorSite


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStats:
    """Numbers of one parameter and its gradient at the traced step. Shares are of its elements."""

    name: str
    dtype: str
    numel: int
    amax: float
    grad_dtype: str | None = None
    grad_norm: float | None = None
    grad_amax: float | None = None
    grad_zero_share: float | None = None
    update_amax: float | None = None
    """Largest change of an element in the step."""
    changed_share: float | None = None
    """Elements that the optimizer step changed, of those with a gradient that is not zero."""
    moments: dict[str, str] = field(default_factory=dict)
    """Optimizer state of this parameter: name -> dtype, floating tensors only."""
    moment_zero_share: float | None = None
    """Elements whose second moment is 0 though the first is not (flushed)."""
    has_master: bool = False
    """Whether the optimizer keeps a wider copy of the weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleAmax:
    """Largest magnitude that a module's ops made in one phase of the traced step.

    In the backward pass it covers 16-bit results, and of wider ones the gradients of the module's parameters.
    """

    module: str
    phase: str
    dtype: str
    amax: float
    nonfinite: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulation:
    """A 16-bit tensor that was added to in place many times in one step, against the same sum in fp64."""

    name: str
    dtype: str
    additions: int
    relative_error: float
    source: FileSpan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """An in-place update of a 16-bit tensor outside the optimizer (a moving average, say) that rounded away."""

    name: str
    dtype: str
    op: str
    share: float
    """Share of the elements that should have changed and did not."""
    source: FileSpan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOutlier:
    """One element of a parameter that is out of all proportion to the rest of it, before the failing step."""

    name: str
    index: tuple[int, ...]
    value: float
    usual: float
    """Largest magnitude of the other elements."""
    flipped_bit: int | None = None
    """The bit (0: lowest) without whose flip the element would be as large as the others; None when no single bit explains it."""
    restored: float = 0.0
    """The value with that bit flipped back; 0 where no bit explains it."""
    at_start: bool = True
    """Whether it was there before the first step."""

    @property
    def place(self) -> str:
        """`layer.weight[7, 3]`."""
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """A gradient that the loop multiplied in place after several backward passes, before it was used."""

    name: str
    factor: float
    passes: int
    source: FileSpan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTrace:
    """One step, op by op."""

    step: int
    origin: NonFinite | None = None
    timeline: tuple[TimelineEntry, ...] = ()
    tensors: tuple[TensorStats, ...] = ()
    modules: tuple[ModuleAmax, ...] = ()
    flops: dict[str, float] = field(default_factory=dict)
    """Matrix-product and convolution FLOPs by dtype of the operands."""
    unused_parameters: tuple[str, ...] = ()
    """Trainable parameters that no op of the forward pass read."""
    accumulations: tuple[Accumulation, ...] = ()
    vanished_eps: tuple[tuple[float, TensorSite], ...] = ()
    """Constants added to a 16-bit tensor that round to zero in its dtype."""
    replaced_nan: tuple[TensorSite, ...] = ()
    """Ops that replaced a NaN of the loss or of a gradient (nan_to_num and the like)."""
    rounded_positions: tuple[tuple[str, str, int, int], ...] = ()
    """Buffers that count up in 16 bits: (name, dtype, distinct values, values)."""
    absorbed: tuple[Absorbed, ...] = ()
    rescaled: Rescaled | None = None
    swallowed: NonFinite | None = None
    """An overflow of 16 bits that made nothing else bad: what is divided by it is 0."""
    cut_by: tuple[tuple[str, str], ...] = ()
    """(parameter, op) where every way from the loss to the parameter leads through an op whose derivative is 0 everywhere (`round`)."""
    divided_again: float | None = None
    """Loss scale by which the gradients that the optimizer got had been divided twice."""
    update_undone: float | None = None
    """Share of the optimizer's update of all weights (projected) that was gone again when the step was over; None without an update."""
    ops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LossScaleWindow:
    """The loss scales that work for a step's gradients, as powers of two.

    Attributes:
        low: lowest scale that loses less than 0.1 % of the gradient's squared mass below 2**-24.
        high: highest scale that keeps the largest gradient under 65504.
        empty: fp16 cannot hold these gradients at any scale.
        used: the scale in use.
    """

    low: float
    high: float
    used: float | None

    @property
    def empty(self) -> bool:
        """Whether no scale works."""
        return self.low > self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientExponents:
    """True gradients of one module (`all`: of the whole model) by binary exponent.

    Attributes:
        name: dotted name of the module.
        zeros: elements that are exactly zero.
        counts: exponent -> number of elements with 2**exponent <= |g| < 2**(exponent + 1).
    """

    name: str
    zeros: int
    counts: dict[int, int]

    def scale_window(self) -> tuple[float, float] | None:
        """(lowest, highest) loss scale for these gradients, as `LossScaleWindow` defines them; None for gradients that are all zero."""
        if not self.counts:
            return None
        mass = {e: n * (1.5 * 2.0**e) ** 2 for e, n in self.counts.items()}
        total, lost, lowest = sum(mass.values()), 0.0, min(self.counts)
        for exponent in sorted(mass):
            lowest = exponent
            if lost + mass[exponent] > LOST_MASS * total:
                break
            lost += mass[exponent]
        smallest, largest = math.log2(FP16.smallest_subnormal), math.log2(FP16.max)
        return float(2.0 ** max(smallest - lowest, smallest)), float(2.0 ** math.floor(largest - (max(self.counts) + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatDifference:
    """Where the repeated run first differs from the first one.

    Attributes:
        step: the first step that differs.
        what: `loss`, `gradient norm` or `weight norm`.
        first, again: the two values.
    """

    step: int
    what: str
    first: float | None
    again: float | None

    @property
    def relative(self) -> float:
        """Difference over the larger magnitude; 1 where one of the two is missing or not finite."""
        if self.first is None or self.again is None or not (math.isfinite(self.first) and math.isfinite(self.again)):
            return 1.0
        return abs(self.first - self.again) / (max(abs(self.first), abs(self.again)) or 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StarvedParameters:
    """Parameters that lose a good part of their gradient's norm, because fp16 flushes small numbers to 0.

    Attributes:
        share: of all elements that have a gradient, those of these parameters.
        modules: the modules that they belong to.
    """

    share: float
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything that the replay observed of the unchanged run.

    Attributes:
        steps: the guard's view of each step.
        traces: the op-level view of the steps that were traced, by step.
        compute_dtypes: dtypes that autocast was asked for, and 16-bit dtypes of the weights.
        autocast_dtypes: dtypes that autocast was asked for.
        asked_precision: the precision that the run says it uses (`fp16`, `bf16`, `fp32`), or None.
        baseline_fails: whether the failure came back at the same step when the run was repeated.
        deterministic: whether the repeated run was bitwise equal; None when it was not repeated.
    """

    steps: tuple[StepObservation, ...]
    traces: dict[int, StepTrace] = field(default_factory=dict)
    exception: StepException | None = None
    failing_step: int | None = None
    compute_dtypes: tuple[str, ...] = ()
    autocast_dtypes: tuple[str, ...] = ()
    asked_precision: str | None = None
    weights_dtype: str = "float32"
    has_scaler: bool = False
    scaler_backs_off: bool | None = None
    schedule_over: bool = False
    """Whether the run had reached its last step: its learning rate is 0 on purpose."""
    baseline_fails: bool = False
    deterministic: bool | None = None
    repeat_difference: RepeatDifference | None = None
    """None where the repeated run was equal, or there was none."""
    finite_at_scale_one: bool | None = None
    """Whether the failing step's gradients are finite at loss scale 1; None when not tried."""
    loss_by_scale: tuple[int, float, float] | None = None
    """(step, loss, the same loss at loss scale 1) of a skipped step whose loss changes with the loss scale."""
    initial_weight_norm: float | None = None
    """Norm of all parameters before the first step."""
    optimizers: int = 1
    """How many optimizers the run has."""
    loaded_state: bool = False
    """Whether the optimizer had state before the first step."""
    drifted: tuple[tuple[str, float, float], ...] = ()
    """(parameter in no optimizer, norm at the start, norm before the failing step) where the loop itself made it grow."""
    unmoved_losses: tuple[float, ...] = ()
    """Losses of the same batches under the weights of the start; empty when not tried."""
    origin_moved: str = ""
    """How the place of the first bad value differs between two runs from the same state, in words; empty when it does not."""
    bad_state: tuple[tuple[str, str, str, str], ...] = ()
    """(parameter, name of the state, dtype, kind) of optimizer state that is not finite at the end though all weights are."""
    weight_outliers: tuple[WeightOutlier, ...] = ()
    window: LossScaleWindow | None = None
    gradient_exponents: tuple[GradientExponents, ...] = ()
    """Of the step that the window was measured on: in all, then by module; empty when not measured."""
    starved: StarvedParameters | None = None
    """None when not tried."""
    scaling_gain: float | None = None
    """Gradient norm with a loss scale over the norm without; None when not tried."""
    lr_for_half: float | None = None
    """Learning rate at which half of the 16-bit weights would take a step's update; None when not tried."""
    update_kept: float | None = None
    """Share of the intended update (projected) that the stored weights took; None when not tried."""
    grows_at_any_rate: bool = False
    """Whether what grew before the failure grew as much with next to no learning rate: an experiment tells."""
    initial_bad_parameters: tuple[str, ...] = ()
    initial_bad_buffers: tuple[str, ...] = ()
    initial_origin: NonFinite | None = None
    """The first of them, as an origin."""
    loaded_moments_dtype: str | None = None
    loaded_moments_flushed: float | None = None
    """Share of second moments that are 0 in the loaded optimizer state although the first moment is not."""
    rows: tuple[int, ...] = ()
    row_facts: tuple[str, ...] = ()
    """What is wrong with the failing batch, in words (`labels: all 16 are -100`)."""
    other_batches_fail: bool | None = None
    """Whether batches other than the failing one fail too from the same state."""

    @property
    def row_facts_name_rows(self) -> bool:
        """Whether the facts tell rows of the batch apart from its other rows."""
        return any("of the other rows" in fact for fact in self.row_facts)

    @property
    def failing(self) -> StepObservation | None:
        """The failing step, or None."""
        return next((s for s in self.steps if s.step == self.failing_step), None)

    @property
    def trace(self) -> StepTrace | None:
        """The trace of the failing step, or of the last traced step of a healthy run."""
        if self.failing_step is not None and (self.failing_step in self.traces or not self.baseline_fails):
            return self.traces.get(self.failing_step)
        return self.traces[max(self.traces)] if self.traces else None
