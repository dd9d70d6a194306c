"""What a checkpoint holds, as data: tensors by name and place in the file, plain settings, and what is wrong with the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from pathlib import Path
from typing import Any


class Role(StrEnum):
    """What a tensor is for."""

    WEIGHT = "weight"
    """A parameter or buffer of the model, as the model's own file stores it."""
    ADAPTER = "adapter"
    """A weight that an adapter (LoRA and its kin) adds to a base model."""
    MASTER = "master-weight"
    """The fp32 copy of the weights that the optimizer updates."""
    EMA = "ema"
    """A moving average of the weights."""
    FIRST_MOMENT = "first-moment"
    """Adam's `exp_avg`: the running mean of the gradient."""
    SECOND_MOMENT = "second-moment"
    """Adam's `exp_avg_sq`: the running mean of the squared gradient; Adam divides by its root."""
    MOMENTUM = "momentum"
    """SGD's `momentum_buffer`."""
    STEP = "step"
    """Number of updates that the optimizer took, kept per parameter."""
    SCALER = "scaler"
    """The loss scaler's scale or growth tracker."""
    RNG = "rng"
    """State of a random number generator."""
    OTHER = "other"


MODEL_ROLES = frozenset({Role.WEIGHT, Role.ADAPTER, Role.MASTER, Role.EMA})
"""Roles whose values the model computes with."""

MOMENT_ROLES = frozenset({Role.FIRST_MOMENT, Role.SECOND_MOMENT, Role.MOMENTUM})
"""Roles of optimizer state that is updated from gradients."""

ITEM_BYTES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "complex128": 16, "complex64": 8, "complex32": 4,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1,
    "qint32": 4, "qint8": 1, "quint8": 1,
}  # fmt: skip
"""Bytes per element, by torch's dtype name without prefix."""

FLOAT_DTYPES = frozenset(name for name in ITEM_BYTES if name.startswith(("float", "bfloat", "complex")))
"""Dtypes whose values can be non-finite."""


def extent(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """Elements from the first to the last one of a tensor, both included, as they lie in its storage."""
    if strides is None or 0 in shape:
        return prod(shape)
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """A tensor in a file, without its values.

    Attributes:
        name: dotted name inside the checkpoint (`model.layers.0.mlp.up_proj.weight`, `state.3.exp_avg`).
        dtype: torch's name without prefix (`bfloat16`).
        shape: sizes, outermost first.
        role: what it is for.
        file: the file that stores it.
        offset: first byte of its first element in that file.
        strides: steps between elements of each dimension, in elements; None when contiguous.
        parameter: name of the model parameter that optimizer state belongs to, where that is known.
        inline: the values themselves, for a tensor that lies inside a pickle instead of at a place in the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    file: Path
    offset: int
    strides: tuple[int, ...] | None = None
    parameter: str | None = None
    inline: bytes | None = field(default=None, repr=False)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """Bytes per element; 0 for a dtype that mpdoctor does not know."""
        return ITEM_BYTES.get(self.dtype, 0)

    @property
    def extent(self) -> int:
        """Bytes from the first element to the end of the last one in the file."""
        return extent(self.shape, self.strides) * self.item_bytes

    @property
    def place(self) -> tuple[Path, int, int]:
        """Identity of the stored bytes: tied weights have the same place."""
        return (self.file, self.offset, self.extent)


class ProblemKind(StrEnum):
    """What is wrong with a file of a checkpoint."""

    TRUNCATED = "truncated"
    """The file ends before the data that it announces."""
    EMPTY = "empty"
    MISSING = "missing"
    """Another file names it, and it is not there."""
    MALFORMED = "malformed"
    """Sizes, offsets, dtypes or syntax contradict each other."""
    DISAGREES = "disagrees"
    """Two files of the checkpoint contradict each other (index and shard, say)."""
    DUPLICATE = "duplicate"
    """The same tensor is stored twice."""
    RUNS_CODE = "runs-code"
    """Loading the file with pickle would run code."""
    FOREIGN_CODE = "foreign-code"
    """Loading the file with pickle would import code that is neither torch's nor a known framework's."""
    ESCAPES = "escapes"
    """A name or link inside the checkpoint points out of its folder."""
    TOO_BIG = "too-big"
    """Reading it would cost more memory or time than such a file may."""
    UNREADABLE = "unreadable"
    """No permission, a device, a pipe, an input/output error, or a file that changed while it was read."""
    NOT_JUDGED = "not-judged"
    """Part of the checkpoint that mpdoctor can list but not judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong with a file of the checkpoint. What can still be read is still judged."""

    kind: ProblemKind
    file: Path
    text: str
    tensor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint on disk, described without torch and without running anything that it contains.

    Attributes:
        path: the file or folder as the user gave it.
        format: name of the format (`hf-trainer`, `safetensors`, `torch-zip`, ...).
        tensors: all tensors, those of the optimizer included.
        files: the files that were read.
        config: the model's config.json.
        training_args: settings of the run as plain values (Hugging Face `training_args.bin`, Lightning
            hyper-parameters, Megatron `args`); None when the checkpoint has none.
        trainer_state: Hugging Face `trainer_state.json`; None when there is none.
        param_groups: the optimizer's groups as plain values (`lr`, `betas`, `eps`, ...).
        scheduler: the scheduler's state as plain values.
        scaler: the loss scaler's state as plain values (`scale`, `_growth_tracker`, ...).
        adapter_config: PEFT's adapter_config.json.
        rng: whether random generator states were saved.
        step: the training step at which it was saved.
        parts: formats of the parts of a folder, by file or folder name.
        extra: whatever else is plain and of interest, by name (`hyper_parameters`, `metadata`, `ds_config`, ...).
        problems: what is wrong with its files.
    """

    path: Path
    format: str
    tensors: tuple[TensorEntry, ...] = ()
    files: tuple[Path, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    training_args: Mapping[str, Any] | None = None
    trainer_state: Mapping[str, Any] | None = None
    param_groups: tuple[Mapping[str, Any], ...] = ()
    scheduler: Mapping[str, Any] | None = None
    scaler: Mapping[str, Any] | None = None
    adapter_config: Mapping[str, Any] | None = None
    rng: bool = False
    step: int | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def by_role(self, *roles: Role) -> tuple[TensorEntry, ...]:
        """The tensors that have one of the roles."""
        return tuple(t for t in self.tensors if t.role in roles)

    @property
    def name(self) -> str:
        """The last part of the path, for messages."""
        return self.path.name or str(self.path)
