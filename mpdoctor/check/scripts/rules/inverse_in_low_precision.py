"""A matrix is inverted, solved or decomposed in 16 bits.

What it looks for
`inverse`, `linalg.inv`, `solve`, `cholesky`, `det`, `svd`, `eigh`, `qr`, `pinv` and the like on a matrix that is surely 16 bits (a cast, a
matrix product under autocast on the GPU), and as a note on any other matrix under autocast.

Why training breaks
These functions have no 16-bit kernels: PyTorch raises "Low precision dtypes not supported. Got Half" or "not implemented for 'Half'". Casting only
the argument to fp32 avoids the exception, but a covariance that was accumulated in 16 bits has 3 decimal digits, so that an
ill-conditioned matrix is often singular or indefinite by rounding alone.

When it is fine
On fp32 data. On the CPU, whose autocast runs linear algebra in fp32.

Example
```python script bad
import torch
class Whitening(torch.nn.Module):
    def forward(self, x):
        covariance = x.t() @ x
        return x @ torch.linalg.inv(covariance)
def loss(model, x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(x).square().mean()
```

Instead
```python script good
import torch
class Whitening(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("cuda", enabled=False):
            covariance = x.float().t() @ x.float()
            return x.float() @ torch.linalg.inv(covariance)
def loss(model, x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(x).square().mean()
```

How to confirm
It raises at the first step; `mpdoctor replay` repeats the step with the guilty module in fp32.

References
PyTorch, `torch.linalg`; Automatic Mixed Precision package, op reference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts import autocast, precision
from mpdoctor.check.scripts.dtypes import WIDE, surely
from mpdoctor.check.scripts.hits import hit, shown
from mpdoctor.check.scripts.model import Op, Script
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_NAMES = (
    "inv", "inv_ex", "inverse", "pinv", "pinverse", "solve", "solve_ex", "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "det",
    "slogdet", "logdet", "svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "qr", "lstsq", "triangular_solve", "solve_triangular", "lu_factor",
    "matrix_rank",
)  # fmt: skip
_METHODS = ("inverse", "pinverse", "cholesky", "det", "slogdet", "logdet", "svd", "qr")
_PRODUCTS = ("matmul", "mm", "bmm", "einsum", "linear", "addmm", "baddbmm", "conv1d", "conv2d")


def check(script: Script) -> Iterator[Hit]:
    """Find linear algebra in 16 bits."""
    for op, context in script.ops(*_NAMES):
        if op.function is None and op.name not in _METHODS:
            continue
        stored = surely(script, op.operand, context)
        if stored in WIDE:
            continue
        if stored in ("fp16", "bf16"):
            yield _hit(script, op, f"a matrix in {stored}", Severity.ERROR, Confidence.HIGH, None)
            continue
        made = _gpu_autocast(script, context)
        if made is not None:
            product = _is_product(script, op.operand, context)
            what = "a matrix product that autocast computes in 16 bits" if product else "a matrix that may be in 16 bits under autocast"
            yield _hit(script, op, what, Severity.ERROR if product else Severity.INFO, Confidence.MEDIUM if product else Confidence.LOW, made)


def _gpu_autocast(script: Script, context: Context) -> ast.expr | None:
    """The autocast for a GPU that is open at a place, or around the calls of its module."""
    opened = list(autocast.open_autocasts(script, context))
    if opened:
        made = opened[-1]
        return made.node if made.enabled is not False and made.device != "cpu" else None
    for made, _ in autocast.every_autocast(script):
        seen = next((seen for name in ("fp16", "bf16") if (seen := precision.at(script, context, name))), None)
        if seen is not None and seen.node is made.node and made.device != "cpu":
            return made.node
    return None


def _is_product(script: Script, node: ast.expr, context: Context) -> bool:
    node, context = script.resolve(node, context)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult) or any(_is_product(script, side, context) for side in (node.left, node.right))
    op = script.op(node)
    return op is not None and (op.name in _PRODUCTS or (op.name in ("transpose", "t", "contiguous") and _is_product(script, op.operand, context)))


def _hit(script: Script, op: Op, what: str, severity: Severity, confidence: Confidence, made: ast.expr | None) -> Hit:
    return hit(
        script,
        op.node,
        f"{shown(script, op.node)} works on {what}: PyTorch has no 16-bit kernel for it and raises.",
        remedy="Compute it and the product that feeds it in fp32: with torch.autocast(device, enabled=False), on x.float().",
        because=((made, "autocast begins here"),) if made is not None else (),
        severity=severity,
        confidence=confidence,
    )


RULE = Rule(code="CFG024", severity=Severity.ERROR, cause="model-numerics", check=check)
