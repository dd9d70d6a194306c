"""What the autopsy found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpdoctor.replay.checkpoints import Problem, Role, TensorEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStats:
    """The values of one stored tensor.

    Counts of non-finite values and of values above fp16's range are exact, and so is `amax`. The
    others are counts among `counted` elements: all of them, or an evenly spread sample of a large
    checkpoint.

    Attributes:
        entry: the tensor.
        numel: number of values (two for each complex number).
        nans: NaN.
        infs: infinities of either sign.
        first_nonfinite: index of the first non-finite value; None when all are finite.
        amax: largest finite magnitude; 0 for an empty tensor.
        above_fp16: finite values that are infinite in fp16 (magnitude 65520 or more).
        counted: values that the following counts are about.
        zeros: exact zeros, of either sign.
        subnormals: values below the smallest normal number of their own dtype.
        zero_in_fp16: values that are not zero and become zero in fp16 (magnitude below 2^-25).
        unmoved: values that a step of the run's learning rate leaves where they are in this dtype; None when no rate is known.
        median_lr: the smallest step that moves half of the values in this dtype; None for an all-zero tensor.
    """

    entry: TensorEntry
    numel: int
    nans: int = 0
    infs: int = 0
    first_nonfinite: tuple[int, ...] | None = None
    amax: float = 0.0
    above_fp16: int = 0
    counted: int = 0
    zeros: int = 0
    subnormals: int = 0
    zero_in_fp16: int = 0
    unmoved: int | None = None
    median_lr: float | None = None

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.entry.name

    @property
    def nonfinite(self) -> int:
        """NaN and infinities together."""
        return self.nans + self.infs

    @property
    def exact(self) -> bool:
        """Whether the counts are of all values."""
        return self.counted == self.numel

    def share(self, count: int | None) -> float:
        """A count as a share of the counted values; 0 when nothing was counted."""
        return count / self.counted if self.counted and count else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleStats:
    """All weights of one module. `zeros` and `unmoved` are shares from 0 to 1."""

    name: str
    numel: int
    nonfinite: int
    amax: float
    zeros: float
    unmoved: float | None
    dtypes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSummary:
    """The optimizer's state.

    Attributes:
        moment_dtypes: bytes of moments by dtype.
        first: statistics of the first moments (or momentum), in file order.
        second: statistics of the second moments.
        steps: lowest and highest number of updates taken; None when not stored.
        underflowed: shares of elements whose second moment is zero while the first is not (at least), by tensor name.
    """

    moment_dtypes: Mapping[str, int]
    first: tuple[TensorStats, ...]
    second: tuple[TensorStats, ...]
    steps: tuple[int, int] | None
    underflowed: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerState:
    """The loss scaler. `growth_tracker` counts the good steps since the scale last changed."""

    scale: float | None
    growth_tracker: int | None = None
    growth_interval: int | None = None
    growth_factor: float | None = None
    backoff_factor: float | None = None
    dynamic: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeStory:
    """Which dtype each part of the run has; names are torch's without prefix, None where not known.

    Attributes:
        config: what config.json says the weights are.
        stored: bytes of stored weights by dtype.
        training: what the run computes in, by its settings.
        adapter: bytes of adapter weights by dtype.
        master: bytes of master weights by dtype.
        moments: bytes of optimizer moments by dtype.
    """

    config: str | None = None
    stored: Mapping[str, int] = field(default_factory=dict)
    training: str | None = None
    adapter: Mapping[str, int] = field(default_factory=dict)
    master: Mapping[str, int] = field(default_factory=dict)
    moments: Mapping[str, int] = field(default_factory=dict)

    @property
    def main(self) -> str | None:
        """The dtype of most stored weight bytes."""
        return max(self.stored, key=lambda d: self.stored[d]) if self.stored else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AutopsyResult:
    """What the stored numbers say.

    Attributes:
        tensors: one entry per floating-point tensor that was judged.
        modules: the model's weights summed up by module.
        optimizer: None when the checkpoint has no optimizer state.
        scaler: None when it has no loss scaler.
        dtypes: the dtypes of the run's parts.
        lr: the step size that `unmoved` was judged by; None when unknown.
        bytes_read: bytes of tensor data read.
        unjudged: integer and other tensors whose values were not judged.
        problems: what went wrong while reading.
    """

    tensors: tuple[TensorStats, ...]
    modules: tuple[ModuleStats, ...] = ()
    optimizer: OptimizerSummary | None = None
    scaler: ScalerState | None = None
    dtypes: DtypeStory = field(default_factory=DtypeStory)
    lr: float | None = None
    bytes_read: int = 0
    unjudged: int = 0
    problems: tuple[Problem, ...] = ()

    def by_role(self, *roles: Role) -> tuple[TensorStats, ...]:
        """Statistics of the tensors that have one of the roles."""
        return tuple(t for t in self.tensors if t.entry.role in roles)

    def nonfinite(self, *roles: Role) -> tuple[TensorStats, ...]:
        """Statistics of the tensors that hold NaN or infinity, of these roles (of all when none is given)."""
        return tuple(t for t in self.tensors if t.nonfinite and (not roles or t.entry.role in roles))
