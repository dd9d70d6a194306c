"""Asks NVML every question, in a process of its own; imports nothing of mpdoctor.

Its start is part of every `mpdoctor gpu`, so it runs without `site` and imports only what pynvml needs (not even `typing`). Every question is
announced before it is asked, so that the parent knows which one crashed or hung. Nothing but `Get` functions is called.

Arguments: the folder of pynvml; questions to leave out (`DEVICE:QUESTION`, comma-separated, `*` for all of a device); whether to read the kernel log.
"""

from __future__ import annotations

import gc
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Answer = dict[str, Any]
    """Metrics by name."""

N: Any = None
"""pynvml, once imported."""


class Unanswered(Exception):
    """A question that this script itself leaves open, with the reason."""


class Wire:
    """Writes records to the parent: length-prefixed marshal, which both ends have built in."""

    def __init__(self, fd: int, left_out: set[str]) -> None:
        self.fd = fd
        self.left_out = left_out
        self.pending = b""

    def record(self, *what: Any) -> None:
        """Keep a record for the next `flush`."""
        data = marshal.dumps(what)
        self.pending += len(data).to_bytes(4, "little") + data

    def flush(self) -> None:
        """Send what is kept."""
        os.write(self.fd, self.pending)
        self.pending = b""

    def ask(self, device: int, question: str, function: Callable[[], Answer]) -> Answer | None:
        """Announce a question, ask it, record the answer. Device -1 is the system. None when there was no answer."""
        if f"{device}:{question}" in self.left_out or f"{device}:*" in self.left_out:
            return None
        self.record("try", device, question)
        self.flush()
        try:
            answer = function()
        except Exception as error:
            self.record("not", device, question, _reason(error))
            return None
        self.record("got", device, question, answer)
        return answer


def _reason(error: Exception) -> int | str:
    """NVML's error code where there is one, else text."""
    if N is not None and isinstance(error, N.NVMLError):
        return int(error.value)
    mismatch = getattr(N, "NVMLLibraryMismatchError", None)
    if mismatch is not None and isinstance(error, mismatch):
        return 13
    if isinstance(error, Unanswered):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "undecodable text"
    if isinstance(error, AttributeError):
        return "not in the installed nvidia-ml-py"
    return f"{type(error).__name__}: {error}"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _identity(h: Any) -> Answer:
    info = N.nvmlDeviceGetPciInfo(h)
    return {"pci_bus_id": _text(info.busId), "pci_device_id": int(info.pciDeviceId)}


def _memory(h: Any) -> Answer:
    try:
        info = N.nvmlDeviceGetMemoryInfo(h, version=N.nvmlMemory_v2)
        reserved = int(info.reserved)
    except Exception:  # an old driver lacks the second version, which alone tells the driver's reserve from memory in use
        info = N.nvmlDeviceGetMemoryInfo(h)
        reserved = None
    return {
        "memory_total_bytes": int(info.total),
        "memory_free_bytes": int(info.free),
        "memory_used_bytes": int(info.used),
        "memory_reserved_bytes": reserved,
    }


def _pair(name: str, values: Any) -> Answer:
    current, pending = values
    return {name: bool(current), f"{name}_pending": bool(pending)}


def _sram(h: Any) -> Answer:
    status = N.c_nvmlEccSramErrorStatus_v1_t()
    N.nvmlDeviceGetSramEccErrorStatus(h, N.byref(status))
    return {
        "sram_threshold_exceeded": bool(status.bThresholdExceeded),
        "sram_uncorrected_aggregate": int(status.aggregateUncParity + status.aggregateUncSecDed),
    }


def _remapped(h: Any) -> Answer:
    corrected, uncorrected, pending, failure = N.nvmlDeviceGetRemappedRows(h)
    return {"remapped_corrected": corrected, "remapped_uncorrected": uncorrected, "remap_pending": bool(pending), "remap_failed": bool(failure)}


def _spare_rows(h: Any, virtualization: int | None) -> Answer:
    if virtualization == 2:
        raise Unanswered("not asked: in a vGPU guest the question logs a kernel warning")
    histogram = N.nvmlDeviceGetRowRemapperHistogram(h)
    return {"spare_rows": {name: int(getattr(histogram, name)) for name in ("max", "high", "partial", "low", "none")}}


def _repair(h: Any) -> Answer:
    channel, tpc = N.nvmlDeviceGetRepairStatus(h)
    return {"repair_pending_channel": bool(channel), "repair_pending_tpc": bool(tpc)}


def _reasons(h: Any) -> Answer:
    try:
        mask = N.nvmlDeviceGetCurrentClocksEventReasons(h)
    except Exception as error:
        if _reason(error) not in (13, "not in the installed nvidia-ml-py"):
            raise
        mask = N.nvmlDeviceGetCurrentClocksThrottleReasons(h)  # the name before driver 535
    return {"clocks_event_reasons": int(mask)}


def _field(h: Any, number: int, name: str) -> Answer:
    """One field value; NVML answers for each field by itself."""
    value = N.nvmlDeviceGetFieldValues(h, [number])[0]
    if value.nvmlReturn:
        raise N.NVMLError(value.nvmlReturn)
    return {name: int(value.value.uiVal)}


def _processes(h: Any) -> Answer:
    try:
        running = N.nvmlDeviceGetComputeRunningProcesses(h)
    except Exception as error:
        if _reason(error) != 13:
            raise
        running = N.nvmlDeviceGetComputeRunningProcesses_v2(h)  # drivers before 510
    return {"processes": [{"pid": int(p.pid), "memory_bytes": None if p.usedGpuMemory is None else int(p.usedGpuMemory)} for p in running]}


def _mig_devices(h: Any) -> Answer:
    found = []
    for index in range(N.nvmlDeviceGetMaxMigDeviceCount(h)):
        try:
            mig = N.nvmlDeviceGetMigDeviceHandleByIndex(h, index)
        except N.NVMLError as error:
            if error.value == 6:  # no device at this place
                continue
            raise
        found.append(
            {
                "uuid": _value(lambda h: _text(N.nvmlDeviceGetUUID(h)), mig),
                "name": _value(lambda h: _text(N.nvmlDeviceGetName(h)), mig),
                "memory_total_bytes": _value(lambda h: int(N.nvmlDeviceGetMemoryInfo(h).total), mig),
                "gpu_instance": _value(lambda h: int(N.nvmlDeviceGetGpuInstanceId(h)), mig),
                "compute_instance": _value(lambda h: int(N.nvmlDeviceGetComputeInstanceId(h)), mig),
            }
        )
    return {"mig_devices": found}


def _value(function: Callable[[Any], Any], handle: Any) -> Any:
    """What a question to a MIG device gives, None where it gives nothing."""
    try:
        return function(handle)
    except Exception:
        return None


def _utilization(h: Any) -> Answer:
    rates = N.nvmlDeviceGetUtilizationRates(h)
    return {"utilization_percent": int(rates.gpu)}


def ask_device(wire: Wire, index: int) -> None:
    """All questions to one GPU. One that fails leaves the others alone."""
    handles: list[Any] = []  # a handle cannot travel over the wire

    def open_device() -> Answer:
        handles.append(N.nvmlDeviceGetHandleByIndex(index))
        return {}

    if wire.ask(index, "handle", open_device) is None:
        return
    h = handles[0]

    def ask(question: str, function: Callable[[], Answer]) -> Answer | None:
        return wire.ask(index, question, function)

    ask("name", lambda: {"name": _text(N.nvmlDeviceGetName(h))})
    ask("uuid", lambda: {"uuid": _text(N.nvmlDeviceGetUUID(h))})
    ask("pci", lambda: _identity(h))
    ask("compute_capability", lambda: {"compute_capability": tuple(N.nvmlDeviceGetCudaComputeCapability(h))})
    virtual = ask("virtualization", lambda: {"virtualization": int(N.nvmlDeviceGetVirtualizationMode(h))})
    ask("memory", lambda: _memory(h))
    mig = ask("mig_mode", lambda: _pair("mig_mode", N.nvmlDeviceGetMigMode(h)))
    if mig and mig["mig_mode"]:
        ask("mig_devices", lambda: _mig_devices(h))
    ecc = ask("ecc_mode", lambda: _pair("ecc_mode", N.nvmlDeviceGetEccMode(h)))
    if ecc and ecc["ecc_mode"]:
        for kind, name in enumerate(("corrected", "uncorrected")):
            for counter, span in enumerate(("volatile", "aggregate")):
                metric = f"ecc_{name}_{span}"
                ask(metric, lambda k=kind, c=counter, m=metric: {m: int(N.nvmlDeviceGetTotalEccErrors(h, k, c))})  # type: ignore[misc]
        for location, place in ((2, "dram"), (7, "sram")):
            metric = f"ecc_{place}_uncorrected_volatile"
            ask(metric, lambda p=location, m=metric: {m: int(N.nvmlDeviceGetMemoryErrorCounter(h, 1, 0, p))})  # type: ignore[misc]
        ask("sram", lambda: _sram(h))
    ask("remapped_rows", lambda: _remapped(h))
    ask("spare_rows", lambda: _spare_rows(h, virtual["virtualization"] if virtual else None))
    ask("retired_single_bit", lambda: {"retired_pages_single_bit": len(N.nvmlDeviceGetRetiredPages(h, 0))})
    ask("retired_double_bit", lambda: {"retired_pages_double_bit": len(N.nvmlDeviceGetRetiredPages(h, 1))})
    ask("retired_pending", lambda: {"retired_pages_pending": bool(N.nvmlDeviceGetRetiredPagesPendingStatus(h))})
    ask("repair", lambda: _repair(h))
    ask("recovery_action", lambda: _field(h, 230, "recovery_action"))
    ask("clocks_event_reasons", lambda: _reasons(h))
    ask("temperature", lambda: {"temperature_celsius": int(N.nvmlDeviceGetTemperature(h, 0))})
    ask("temperature_slowdown", lambda: {"temperature_slowdown_celsius": int(N.nvmlDeviceGetTemperatureThreshold(h, 1))})
    ask("temperature_margin", lambda: {"temperature_margin_celsius": int(N.nvmlDeviceGetMarginTemperature(h))})
    ask("memory_temperature", lambda: _field(h, 82, "memory_temperature_celsius"))
    ask("power", lambda: {"power_milliwatts": int(N.nvmlDeviceGetPowerUsage(h))})
    ask("power_limit", lambda: {"power_limit_milliwatts": int(N.nvmlDeviceGetEnforcedPowerLimit(h))})
    ask("persistence", lambda: {"persistence_mode": bool(N.nvmlDeviceGetPersistenceMode(h))})
    ask("compute_mode", lambda: {"compute_mode": int(N.nvmlDeviceGetComputeMode(h))})
    ask("utilization", lambda: _utilization(h))
    ask("processes", lambda: _processes(h))


def _find_library() -> Answer:
    """Load the library by its name, before pynvml does: the loader's own words say more than pynvml's error, and without it pynvml is not needed."""
    import ctypes

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        return {"library": "libnvidia-ml.so.1"}
    except OSError as error:
        wsl = "/usr/lib/wsl/lib/libnvidia-ml.so.1"
        if os.path.exists(wsl):  # noqa: PTH110 - pathlib would triple what this process imports
            ctypes.CDLL(wsl, mode=ctypes.RTLD_GLOBAL)
            return {"library": wsl}
        raise Unanswered(str(error)) from error


def _import_pynvml(folder: str) -> Answer:
    global N
    if "ctypes.util" not in sys.modules:
        # pynvml imports find_library and, on Linux, never calls it; the module behind it costs as much as pynvml itself.
        stand_in: Any = type(sys)("ctypes.util")
        stand_in.find_library = lambda name: None
        sys.modules["ctypes.util"] = stand_in
    if folder not in sys.path:
        sys.path.append(folder)
    import pynvml

    N = pynvml
    return {"bindings": "nvidia-ml-py"}


def _kernel_log() -> Answer:
    """NVIDIA's lines of the kernel's message buffer (syslog(2): 10 asks for its size, 3 reads it without clearing)."""
    import ctypes
    import errno

    libc = ctypes.CDLL(None, use_errno=True)
    size = libc.klogctl(10, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 1))
    length = libc.klogctl(3, buffer, size) if size >= 0 else -1
    if length < 0:
        code = ctypes.get_errno()
        raise Unanswered("no permission" if code in (errno.EPERM, errno.EACCES) else os.strerror(code))
    return {"kernel_log": [line.decode("utf-8", "replace") for line in buffer.raw[:length].splitlines() if b"NVRM" in line]}


def interview(wire: Wire, folder: str, *, kernel_log: bool) -> bool:
    """Everything there is to ask, in order. False when NVML did not start."""
    if not wire.ask(-1, "library", _find_library) or not wire.ask(-1, "bindings", lambda: _import_pynvml(folder)):
        return False
    if kernel_log:
        wire.ask(-1, "kernel_log", _kernel_log)
    if not wire.ask(-1, "init", lambda: {"init": N.nvmlInit() is None}):
        return False
    wire.ask(-1, "driver", lambda: {"driver_version": _text(N.nvmlSystemGetDriverVersion())})
    wire.ask(-1, "nvml", lambda: {"nvml_version": _text(N.nvmlSystemGetNVMLVersion())})
    wire.ask(-1, "cuda", lambda: {"cuda_driver_version": int(N.nvmlSystemGetCudaDriverVersion_v2())})
    count = wire.ask(-1, "count", lambda: {"count": int(N.nvmlDeviceGetCount())})
    for index in range(count["count"] if count else 0):
        ask_device(wire, index)
    return True


def answer(fd: int, folder: str, left_out: str, *, kernel_log: bool) -> None:
    """Answer everything to `fd` and end the process. What the libraries print must already go nowhere."""
    gc.disable()
    wire = Wire(fd, set(left_out.split(",")))
    started = interview(wire, folder, kernel_log=kernel_log)
    wire.record("end")
    wire.flush()
    if started:
        N.nvmlShutdown()
    os._exit(0)  # the driver's own exit handlers have been seen to hang


def main() -> None:
    """Answer on what was stdout."""
    fd = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    folder, left_out, kernel_log = sys.argv[1:4]
    answer(fd, folder, left_out, kernel_log=kernel_log == "kernel-log")
