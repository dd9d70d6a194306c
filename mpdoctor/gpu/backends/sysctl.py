"""macOS's own facts about the machine, by `sysctl`."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

_KEYS = (
    "machdep.cpu.brand_string", "hw.memsize", "kern.osproductversion", "hw.optional.arm.FEAT_BF16", "hw.optional.arm.FEAT_FP16",
    "hw.optional.avx2_0", "hw.optional.avx512f",
)  # fmt: skip


def facts(root: Path = Path("/")) -> dict[str, str]:
    """Values by name; empty on other systems. A recorded machine has them in `sysctl.txt` (`sysctl -a`)."""
    if root != Path("/"):
        recorded = root / "sysctl.txt"
        return parse(recorded.read_text(encoding="utf-8", errors="replace")) if recorded.is_file() else {}
    if platform.system() != "Darwin":
        return {}
    found: dict[str, str] = {}
    for key in _KEYS:  # one at a time: a name that this macOS does not have fails the whole call
        try:
            run = subprocess.run(["/usr/sbin/sysctl", key], capture_output=True, text=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        found |= parse(run.stdout)
    return found


def parse(text: str) -> dict[str, str]:
    """Lines `name: value`."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}
