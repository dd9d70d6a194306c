"""The devices of `mpdoctor gpu`: what each computes in, what to train in, its health; then the settings to copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpdoctor.core.device import GpuInfo, Support
from mpdoctor.core.finding import Severity
from mpdoctor.core.location import DeviceRef
from mpdoctor.core.report import Report
from mpdoctor.report.sections.ink import Ink
from mpdoctor.report.sections.layout import Block, Text

FORMATS = ("fp16", "bf16", "tf32", "fp8", "fp4")


def gpu_section(report: Report, ink: Ink | None = None) -> list[Block]:
    """The devices, and what to set. Works for any report. Plain lines, not tables: they cost less, and this report is made whenever a job starts."""
    ink = ink or Ink()
    if not report.gpus:
        return []
    parts: list[Block] = [ink.title("Devices", _driver(report)), *_devices(report, ink)]
    settings = report.recommendation.get("settings")
    if isinstance(settings, Mapping) and settings and not ink.quiet:
        parts += [Text(), ink.title("What to set", str(report.recommendation.get("text", ""))), *_settings(settings, ink)]
    return parts


def _driver(report: Report) -> str:
    driver, cuda = report.environment.get("nvidia_driver"), report.environment.get("cuda_of_driver")
    if not driver or not any(gpu.source == "nvml" for gpu in report.gpus):
        return ""
    return f"NVIDIA driver {driver}{f', CUDA {cuda}' if cuda else ''}"


def _devices(report: Report, ink: Ink) -> list[Text]:
    """GPUs that are alike share the lines on formats; health is each one's own."""
    lines = []
    for gpus in _alike(report):
        first = gpus[0]
        label = "CPU" if first.source == "cpu" else ranges([gpu.ref.index for gpu in gpus if gpu.ref.index is not None])
        facts = _facts(first)
        lines.append(ink.join((f"{label:<5} ", "cyan"), (first.name, "bold"), (f"  {facts}" if facts else "", "dim")))
        lines += [_labelled(name, text, style, ink) for name, text, style in _lines(first, _advice(report, first))]
        lines += [_labelled("health", f"{who}{text}", style, ink) for who, (text, style) in _healths(gpus, report)]
        if now := _now(gpus):
            lines.append(_labelled("now", now, "dim", ink))
    return lines


def _labelled(label: str, text: str, style: str, ink: Ink) -> Text:
    """A line under a device; what does not fit goes on under its beginning."""
    indent = 15
    wrapped = [text]
    if len(text) > ink.width - indent:
        from textwrap import wrap

        wrapped = wrap(text, max(20, ink.width - indent))
    return ink.join((f"      {label:<8} ", "dim"), (f"\n{' ' * indent}".join(wrapped), style))


def _alike(report: Report) -> list[list[GpuInfo]]:
    """Devices in groups of one model with the same advice, in the order of their first."""
    groups: dict[tuple[object, ...], list[GpuInfo]] = {}
    for gpu in report.gpus:
        advice = _advice(report, gpu)
        groups.setdefault((gpu.name, gpu.source, gpu.formats, _facts(gpu), str(advice.get("text")), advice.get("used")), []).append(gpu)
    return list(groups.values())


def _advice(report: Report, gpu: GpuInfo) -> Mapping[str, Any]:
    devices = report.recommendation.get("devices", ())
    return next((d for d in devices if isinstance(d, Mapping) and (d.get("index"), d.get("name")) == (gpu.ref.index, gpu.name)), {})


def _healths(gpus: list[GpuInfo], report: Report) -> list[tuple[str, tuple[str, str]]]:
    """What there is to say of each device's health; once for those that fare alike."""
    if gpus[0].source in ("cpu", "table"):
        return []
    groups: dict[tuple[str, str], list[int]] = {}
    for gpu in gpus:
        groups.setdefault(_health(gpu, report), []).append(gpu.ref.index or 0)
    return [(f"GPU {ranges(numbers)}: " if len(groups) > 1 else "", told) for told, numbers in groups.items()]


def _now(gpus: list[GpuInfo]) -> str:
    """Temperature, power, memory and load of a group, from the lowest to the highest; what is not told is left out."""
    gauges = (
        ("temperature_celsius", 1, "°C"),
        ("power_watts", 1, "W"),
        ("memory_used_bytes", 2**30, "GiB in use"),
        ("utilization_percent", 1, "% busy"),
    )
    parts = []
    for metric, unit, word in gauges:
        values = [value / unit for value in (gpu.metric(metric).value for gpu in gpus) if isinstance(value, int | float)]
        if values:
            low, high = f"{min(values):.3g}", f"{max(values):.3g}"
            parts.append(f"{low if low == high else f'{low}-{high}'} {word}")
    return ", ".join(parts)


def ranges(numbers: list[int]) -> str:
    """`0-3, 7` for the numbers of a group."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def _facts(gpu: GpuInfo) -> str:
    """Generation and memory."""
    facts = []
    if gpu.compute_capability.value:
        facts.append(".".join(map(str, gpu.compute_capability.value)))
    elif target := gpu.metric("target").value:
        facts.append(str(target))
    if gpu.architecture.value and gpu.source != "cpu":
        facts.append(gpu.architecture.value)
    total, shared = gpu.metric("memory_total_bytes").value, gpu.metric("system_memory_bytes").value
    if total is not None:
        facts.append(f"{total / 2**30:.3g} GiB")
    elif shared is not None:
        facts.append(f"shares {shared / 2**30:.3g} GiB with the system")
    return ", ".join(facts)


def _lines(gpu: GpuInfo, advice: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Label, text and style of what a model computes in, and of what to train in."""
    if gpu.formats.fp16 is Support.UNKNOWN and gpu.formats.bf16 is Support.UNKNOWN:
        return [("formats", "not known", "yellow")]
    lines = [("native", _formats(gpu, Support.TENSOR_CORES, Support.NATIVE) or "fp32 only", "")]
    for label, support in (("emulated", Support.EMULATED), ("storage", Support.STORAGE), ("unknown", Support.UNKNOWN)):
        if names := _formats(gpu, support):
            lines.append((label, names, "yellow" if support is Support.EMULATED else "dim"))
    if advice:
        used = "" if advice.get("used", True) else "  (not visible to this environment)"
        lines.append(("train in", f"{advice.get('text', '')}{used}", "green"))
    return lines


def _formats(gpu: GpuInfo, *supports: Support) -> str:
    return " ".join(name for name in FORMATS if gpu.formats.get(name) in supports)


def _health(gpu: GpuInfo, report: Report) -> tuple[str, str]:
    """The worst that was found, and what could not be told. "No error" and "no counter" never read alike."""
    mine = [f for f in report.findings if isinstance(f.location, DeviceRef) and f.location == gpu.ref and f.code.startswith(("GPU1", "GPU3"))]
    bad = sorted((f for f in mine if f.severity is not Severity.INFO), key=lambda f: -f.severity.rank)
    if bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        return f"{bad[0].message}{more}", "bold red" if bad[0].severity is Severity.ERROR else "yellow"
    told = "no memory error counted (ECC on)" if gpu.metric("ecc_enabled").value else "memory errors would be silent (no ECC data)"
    return told, "green" if gpu.metric("ecc_enabled").value else ""


def _settings(settings: Mapping[str, Any], ink: Ink) -> list[Text]:
    lines = []
    for framework, snippet in settings.items():
        first, *more = str(snippet).splitlines() or [""]
        lines.append(ink.join((f"{framework:<14} ", "dim"), "\n".join([first, *(f"{'':<15}{line}" for line in more)])))
    return lines
