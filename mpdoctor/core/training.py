"""What a run will do, whatever framework its files are for."""

from __future__ import annotations

from dataclasses import field, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar

from mpdoctor.core.location import FileSpan
from mpdoctor.core.record import dataclass

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

    @property
    def written(self) -> bool:
        """Whether a file has a word on it, even one that cannot be resolved. What is not written takes the framework's default."""
        return self.origin is not Origin.DEFAULT and self.at is not None

    def becomes(self, value: Any, note: str | None = None) -> Setting[Any]:
        """What follows from this setting: another value with the same origin and place."""
        return Setting(value, self.origin, self.at, self.raw, note or self.note)


UNKNOWN: Setting[Any] = Setting()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TrainingConfig:
    """The settings of one run that matter for precision. Unknown is a value: see `Setting`.

    Dtypes are short names of `core.numerics` (`fp32`, `bf16`, `fp16`, `fp8`, ...).
    """

    dialect: str = ""
    files: tuple[str, ...] = ()
    framework_version: Setting[str] = UNKNOWN

    # precision
    precision_mode: Setting[str] = UNKNOWN
    """`fp32`, `autocast`, `master_weights`, `pure_lowp`, `weights_lowp_autocast` or `fp8`."""
    compute_dtype: Setting[str] = UNKNOWN
    """What matrix products run in."""
    param_dtype: Setting[str] = UNKNOWN
    """What the model's weights are kept in; with adapters, the frozen base's."""
    master_dtype: Setting[str] = UNKNOWN
    """The copy that the optimizer updates: a dtype, `params` (these are fp32 themselves), or `none` (16-bit parameters are updated in place)."""
    optimizer_state_dtype: Setting[str] = UNKNOWN
    """`fp32`, `bf16`, `fp16`, `int8` or `int4`."""
    reduce_dtype: Setting[str] = UNKNOWN
    """What gradients are summed over ranks in."""
    grad_accum_dtype: Setting[str] = UNKNOWN
    buffer_dtype: Setting[str] = UNKNOWN
    eval_dtype: Setting[str] = UNKNOWN
    logit_dtype: Setting[str] = UNKNOWN
    save_dtype: Setting[str] = UNKNOWN
    router_dtype: Setting[str] = UNKNOWN
    softmax_fp32: Setting[bool] = UNKNOWN
    """Whether the attention softmax is forced to fp32."""
    tf32: Setting[bool] = UNKNOWN
    fp16_requested: Setting[bool] = UNKNOWN
    """The switch that asks for fp16, as written; `compute_dtype` is what comes of it."""
    bf16_requested: Setting[bool] = UNKNOWN
    apex_level: Setting[str] = UNKNOWN

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
    """Name as the file spells it."""
    optimizer_family: Setting[str] = UNKNOWN
    """`adam`, `adam8bit`, `adam4bit`, `adafactor`, `lion`, `sgd`, `muon`, `prodigy_like`, `lomo`, `galore_like` or `other`."""
    optimizer_fused: Setting[bool] = UNKNOWN
    optimizer_in_backward: Setting[bool] = UNKNOWN
    compensated: Setting[bool] = UNKNOWN
    """Kahan summation or stochastic rounding, which save small updates of 16-bit weights."""
    lr: Setting[float] = UNKNOWN
    lr_is_peak: Setting[bool] = UNKNOWN
    """False where `lr` is no peak learning rate (a Noam factor, a Prodigy multiplier): it must not be compared with one."""
    lr_scaled: Setting[bool] = UNKNOWN
    """Whether the framework multiplies `lr` by batch size or world size."""
    eps: Setting[float] = UNKNOWN
    beta1: Setting[float] = UNKNOWN
    beta2: Setting[float] = UNKNOWN
    weight_decay: Setting[float] = UNKNOWN
    warmup_steps: Setting[float] = UNKNOWN
    warmup_ratio: Setting[float] = UNKNOWN
    schedule: Setting[str] = UNKNOWN
    total_steps: Setting[int] = UNKNOWN
    epochs: Setting[float] = UNKNOWN
    clip_norm: Setting[float] = UNKNOWN
    """Largest gradient norm (or value, see `clip_kind`); 0 is off."""
    clip_kind: Setting[str] = UNKNOWN
    """`norm`, `full_model`, `value`, `adaptive` or `none`."""
    ema_dtype: Setting[str] = UNKNOWN
    ema_decay: Setting[float] = UNKNOWN

    # batch and ranks
    micro_batch: Setting[int] = UNKNOWN
    accumulation_steps: Setting[int] = UNKNOWN
    global_batch: Setting[int] = UNKNOWN
    world_size: Setting[int] = UNKNOWN
    sequence_length: Setting[int] = UNKNOWN
    packing: Setting[bool] = UNKNOWN
    distributed: Setting[str] = UNKNOWN
    """`none`, `ddp`, `fsdp1`, `fsdp2`, `zero0` to `zero3`, `megatron` or `other`."""
    allreduce_op: Setting[str] = UNKNOWN
    predivide: Setting[bool] = UNKNOWN
    """Whether gradients are divided before they are summed over ranks."""
    lossy_communication: Setting[str] = UNKNOWN
    """A hook or quantiser that makes gradients smaller before they are sent."""

    # method and model
    domain: Setting[str] = UNKNOWN
    """`language`, `vision`, `diffusion` or `speech`: learning-rate rules for language models stay off the others."""
    method: Setting[str] = UNKNOWN
    """`pretrain`, `full_ft`, `freeze`, `lora`, `qlora`, `other_peft`, `prefer_full` or `prefer_lora`."""
    model: Setting[str] = UNKNOWN
    model_family: Setting[str] = UNKNOWN
    """`model_type` of the model, or what its name says (`t5`, `gemma2`, `llama`, ...)."""
    n_params: Setting[int] = UNKNOWN
    model_dtype: Setting[str] = UNKNOWN
    """The dtype that the pretrained model declares (`dtype`, `torch_dtype` in its config.json)."""
    stored_dtype: Setting[str] = UNKNOWN
    """The dtype of the tensors in its files."""
    vocab_size: Setting[int] = UNKNOWN
    hidden_size: Setting[int] = UNKNOWN
    attention: Setting[str] = UNKNOWN
    """`eager`, `sdpa`, `flash2`, `flash3`, `flex`, `xformers`, `sage`, `te_fused` or `other`."""

    # adapters and quantisation
    lora_rank: Setting[int] = UNKNOWN
    lora_alpha: Setting[float] = UNKNOWN
    lora_rank_stabilised: Setting[bool] = UNKNOWN
    adapter_dtype: Setting[str] = UNKNOWN
    adapter_autocast: Setting[bool] = UNKNOWN
    """PEFT's `autocast_adapter_dtype`: 16-bit adapters are made fp32."""
    quantization: Setting[str] = UNKNOWN
    """`none`, `bnb4`, `bnb8`, `gptq`, `awq`, `hqq` or `other`."""
    quant_compute_dtype: Setting[str] = UNKNOWN
    quant_storage_dtype: Setting[str] = UNKNOWN
    quant_type: Setting[str] = UNKNOWN

    # fp8
    fp8: Setting[bool] = UNKNOWN
    fp8_backend: Setting[str] = UNKNOWN
    """`te`, `ao` or `msamp`."""
    fp8_format: Setting[str] = UNKNOWN
    """`hybrid`, `e4m3` or `e5m2`."""
    fp8_recipe: Setting[str] = UNKNOWN
    """`delayed`, `tensorwise`, `rowwise`, `blockwise`, `mxfp8`, `nvfp4`."""
    fp8_history: Setting[int] = UNKNOWN
    fp8_amax: Setting[str] = UNKNOWN
    """`max` or `most_recent`."""
    fp8_allgather: Setting[bool] = UNKNOWN
    fp8_edges_bf16: Setting[bool] = UNKNOWN
    """Whether the first and last layers stay in bf16."""
    fp8_attention: Setting[bool] = UNKNOWN

    # memory, speed, watching
    activation_checkpointing: Setting[bool] = UNKNOWN
    compile: Setting[bool] = UNKNOWN
    anomaly_mode: Setting[bool] = UNKNOWN
    nan_filter: Setting[bool] = UNKNOWN
    nan_check: Setting[bool] = UNKNOWN
    log_every: Setting[int] = UNKNOWN
    resume: Setting[str] = UNKNOWN
    save_only_model: Setting[bool] = UNKNOWN

    extra: dict[str, Setting[Any]] = field(default_factory=dict)
    """Settings that only one dialect has, by dotted name."""

    def settings(self) -> dict[str, Setting[Any]]:
        """All settings by name, unknown ones included; `extra` under its own names."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, Setting)} | self.extra

    def setting(self, name: str) -> Setting[Any]:
        """A setting by its field's name, or by its name in `extra`; `UNKNOWN` when there is none."""
        value = self.extra.get(name) or getattr(self, name, UNKNOWN)
        return value if isinstance(value, Setting) else UNKNOWN
