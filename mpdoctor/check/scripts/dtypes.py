"""Number formats in a script: what a dtype expression names, and what format a value surely has."""

from __future__ import annotations

import ast

from mpdoctor.check.scripts.model import Op, Script
from mpdoctor.check.scripts.scopes import Context

_TORCH = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32", "float64": "fp64", "double": "fp64",
    "HalfTensor": "fp16", "BFloat16Tensor": "bf16", "FloatTensor": "fp32", "DoubleTensor": "fp64",
}  # fmt: skip
_WRITTEN = {"float16": "fp16", "fp16": "fp16", "half": "fp16", "bfloat16": "bf16", "bf16": "bf16", "float32": "fp32", "fp32": "fp32"}
_CASTS = {"half": "fp16", "bfloat16": "bf16", "float": "fp32", "double": "fp64"}
_SHAPERS = (
    "view", "reshape", "transpose", "permute", "flatten", "unsqueeze", "squeeze", "contiguous", "detach", "clone", "expand", "repeat",
    "masked_fill", "clamp", "abs", "neg", "sum", "mean", "max", "min", "amax", "amin", "exp", "log", "sqrt", "rsqrt", "pow", "square", "cuda", "cpu",
)  # fmt: skip
"""Operations that keep the format of their operand."""
WIDE = frozenset({"fp32", "fp64"})
"""Formats in which none of fp16's limits applies."""


def dtypes(script: Script, node: ast.expr | None, context: Context) -> frozenset[str]:
    """The formats that a dtype expression may name (`torch.float16`, a string, a conditional of both); empty when it is not known."""
    if node is None:
        return frozenset()
    found: set[str] = set()
    for value, there in script.values(node, context):
        match value:
            case ast.Constant(value=str() as text):
                names = {_WRITTEN.get(text.lower().removeprefix("torch."))}
            case ast.Subscript(value=table) if isinstance(mapping := script.resolve(table, there)[0], ast.Dict):
                names = {name for entry in mapping.values for name in dtypes(script, entry, there)} or {None}
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str() as text), *_]):
                names = {_WRITTEN.get(text)}
            case _:
                qualname = script.qualname(value) or ""
                names = {_TORCH.get(qualname.removeprefix("torch.").removeprefix("cuda."))} if qualname.startswith("torch.") else {None}
        if None in names:
            return frozenset()
        found.update(name for name in names if name)
    return frozenset(found)


def cast(script: Script, node: ast.expr, context: Context) -> frozenset[str] | None:
    """The formats that a cast (`x.half()`, `x.to(torch.float16)`) may give; None for what is no cast, empty for one to an unknown format."""
    op = script.op(node)
    if op is None or op.function is not None:
        return None
    return _cast(script, op, context)


def _cast(script: Script, op: Op, context: Context) -> frozenset[str] | None:
    if op.name in _CASTS and not op.args and not op.keywords:
        return frozenset({_CASTS[op.name]})
    if op.name not in ("to", "type", "type_as", "to_empty"):
        return None
    wanted = [op.operand] if op.name == "type_as" else [*op.args, *(value for name, value in op.keywords.items() if name == "dtype")]
    if op.name == "type_as":
        return frozenset()
    for argument in wanted:
        if found := dtypes(script, argument, context):
            return found
    if "dtype" in op.keywords or any(_looks_like_dtype(script, argument, context) for argument in op.args):
        return frozenset()
    return None


def _looks_like_dtype(script: Script, node: ast.expr, context: Context) -> bool:
    value = script.resolve(node, context)[0]
    return isinstance(value, (ast.Name, ast.Attribute)) and "dtype" in script.key(value).lower()


def surely(script: Script, node: ast.expr, context: Context, depth: int = 0) -> str | None:
    """The format that a value has on every path, or None when that is not visible.

    Casts, `dtype=` arguments and operations that keep their operand's format are followed. Arithmetic
    of tensors takes the wider format.
    """
    if depth > 8:
        return None
    node, context = script.resolve(node, context)
    if isinstance(node, ast.BinOp):
        parts = {surely(script, side, context, depth + 1) for side in (node.left, node.right)}
        return next((name for name in ("fp64", "fp32") if name in parts), None)
    op = script.op(node)
    if op is None:
        return None
    found = _cast(script, op, context) if op.function is None else None
    if found is None and "dtype" in op.keywords:
        found = dtypes(script, op.keywords["dtype"], context)
    if found is not None:
        return next(iter(found)) if len(found) == 1 else None
    return surely(script, op.operand, context, depth + 1) if op.name in _SHAPERS else None
