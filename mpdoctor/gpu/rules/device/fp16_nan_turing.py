"""fp16 gives NaN on this card: Turing without tensor cores.

What it looks for
    GTX 16 cards, T400 to T2000, MX450 and MX550, by name and then by PCI id: their compute capability, 7.5, is that of cards without the fault.

Why training breaks
    cuDNN's fp16 convolutions return NaN on the chips TU116 and TU117. Three fp16 convolutions in a row are enough; loss scaling cannot help. bf16
    is emulated there and slower than fp32.

When it is fine
    Models without convolutions may work in fp16: test one forward pass first. `torch.backends.cudnn.benchmark = True` has made it go away for
    some.

How to confirm
    Run one Conv2d in fp16 on random input and look for NaN.

References
    pytorch#58123, #69449, #77955; yolov5#7908; pci.ids (TU116, TU117).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.capability.nvidia import lacks_tensor_cores


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Name first, then PCI id."""
    capability = gpu.compute_capability.value
    if gpu.vendor == "nvidia" and capability and lacks_tensor_cores(capability, gpu.name, gpu.metric("pci_device_id").value or 0):
        yield Hit(
            message="fp16 convolutions give NaN on this card (Turing without tensor cores)",
            at=gpu.ref,
            remedy=Remedy(text="Train in fp32 here. For fp16, test one convolution first, with torch.backends.cudnn.benchmark = True."),
        )


RULE: Rule[GpuInfo] = Rule(
    code="GPU210", severity=Severity.WARNING, check=check, cause="kernel", confidence=Confidence.MEDIUM, needs=("compute_capability",)
)
