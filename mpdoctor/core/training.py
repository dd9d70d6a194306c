"""What a run will do, whatever framework its files are for."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar

from mpdoctor.core.location import FileSpan

T = TypeVar("T")


class Origin(StrEnum):
    """Where a setting's value comes from."""

    EXPLICIT = "explicit"
    """A file or command line sets it."""
    DEFAULT = "default"
    """The framework's default, for the framework version named in `Setting.note`."""
    DERIVED = "derived"
    """Follows from other settings."""
    UNKNOWN = "unknown"
    """Not known; no rule may rest on it."""


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One setting: its value, where it comes from, and where it stands.

    `raw` is the text as written in the file; `note` says for which version a default holds, or what
    a derived value was derived from.
    """

    value: T | None = None
    origin: Origin = Origin.UNKNOWN
    at: FileSpan | None = None
    raw: str | None = None
    note: str | None = None

    @property
    def known(self) -> bool:
        """Whether there is a value to judge. An explicit null is known: `value` None, origin explicit."""
        return self.origin is not Origin.UNKNOWN

    @property
    def explicit(self) -> bool:
        """Whether the user's own files set it."""
        return self.origin is Origin.EXPLICIT


UNKNOWN: Setting[Any] = Setting()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """The settings of one run that matter for precision. Unknown is a value: see `Setting`."""

    dialect: str = ""
    files: tuple[str, ...] = ()
    framework_version: Setting[str] = UNKNOWN

    # precision
    precision_mode: Setting[str] = UNKNOWN
    """`fp32`, `autocast`, `master_weights`, `pure_lowp`, `weights_lowp_autocast` or `fp8`."""
    compute_dtype: Setting[str] = UNKNOWN
    param_dtype: Setting[str] = UNKNOWN
    master_dtype: Setting[str] = UNKNOWN
    optimizer_state_dtype: Setting[str] = UNKNOWN
    reduce_dtype: Setting[str] = UNKNOWN
    save_dtype: Setting[str] = UNKNOWN
    tf32: Setting[bool] = UNKNOWN
    fp16_requested: Setting[bool] = UNKNOWN
    bf16_requested: Setting[bool] = UNKNOWN

    # loss scaling
    scaler: Setting[str] = UNKNOWN
    """`none`, `dynamic` or `static`."""
    init_scale: Setting[float] = UNKNOWN
    static_scale: Setting[float] = UNKNOWN
    growth_interval: Setting[int] = UNKNOWN
    growth_factor: Setting[float] = UNKNOWN
    backoff_factor: Setting[float] = UNKNOWN
    hysteresis: Setting[int] = UNKNOWN
    min_scale: Setting[float] = UNKNOWN

    # optimizer and schedule
    optimizer: Setting[str] = UNKNOWN
    optimizer_family: Setting[str] = UNKNOWN
    lr: Setting[float] = UNKNOWN
    eps: Setting[float] = UNKNOWN
    beta1: Setting[float] = UNKNOWN
    beta2: Setting[float] = UNKNOWN
    weight_decay: Setting[float] = UNKNOWN
    warmup_steps: Setting[float] = UNKNOWN
    warmup_ratio: Setting[float] = UNKNOWN
    schedule: Setting[str] = UNKNOWN
    total_steps: Setting[int] = UNKNOWN
    clip_norm: Setting[float] = UNKNOWN

    # batch
    micro_batch: Setting[int] = UNKNOWN
    accumulation_steps: Setting[int] = UNKNOWN

    # method and model
    method: Setting[str] = UNKNOWN
    """`pretrain`, `full_ft`, `lora`, `qlora`, `prefer_full`, `prefer_lora`, ..."""
    model: Setting[str] = UNKNOWN
    model_family: Setting[str] = UNKNOWN
    n_params: Setting[int] = UNKNOWN
    attention: Setting[str] = UNKNOWN
    distributed: Setting[str] = UNKNOWN

    extra: dict[str, Setting[Any]] = field(default_factory=dict)
    """Settings that only one dialect has, by dotted name."""

    def settings(self) -> dict[str, Setting[Any]]:
        """All settings by name, unknown ones included; `extra` under its own names."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, Setting)} | self.extra
