"""NVIDIA GPUs, as NVML tells of them: answers of the child process made into `GpuInfo`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mpdoctor.core.device import FormatSupport, GpuInfo, Reading, unread
from mpdoctor.core.location import DeviceRef
from mpdoctor.core.record import dataclass
from mpdoctor.gpu.backends.isolation import SYSTEM, Answers, Interview
from mpdoctor.gpu.capability import nvidia

REASONS = {
    1: "NVML not initialised", 2: "invalid argument", 3: "not supported", 4: "no permission", 6: "not found", 8: "insufficient external power",
    9: "driver not loaded", 10: "timeout", 11: "interrupt problem", 12: "library not found", 13: "not in this driver", 14: "corrupted infoROM",
    15: "GPU is lost", 16: "GPU requires reset", 17: "operating system error", 18: "driver and library versions differ", 19: "in use",
    20: "out of memory", 21: "no data", 22: "ECC not supported in vGPU", 27: "not ready", 28: "no GPU found", 29: "invalid state",
    999: "unknown error",
}  # fmt: skip
"""NVML's return codes (nvml.h) in words."""

LOST, NEEDS_RESET, NO_PERMISSION = 15, 16, 4

METRICS: dict[str, tuple[str, ...]] = {
    "pci": ("pci_bus_id", "pci_device_id"),
    "virtualization": ("virtualization",),
    "memory": ("memory_total_bytes", "memory_free_bytes", "memory_used_bytes", "memory_reserved_bytes"),
    "mig_mode": ("mig_enabled", "mig_enabled_after_reset"),
    "mig_devices": ("mig_devices",),
    "ecc_mode": ("ecc_enabled", "ecc_enabled_after_reset"),
    "ecc_corrected_volatile": ("ecc_corrected_volatile",),
    "ecc_corrected_aggregate": ("ecc_corrected_aggregate",),
    "ecc_uncorrected_volatile": ("ecc_uncorrected_volatile",),
    "ecc_uncorrected_aggregate": ("ecc_uncorrected_aggregate",),
    "ecc_dram_uncorrected_volatile": ("ecc_dram_uncorrected_volatile",),
    "ecc_sram_uncorrected_volatile": ("ecc_sram_uncorrected_volatile",),
    "sram": ("sram_threshold_exceeded", "sram_uncorrected_aggregate"),
    "remapped_rows": ("remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed"),
    "spare_rows": ("spare_rows",),
    "retired_single_bit": ("retired_pages_single_bit",),
    "retired_double_bit": ("retired_pages_double_bit",),
    "retired_pending": ("retired_pages_pending",),
    "repair": ("repair_pending_channel", "repair_pending_tpc"),
    "recovery_action": ("recovery_action",),
    "clocks_event_reasons": ("clocks_event_reasons",),
    "temperature": ("temperature_celsius",),
    "temperature_slowdown": ("temperature_slowdown_celsius",),
    "temperature_margin": ("temperature_margin_celsius",),
    "memory_temperature": ("memory_temperature_celsius",),
    "power": ("power_watts",),
    "power_limit": ("power_limit_watts",),
    "persistence": ("persistence_mode",),
    "compute_mode": ("compute_mode",),
    "utilization": ("utilization_percent",),
    "processes": ("processes",),
}
"""The metrics that the answer to each question holds."""

_ONLY_WITH_ECC = tuple(question for question in METRICS if question.startswith(("ecc_corrected", "ecc_uncorrected", "ecc_dram", "ecc_sram", "sram")))

VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu-guest", 3: "vgpu-host", 4: "vgpu-host"}
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
RECOVERY_ACTIONS = {
    0: "none", 1: "reset", 2: "reboot the node", 3: "drain peer-to-peer work", 4: "drain and reset", 5: "reset IMEX", 6: "reset the bus",
    7: "reboot the system",
}  # fmt: skip
CLOCK_REASONS = {
    0x1: "idle", 0x2: "application clocks", 0x4: "software power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal",
    0x40: "hardware thermal", 0x80: "power brake", 0x100: "display clocks", 0x200: "board limit", 0x400: "reliability",
}  # fmt: skip

_CHILD = "import sys; sys.path.append(sys.argv.pop(1)); import nvml_child; nvml_child.main()"
"""Run with -I and -S: the child needs nothing that the environment or site-packages add. An imported module, unlike a script, is compiled once."""

SHARES_SYSTEM_MEMORY = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (11, 0), (12, 1)})
"""Compute capabilities of systems whose GPU has no memory of its own: NVML has no numbers there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The NVIDIA driver, as NVML shows it.

    Attributes:
        state: `ok`, `absent` (no library), `not-loaded`, `mismatch`, `no-permission`, `failed`, `crashed`, `hung`, or `not-asked`.
        detail: the library's or the loader's own words.
        version: version of the kernel driver.
        nvml_version: version of the library.
        cuda_version: newest CUDA that the driver serves, as (major, minor).
        kernel_log: NVIDIA's lines of the kernel log.
        incidents: questions that crashed or hung, in words.
    """

    state: str
    detail: str = ""
    version: Reading[str] = field(default_factory=unread)
    nvml_version: Reading[str] = field(default_factory=unread)
    cuda_version: Reading[tuple[int, int]] = field(default_factory=unread)
    kernel_log: Reading[list[str]] = field(default_factory=unread)
    incidents: tuple[str, ...] = ()


def start(*, limit: float, kernel_log: bool) -> Interview | Driver:
    """Start asking; the answers are fetched with `finish`. A `Driver` when there is nobody to ask.

    Args:
        limit: seconds for everything; one question may take a third of it.
        kernel_log: whether to read the kernel log too.
    """
    from mpdoctor.gpu.backends import nvml_child

    if not sys.platform.startswith("linux"):
        return Driver(state="not-asked", detail="NVML is read on Linux (and WSL2)")
    bindings = find_spec("pynvml")
    if bindings is None or bindings.origin is None:
        return Driver(state="not-asked", detail="the package nvidia-ml-py is not installed")
    folder = str(Path(bindings.origin).parent)
    command = [sys.executable, "-I", "-S", "-c", _CHILD, str(Path(nvml_child.__file__).parent), folder]
    log = "kernel-log" if kernel_log else "no"
    try:
        return Interview(
            lambda left_out: [*command, left_out, log],
            answer=lambda fd, left_out: nvml_child.answer(fd, folder, left_out, kernel_log=kernel_log),
            limit=limit,
            patience=limit / 3,
        )
    except OSError as error:
        return Driver(state="failed", detail=f"could not start Python to ask NVML: {error}")


def finish(interview: Interview | Driver, root: Path = Path("/")) -> tuple[Driver, tuple[GpuInfo, ...]]:
    """The driver and its GPUs. `root` is where `/proc` is looked for (GPUs without memory of their own)."""
    if isinstance(interview, Driver):
        return interview, ()
    answers = interview.result()
    system = answers.got.get(SYSTEM, {})
    state, detail = _state(answers)
    cuda = system.get("cuda_driver_version")
    driver = Driver(
        state=state,
        detail=detail,
        version=_reading(answers, SYSTEM, "driver", system.get("driver_version")),
        nvml_version=_reading(answers, SYSTEM, "nvml", system.get("nvml_version")),
        cuda_version=_reading(answers, SYSTEM, "cuda", (cuda // 1000, cuda % 1000 // 10) if cuda else None),
        kernel_log=_reading(answers, SYSTEM, "kernel_log", system.get("kernel_log")),
        incidents=tuple(_incident(*incident) for incident in answers.incidents),
    )
    return driver, tuple(_gpu(answers, index, root) for index in range(system.get("count", 0)))


def words(reason: int | str | None) -> str:
    """NVML's error code in words; text as it is."""
    return REASONS.get(reason, f"NVML error {reason}") if isinstance(reason, int) else reason or "not read"


def _reading(answers: Answers, device: int, question: str, value: Any) -> Reading[Any]:
    return Reading(value) if value is not None else Reading(None, words(answers.reasons.get((device, question))))


def _incident(device: int, question: str, what: str) -> str:
    where = "NVML" if device == SYSTEM else f"NVML, GPU {device},"
    return f"{where} {what} when asked for {question.replace('_', ' ')}"


def _state(answers: Answers) -> tuple[str, str]:
    system = answers.got.get(SYSTEM, {})
    if "count" in system:
        return "ok", ""
    for question in ("start", "library", "bindings", "init", "count"):
        reason = answers.reasons.get((SYSTEM, question))
        if reason is None:
            continue
        if isinstance(reason, str) and "answer within" in reason:
            return "hung", reason
        if isinstance(reason, str) and any(incident[1] == question for incident in answers.incidents):
            return "crashed", reason
        if question == "library":
            return "absent", words(reason)
        names = {9: "not-loaded", 12: "absent", 18: "mismatch", NO_PERMISSION: "no-permission"}
        return names.get(reason, "failed") if isinstance(reason, int) else "failed", words(reason)
    return "failed", "no answer"


def _gpu(answers: Answers, index: int, root: Path) -> GpuInfo:
    got = answers.got.get(index, {})
    metrics: dict[str, Reading[Any]] = {"state": Reading(_device_state(answers, index))}
    raw = _translated(got)
    for question, names in METRICS.items():
        for name in names:
            value = raw.get(name)
            metrics[name] = Reading(value) if value is not None else Reading(None, _why_not(answers, index, question, raw))
    capability = _capability(got)
    if capability in SHARES_SYSTEM_MEMORY and not metrics["memory_total_bytes"]:
        metrics["memory_total_bytes"] = Reading(None, "not supported: the GPU shares the system's memory")
        metrics["system_memory_bytes"] = _system_memory(root)
    name = got.get("name") or ("unreadable GPU" if capability is None else f"NVIDIA {nvidia.architecture(capability) or 'GPU'} (name unreadable)")
    formats, architecture, how = _formats(capability, name, got)
    why = words(answers.reasons.get((index, "compute_capability"), answers.reasons.get((index, "handle"))))
    return GpuInfo(
        ref=DeviceRef(name=name, index=index, uuid=got.get("uuid")),
        vendor="nvidia",
        source="nvml",
        compute_capability=Reading(capability) if capability else Reading(None, how or why),
        architecture=Reading(architecture) if architecture else Reading(None, "not in the table" if capability else why),
        formats=formats,
        metrics=metrics,
    )


def _capability(got: Mapping[str, Any]) -> tuple[int, int] | None:
    match got.get("compute_capability"):
        case (int(major), int(minor)):
            return major, minor
    return None


def _device_state(answers: Answers, index: int) -> str:
    reasons = {question: reason for (device, question), reason in answers.reasons.items() if device == index}
    if LOST in reasons.values():
        return "lost"
    if NEEDS_RESET in reasons.values():
        return "needs reset"
    handle = reasons.get("handle")
    return "ok" if handle is None else words(handle)


def _why_not(answers: Answers, index: int, question: str, raw: Mapping[str, Any]) -> str:
    """Why a metric has no value; some questions are only asked when another one was answered so that it makes sense."""
    reason = answers.reasons.get((index, question))
    if reason is None and question in _ONLY_WITH_ECC and not raw.get("ecc_enabled"):
        reason = "ECC is off" if raw.get("ecc_enabled") is False else answers.reasons.get((index, "ecc_mode"))
    if reason is None and question == "mig_devices":
        reason = "MIG is off" if raw.get("mig_enabled") is False else answers.reasons.get((index, "mig_mode"))
    return words(reason if reason is not None else answers.reasons.get((index, "handle")))


def _translated(got: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics under their names in the report: words for numbers, watts for milliwatts."""
    raw = dict(got)
    for name, table in (("virtualization", VIRTUALIZATION), ("compute_mode", COMPUTE_MODES), ("recovery_action", RECOVERY_ACTIONS)):
        if name in raw:
            raw[name] = table.get(raw[name], f"unknown ({raw[name]})")
    for name in ("power", "power_limit"):
        if raw.get(f"{name}_milliwatts"):
            raw[f"{name}_watts"] = raw[f"{name}_milliwatts"] / 1000
    for old, new in (("ecc_mode", "ecc_enabled"), ("mig_mode", "mig_enabled")):
        if old in raw:
            raw[new], raw[f"{new}_after_reset"] = raw[old], raw[f"{old}_pending"]
    if "clocks_event_reasons" in raw:
        mask = raw["clocks_event_reasons"]
        unknown = mask & ~sum(CLOCK_REASONS)
        raw["clocks_event_reasons"] = [word for bit, word in CLOCK_REASONS.items() if mask & bit] + ([f"unknown ({unknown:#x})"] if unknown else [])
    return raw


def _formats(capability: tuple[int, int] | None, name: str, got: Mapping[str, Any]) -> tuple[FormatSupport, str | None, str | None]:
    """Formats and architecture; by the name where the compute capability cannot be read, and then how they were found."""
    if capability:
        return nvidia.formats(capability, name, got.get("pci_device_id", 0)), nvidia.architecture(capability), None
    from mpdoctor.gpu.names import find

    cards = [card for card in find(name) if card.vendor == "nvidia"] if got.get("name") else []
    if len(cards) == 1:
        return cards[0].formats, cards[0].architecture, f"not readable; by its name it is {cards[0].generation}"
    return FormatSupport(notes=("neither compute capability nor a known name could be read",)), None, None


def _system_memory(root: Path) -> Reading[Any]:
    try:
        text = (root / "proc/meminfo").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        return Reading(None, error.strerror or str(error))
    line = next((line for line in text.splitlines() if line.startswith("MemTotal:")), "")
    parts = line.split()
    return Reading(int(parts[1]) * 1024) if len(parts) >= 2 and parts[1].isdigit() else Reading(None, "no MemTotal in /proc/meminfo")
