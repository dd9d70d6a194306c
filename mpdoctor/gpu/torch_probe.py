"""What torch itself says (`--torch`): asked in a Python of its own, so that nothing here imports it, and with a time limit.

Precision flags and claims are printed beside what the capability table knows; torch looks at one device at a time, so each is asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

_CODE = r"""
import json, os, sys
out = os.dup(1)
os.dup2(2, 1)
import torch

def ask(function):
    try:
        return function()
    except Exception as error:
        return None

facts = {"version": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip, "devices": []}
facts["arch_list"] = ask(lambda: torch.cuda.get_arch_list()) or []
matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
facts["flags"] = {
    "float32_matmul_precision": ask(torch.get_float32_matmul_precision),
    "matmul.allow_tf32": ask(lambda: bool(matmul.allow_tf32)),
    "cudnn.allow_tf32": ask(lambda: bool(cudnn.allow_tf32)),
    "matmul.allow_fp16_reduced_precision_reduction": ask(lambda: bool(matmul.allow_fp16_reduced_precision_reduction)),
    "matmul.allow_bf16_reduced_precision_reduction": ask(lambda: bool(matmul.allow_bf16_reduced_precision_reduction)),
    "matmul.allow_fp16_accumulation": ask(lambda: bool(matmul.allow_fp16_accumulation)),
}
facts["cudnn"] = ask(cudnn.version)
for i in range(ask(torch.cuda.device_count) or 0):
    with torch.cuda.device(i):
        p = ask(lambda: torch.cuda.get_device_properties(i))
        facts["devices"].append({
            "ordinal": i, "name": getattr(p, "name", None), "uuid": str(getattr(p, "uuid", "") or "") or None, "hip": bool(torch.version.hip),
            "capability": ask(lambda: list(torch.cuda.get_device_capability(i))), "target": getattr(p, "gcnArchName", None),
            "bf16_claimed": ask(torch.cuda.is_bf16_supported), "bf16_native": ask(lambda: torch.cuda.is_bf16_supported(including_emulation=False)),
        })
facts["mps"] = ask(lambda: torch.backends.mps.is_available())
facts["xpu"] = ask(lambda: torch.xpu.is_available())
facts["cpu"] = sorted(k for k, v in (ask(lambda: torch.cpu.get_capabilities()) or {}).items() if v is True)
os.write(out, json.dumps(facts).encode())
"""


def ask(limit: float = 120.0) -> dict[str, Any]:
    """What torch tells, or `{"error": why}`. Importing torch takes seconds."""
    try:
        run = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, timeout=limit, check=False, env=os.environ.copy())
    except subprocess.TimeoutExpired:
        return {"error": f"torch did not answer within {limit:.0f} s"}
    except OSError as error:
        return {"error": f"could not start Python: {error}"}
    try:
        facts: dict[str, Any] = json.loads(run.stdout)
    except ValueError:
        lines = run.stderr.decode("utf-8", "replace").strip().splitlines()
        return {"error": lines[-1] if lines else f"Python ended with exit code {run.returncode}"}
    return facts
