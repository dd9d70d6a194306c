"""From a machine to a report: rules, recommendation, notes, and what could not be looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mpdoctor.causes.checklist import verdicts
from mpdoctor.core import rule
from mpdoctor.core.cause import Headline
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.device import known as device_known
from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.record import dataclass
from mpdoctor.core.report import Report
from mpdoctor.core.rule import Crash, Skipped
from mpdoctor.gpu import machine as machines
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.recommend import recommendation, together
from mpdoctor.gpu.torch_install import wheels_for

RULES = "mpdoctor.gpu.rules"

NOT_A_RUN = "`mpdoctor gpu` looks at the machine, not at a run"


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules said of a machine."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    crashes: tuple[Crash, ...]


def examine(machine: Machine, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Report:
    """The report on a machine.

    Args:
        machine: what was read, or which GPUs were named.
        select: codes, prefixes or slugs of the rules to run; all when empty.
        ignore: codes, prefixes or slugs of the rules to leave out.
    """
    judged = judge(machine, select=select, ignore=ignore)
    advice = recommendation(machine)
    checklist = verdicts(judged.findings, untested=dict.fromkeys(("learning-rate", "loss-scaling", "fp16-range", "dirty-data"), NOT_A_RUN))
    serious = [finding for finding in judged.findings if finding.severity.rank >= Severity.WARNING.rank]
    return Report(
        command="gpu",
        outcome=Outcome.DIAGNOSED if serious else Outcome.HEALTHY,
        headline=Headline(cause=None, standing=None, text=_headline(machine, advice)),
        verdicts=checklist,
        findings=judged.findings,
        measurements=_measurements(machine),
        skipped=judged.skipped,
        crashes=judged.crashes,
        gpus=machine.gpus,
        recommendation=advice,
        environment=_environment(machine),
        notes=tuple(_notes(machine, advice)),
    )


def judge(machine: Machine, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Judged:
    """Run all rules that are on: those for the machine, and those for each of its GPUs."""
    on = [r for r in rule.load(f"{RULES}.machine") if rule.selected(r.code, r.slug, select=select, ignore=ignore)]
    ran = rule.run(on, machine, machines.known)
    findings, crashes = list(ran.findings), list(ran.crashes)
    skipped = [Skipped(what=s.what, why=_machine_reason(s.why)) for s in ran.skipped if machine.torch_says is not None or "torch_says" not in s.why]
    on_device = [r for r in rule.load(f"{RULES}.device") if rule.selected(r.code, r.slug, select=select, ignore=ignore)]
    missing: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for gpu in machine.gpus:
        if gpu.source == "cpu":
            continue
        ran_here = rule.run(on_device, gpu, device_known)
        findings += ran_here.findings
        crashes += ran_here.crashes
        for skip in ran_here.skipped:
            codes, where = missing.setdefault(_unread(gpu, skip), ({}, {}))
            codes[skip.what] = None
            where[str(gpu.ref.index)] = None
    if machine.named:
        skipped = [Skipped(what="health", why="the GPUs were named, not read")]
    else:
        for (metric, why), (codes, where) in missing.items():
            what = f"{metric} ({', '.join(codes)})" if metric else "everything"
            skipped.append(Skipped(what=what, why=f"{why} (GPU {', '.join(where)})"))
    return Judged(tuple(findings), tuple(skipped), tuple(crashes))


def _unread(gpu: GpuInfo, skip: Skipped) -> tuple[str, str]:
    """The metric that a rule lacked (empty: the whole GPU), and the reading's own reason."""
    name = skip.why.removeprefix("unknown: ").split(", ")[0]
    state = gpu.metric("state").value
    if state != "ok":
        return "", f"the GPU cannot be read: {state}"
    reading = getattr(gpu, name, None) or gpu.metric(name)
    if gpu.vendor != "nvidia" and name not in gpu.metrics:
        return "what only NVIDIA's driver tells", "this is no NVIDIA GPU"
    return name.replace("_", " "), reading.reason or "not read"


def _machine_reason(why: str) -> str:
    return "no GPU of NVIDIA or AMD here" if "visible" in why else why


def _headline(machine: Machine, advice: dict[str, Any]) -> str:
    gpus = together(machine)
    if gpus:
        what = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in Counter(gpu.name for gpu in gpus).items())
        return f"{what}: train in {advice['text']} ({advice['why']})"
    return f"{_without_gpu(machine)}; on the CPU train in {advice['text']}"


def _without_gpu(machine: Machine) -> str:
    """Why there is no GPU to train on: none here, none left visible, none that a run can use, or nobody who could tell."""
    if machine.accelerators and machine.visible:
        return f"no GPU is visible ({machine.visible.variable}={machine.visible.value})"
    others = [gpu for gpu in machine.gpus if gpu.source != "cpu"]
    if others:
        return f"{len(others)} GPU{'s' if len(others) > 1 else ''} here, none that a run can use"
    driver = machine.driver
    match driver.state:
        case "absent":
            return "no GPU found (no NVIDIA driver library)"
        case "not-loaded":
            return "no GPU found (the NVIDIA driver is not loaded)"
        case "ok" | "not-asked":
            return "no GPU found"
    return f"GPUs cannot be read (NVML: {driver.detail or driver.state})"


def _measurements(machine: Machine) -> dict[str, Any]:
    """What a program may want to know, and what would be too much for the text."""
    facts: dict[str, Any] = {}
    if seen := machine.visible:
        facts["visible"] = [{"ordinal": d.ordinal, "index": d.index, "name": d.name, "uuid": d.uuid} for d in seen.devices]
    if machine.torch_says is not None:
        facts["torch"] = dict(machine.torch_says)
    return facts


def _environment(machine: Machine) -> dict[str, Any]:
    driver = machine.driver
    cuda = driver.cuda_version.value
    torch = machine.torch
    driver_facts: dict[str, Any] = {
        "nvidia_driver": driver.version.value or f"{driver.state.replace('-', ' ')}{f': {driver.detail}' if driver.detail else ''}",
        "cuda_of_driver": f"{cuda[0]}.{cuda[1]}" if cuda else None,
        "nvml": driver.nvml_version.value,
        "kernel_log": machine.kernel_log.reason or f"{machine.kernel_log.value} of its lines are the NVIDIA driver's",
    }
    facts: dict[str, Any] = {
        **({} if machine.named else driver_facts),
        "torch": None if torch is None else torch.version,
        "torch_built_for": None if torch is None else _build(torch.cuda, torch.hip, torch.xpu),
        "torch_kernels": [f"{a}.{b}" for a, b in torch.kernels] if torch and torch.kernels else None,
        "cpu": machine.cpu.name,
        "cpu_bf16": machine.cpu.formats.bf16.value,
        **machine.environ,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _build(cuda: str | None, hip: str | None, xpu: str | None) -> str:
    return f"CUDA {cuda}" if cuda else f"ROCm {hip}" if hip else f"XPU {xpu}" if xpu else "CPU only"


def _notes(machine: Machine, advice: dict[str, Any]) -> list[str]:
    notes = []
    for group in advice.get("better_alone", ()):
        names = ", ".join(dict.fromkeys(group["names"]))
        how = f": {group['select']}" if group["select"] else ""
        notes.append(f"alone, {names} could train in {group['precision']}{how}")
    if advice.get("fp8"):
        notes.append(f"fp8 pays for large matrix products only: {advice['fp8']}")
    seen = machine.visible
    if seen is not None and seen.variable and seen.certain:
        order = ", ".join(f"cuda:{d.ordinal} is GPU {d.index}" for d in seen.devices) or "no device"
        hidden = f"; hidden: {', '.join(f'GPU {index}' for index in seen.hidden)}" if seen.hidden else ""
        notes.append(f"{seen.variable}={seen.value}: {order}{hidden}")
    for capability, name in {gpu.compute_capability.value: gpu.name for gpu in machine.accelerators if gpu.compute_capability.value}.items():
        served = machine.torch is not None and machine.torch.serves(capability)
        if not served and (wheels := wheels_for(capability)):
            notes.append(f"{name}: {wheels}")
    notes += [f"{gpu.name} is integrated graphics: not counted" for gpu in machine.gpus if gpu.metric("integrated").value]
    return notes + _torch_notes(machine)


def _torch_notes(machine: Machine) -> list[str]:
    """What torch says of itself: its precision flags, and its claims about bf16 beside the truth."""
    says = machine.torch_says or {}
    if "error" in says:
        return [f"torch could not be asked: {says['error']}"]
    flags = ", ".join(f"{name} {_flag(value)}" for name, value in says.get("flags", {}).items() if value is not None)
    notes = [f"torch {says.get('version')}: {flags}"] if flags else []
    for device in says.get("devices", ()):
        claim = "supported" if device.get("bf16_claimed") else "not supported"
        truth = "native" if device.get("bf16_native") else "not native"
        notes.append(f"cuda:{device['ordinal']} ({device['name']}): torch calls bf16 {claim}; it is {truth}")
    return notes


def _flag(value: Any) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
