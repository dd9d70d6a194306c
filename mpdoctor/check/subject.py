"""What a config rule judges: the settings of one run, its files, and the GPUs that it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpdoctor.check.sources.node import Document, Node
from mpdoctor.check.thresholds import DEFAULTS, Thresholds
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.training import Origin, Setting, TrainingConfig

ADAPTERS = ("lora", "qlora", "other_peft", "prefer_lora")
FULL = ("full_ft", "pretrain", "prefer_full")
SIXTEEN_BIT = ("fp16", "bf16")


class ConfigFile:
    """One file of a run, as its dialect understands it alone."""

    __slots__ = ("config", "dialect", "document", "plain_yaml", "role")

    def __init__(self, *, document: Document, dialect: str, role: str, config: TrainingConfig, plain_yaml: bool = False) -> None:
        self.document, self.dialect, self.role, self.config, self.plain_yaml = document, dialect, role, config, plain_yaml

    @property
    def path(self) -> str:
        """The file's path."""
        return self.document.path

    def node(self, path: str) -> Node | None:
        """The node at a dotted path."""
        return self.document.get(path)


class CheckSubject:
    """The subject of all config rules.

    Attributes:
        config: the run's settings, all files taken together.
        files: the files, each as it reads alone.
        gpus: the cards that the run is for; empty when nobody said, and then hardware rules are conditional.
        thresholds: numbers that are judgement or arithmetic, not a framework's rule.
    """

    __slots__ = ("config", "files", "gpus", "thresholds")

    def __init__(
        self, *, config: TrainingConfig, files: tuple[ConfigFile, ...] = (), gpus: tuple[GpuInfo, ...] = (), thresholds: Thresholds = DEFAULTS
    ) -> None:
        self.config, self.files, self.gpus, self.thresholds = config, files, gpus, thresholds

    def of(self, *dialects: str) -> tuple[ConfigFile, ...]:
        """The files of these dialects."""
        return tuple(file for file in self.files if file.dialect in dialects)

    @property
    def dialect(self) -> str:
        """The main file's dialect."""
        return self.config.dialect

    @property
    def computes_in(self) -> str | None:
        """The compute dtype, or None when unknown."""
        return self.config.compute_dtype.value

    @property
    def trains_adapters(self) -> bool:
        """Whether only adapters are trained."""
        return self.config.method.value in ADAPTERS

    @property
    def language(self) -> bool:
        """Whether a language model is trained, as far as known."""
        return self.config.domain.value == "language"

    @property
    def adam(self) -> bool:
        """Whether the optimizer divides by a running second moment."""
        return self.config.optimizer_family.value in ("adam", "adam8bit", "adam4bit")

    def nvidia(self) -> Iterator[tuple[GpuInfo, tuple[int, int]]]:
        """The NVIDIA cards whose compute capability is known."""
        for gpu in self.gpus:
            capability = gpu.compute_capability.value
            if gpu.vendor.lower() == "nvidia" and capability is not None:
                yield gpu, capability

    def below(self, major: int, minor: int = 0) -> GpuInfo | None:
        """The first NVIDIA card with a compute capability below this one."""
        return next((gpu for gpu, capability in self.nvidia() if capability < (major, minor)), None)

    def at_least(self, major: int, minor: int = 0) -> GpuInfo | None:
        """The first NVIDIA card with at least this compute capability."""
        return next((gpu for gpu, capability in self.nvidia() if capability >= (major, minor)), None)

    def made_by(self, vendor: str) -> GpuInfo | None:
        """The first device of a vendor (`amd`, `apple`, `cpu`, ...)."""
        return next((gpu for gpu in self.gpus if gpu.vendor.lower() == vendor), None)


def known(subject: CheckSubject, name: str) -> bool:
    """Whether what a rule needs has a value: a setting by name, `gpus`, or `warmup` in either form."""
    if name == "gpus":
        return bool(subject.gpus)
    if name == "warmup":
        return subject.config.warmup_steps.known or subject.config.warmup_ratio.known
    return subject.config.setting(name).known


def shown(setting: Setting[Any]) -> str:
    """A setting for a message: key and value as the user wrote them; a default is marked as such."""
    key = setting.at.key if setting.at and setting.at.key else None
    if setting.origin is Origin.DEFAULT:
        return f"{key} = {setting.value} (the default)" if key else f"{setting.value} (the default)"
    if key and setting.raw is not None:
        return f"`{key}: {setting.raw}`"
    return f"{key} = {setting.value}" if key else str(setting.value)


def capability(gpu: GpuInfo) -> str:
    """Name and compute capability, for messages: `Tesla V100 (compute capability 7.0)`."""
    value = gpu.compute_capability.value
    return f"{gpu.name} (compute capability {value[0]}.{value[1]})" if value else gpu.name
