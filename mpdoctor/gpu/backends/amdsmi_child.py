"""Asks AMD SMI, in a process of its own. Run by `amdsmi` with the questions to leave out; reads only."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from mpdoctor.gpu.backends.nvml_child import Wire

if TYPE_CHECKING:
    from mpdoctor.gpu.backends.nvml_child import Answer


def ask_device(wire: Wire, smi: Any, index: int, handle: Any) -> None:
    """All questions to one GPU."""

    def asic() -> Answer:
        info = smi.amdsmi_get_gpu_asic_info(handle)
        target = str(info["target_graphics_version"])
        return {"name": info["market_name"], "target": target if target.startswith("gfx") else f"gfx{target}"}

    def temperature() -> Answer:
        kind, metric = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric
        sensor = getattr(kind, "HOTSPOT", None) or kind.JUNCTION
        return {"temperature_celsius": int(smi.amdsmi_get_temp_metric(handle, sensor, metric.CURRENT))}

    def ecc() -> Answer:
        counts = smi.amdsmi_get_gpu_total_ecc_count(handle)
        return {
            "ecc_enabled": True,
            "ecc_corrected_volatile": int(counts["correctable_count"]),
            "ecc_uncorrected_volatile": int(counts["uncorrectable_count"]),
        }

    wire.ask(index, "address", lambda: {"pci_bus_id": str(smi.amdsmi_get_gpu_device_bdf(handle))})
    wire.ask(index, "asic", asic)
    wire.ask(index, "memory", lambda: {"memory_total_bytes": int(smi.amdsmi_get_gpu_vram_info(handle)["vram_size"]) << 20})
    wire.ask(index, "ecc", ecc)
    wire.ask(index, "bad_pages", lambda: {"retired_pages_double_bit": len(_pages(smi.amdsmi_get_gpu_bad_page_info(handle)))})
    wire.ask(index, "temperature", temperature)


def _pages(told: Any) -> list[Any]:
    """AMD SMI says "No bad pages found." where there are none."""
    return list(told) if isinstance(told, list | tuple) else []


def main() -> None:
    """Answer on what was stdout; whatever the library prints goes nowhere."""
    fd = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    wire = Wire(fd, set(sys.argv[1].split(",")))
    found: dict[str, Any] = {}

    def start() -> Answer:
        found["smi"] = importlib.import_module("amdsmi")
        found["smi"].amdsmi_init()
        return {}

    def count() -> Answer:
        found["handles"] = list(found["smi"].amdsmi_get_processor_handles())
        return {"count": len(found["handles"])}

    if wire.ask(-1, "init", start) is not None and wire.ask(-1, "count", count) is not None:
        for index, handle in enumerate(found["handles"]):
            ask_device(wire, found["smi"], index, handle)
    wire.record("end")
    wire.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
