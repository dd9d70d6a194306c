"""The installed torch, read from its files without importing it: version, CUDA build, and which GPUs its wheel has kernels for."""

from __future__ import annotations

import ast
import platform
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mpdoctor.core.record import dataclass

Capability = tuple[int, int]

_LINUX_X86 = "x86_64"

_WHEELS: dict[str, dict[str, tuple[int, ...]]] = {
    # Linux x86 wheels that were published with these kernels (compute capability without the dot)
    "2.8": {"12.6": (50, 60, 70, 75, 80, 86, 90), "12.8": (70, 75, 80, 86, 90, 100, 120)},
    "2.9": {"12.6": (50, 60, 70, 75, 80, 86, 90), "12.8": (70, 75, 80, 86, 90, 100, 120), "13.0": (75, 80, 86, 90, 100, 120)},
    "2.10": {"12.6": (50, 60, 70, 75, 80, 86, 90), "12.8": (70, 75, 80, 86, 90, 100, 120), "13.0": (75, 80, 86, 90, 100, 120)},
    "2.11": {"12.6": (50, 60, 70, 75, 80, 86, 90), "12.8": (75, 80, 86, 90, 100, 120), "13.0": (75, 80, 86, 90, 100, 120)},
}
"""Sources: torch's RELEASE.md by way of pytorch#164471 (2.9, 2.10) and #175253 (2.11), #182250 (2.10 and 2.11, measured), Whisper-WebUI#653 (2.8).

Newer releases carry the list themselves (`PYTORCH_RELEASES_CODE_CC`); for 2.11 that list was wrong (#182250), so this table goes first.
"""

_ONLY_THEMSELVES = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})
"""Integrated GPUs: code for another capability of the same major does not run on them (torch's `DEVICE_REQUIREMENT`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchInstall:
    """An installed torch.

    Attributes:
        version: as torch calls itself (`2.13.0+cpu`).
        cuda: CUDA that it was built with (`12.8`), None for a build without.
        hip: ROCm that it was built with.
        xpu: oneAPI that it was built with.
        kernels: compute capabilities that the wheel has kernels for, None where that cannot be told.
    """

    version: str
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    kernels: tuple[Capability, ...] | None = None

    def serves(self, capability: Capability) -> bool | None:
        """Whether the wheel has kernels that run on this compute capability; None where that cannot be told."""
        if self.cuda is None:
            return False
        return None if self.kernels is None else any(runs(code, capability) for code in self.kernels)


def runs(code: Capability, device: Capability) -> bool:
    """Whether code for one compute capability runs on a device of another: same major, minor at least as new, integrated GPUs apart."""
    if code[0] != device[0] or code[1] > device[1]:
        return code == (10, 1) and device == (11, 0)
    return code == device or (device not in _ONLY_THEMSELVES and code not in _ONLY_THEMSELVES)


def codes(arch_list: Sequence[str]) -> tuple[Capability, ...]:
    """Compute capabilities of `torch.cuda.get_arch_list()` (`sm_90a`); PTX entries (`compute_120`) are left out."""
    return tuple(divmod(int(match[1]), 10) for name in arch_list if (match := re.fullmatch(r"sm_(\d+)[af]?", name)))


@cache
def installed(folder: Path | None = None) -> TorchInstall | None:
    """The torch that this Python would import, or the one in `folder`; None when there is none. Imports nothing."""
    if folder is None:
        try:
            spec = find_spec("torch")
        except (ImportError, ValueError):
            return None
        if spec is None or spec.origin is None:
            return None
        folder = Path(spec.origin).parent
    try:
        text = (folder / "version.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    facts = _strings(text)
    if "__version__" not in facts:
        return None
    version, cuda = facts["__version__"], facts.get("cuda")
    return TorchInstall(
        version=version, cuda=cuda, hip=facts.get("hip"), xpu=facts.get("xpu"), kernels=_kernels(version, cuda, folder) if cuda else None
    )


def _strings(text: str) -> dict[str, str]:
    """Names that a module sets to a string, as `cuda: Optional[str] = '12.8'`."""
    found = {}
    for line in text.splitlines():
        left, equals, right = line.partition("=")
        value = right.strip()
        if equals and len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            found[left.partition(":")[0].strip()] = value[1:-1]
    return found


def wheels_for(capability: Capability) -> str:
    """Which published torch wheels serve a compute capability, in words; empty when every current one does."""
    if capability < (5, 0):
        return "no current torch wheel has kernels for it (CUDA 12 has dropped it)"
    if capability < (7, 0):
        return "CUDA 12.6 wheels of torch up to 2.14 still have kernels for it: pip install torch --index-url https://download.pytorch.org/whl/cu126"
    if capability < (7, 5):
        return "CUDA 12.6 wheels of torch up to 2.14 (and 12.8 up to 2.10) still have kernels for it; CUDA 13 wheels have none"
    if capability[0] == 11:
        return "only CUDA 13 wheels for Arm have kernels for it"
    if capability >= (10, 0):
        return "only wheels built with CUDA 12.8 or later have kernels for it"
    return ""


def _kernels(version: str, cuda: str, folder: Path) -> tuple[Capability, ...] | None:
    release = ".".join(version.split(".")[:2])
    machine = "aarch64" if platform.machine().lower() in ("aarch64", "arm64") else _LINUX_X86
    if machine == _LINUX_X86 and cuda in _WHEELS.get(release, {}):
        return tuple(divmod(code, 10) for code in _WHEELS[release][cuda])
    try:
        text = (folder / "cuda" / "__init__.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^PYTORCH_RELEASES_CODE_CC[^=\n]*=\s*(\{.*?^\})", text, re.MULTILINE | re.DOTALL)
    try:
        table = ast.literal_eval(match[1]) if match else {}
        codes = sorted(table[cuda][machine])
    except (ValueError, SyntaxError, KeyError, TypeError):
        return None
    return tuple(divmod(code, 10) for code in codes)
