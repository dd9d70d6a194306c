"""Shapes of numeric expressions that several rules look for: squares, guards against zero, bounds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mpdoctor.check.scripts.model import Op, Place, Script, same, within
from mpdoctor.check.scripts.scopes import Context

_GUARDS = ("clamp", "clip", "clamp_min", "relu", "softplus", "maximum", "nan_to_num", "threshold", "where", "masked_fill", "elu", "sigmoid", "exp")
_KEEPERS = (
    "view", "reshape", "unsqueeze", "squeeze", "expand", "expand_as", "float", "double", "half", "bfloat16", "to", "contiguous", "clone", "sqrt",
    "pow", "detach", "mean", "sum", "transpose", "permute", "flatten", "type_as", "rsqrt", "log", "norm",
)  # fmt: skip
"""Operations whose result is away from zero (or bounded) when their operand is."""
_BOUNDED = (
    "clamp", "clip", "clamp_max", "minimum", "log_softmax", "logsigmoid", "tanh", "sigmoid", "hardtanh", "normalize", "cosine_similarity", "softmax",
)  # fmt: skip
_LOG_PROBABILITY = re.compile(r"log_?p(?:rob|$|_|s$)", re.IGNORECASE)
"""Names of logarithms of probabilities, which are never positive."""
_EPS_WORDS = ("eps", "tiny", "smooth", "delta", "jitter", "floor", "min_")


def square_of(script: Script, node: ast.expr) -> ast.expr | None:
    """X, for `X ** 2`, `X.pow(2)`, `torch.square(X)` and `X * X`."""
    match node:
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=2 | 2.0)):
            return base
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if same(left, right):
            return left
    op = script.op(node)
    if op is None:
        return None
    if op.name == "square":
        return op.operand
    exponent = op.argument(0, "exponent") if op.name == "pow" else None
    return op.operand if isinstance(exponent, ast.Constant) and exponent.value == 2 else None


def reduction(script: Script, node: ast.expr, *names: str) -> Op | None:
    """The reduction (`sum`, `mean`) that an expression is, shape changes aside."""
    op = script.op(node)
    while op is not None and op.name in ("view", "reshape", "unsqueeze", "squeeze", "float"):
        op = script.op(op.operand)
    return op if op is not None and op.name in names else None


def is_eps(script: Script, node: ast.expr, context: Context) -> bool:
    """Whether an expression is a small positive constant, by value or by name."""
    value = script.number(node, context)
    if value is not None:
        return value > 0
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        text = script.source.segment(node).lower()
        return any(word in text for word in _EPS_WORDS)
    return False


def guarded(script: Script, node: ast.expr, context: Context, depth: int = 0) -> bool:
    """Whether an expression is kept away from zero, or bounded, by an added constant, a clamp or the like."""
    if depth > 6:
        return False
    node, context = script.resolve(node, context)
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return any(is_eps(script, side, context) or guarded(script, side, context, depth + 1) for side in (left, right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return all(guarded(script, side, context, depth + 1) for side in (left, right))
        case ast.BinOp(left=left, op=ast.Div() | ast.Pow()):
            return guarded(script, left, context, depth + 1)
        case ast.UnaryOp(operand=operand) | ast.Subscript(value=operand):
            return guarded(script, operand, context, depth + 1)
        case ast.Call(func=ast.Name(id="max" | "min")):
            return True
        case ast.IfExp():
            return True
        case ast.Constant():
            return True
    op = script.op(node)
    if op is None:
        return False
    if op.name in _GUARDS or (op.name in ("max", "min") and _clamps(script, op, context)):
        return True
    return op.name in _KEEPERS and guarded(script, op.operand, context, depth + 1)


def _clamps(script: Script, op: Op, context: Context) -> bool:
    """Whether `max` or `min` compares with another tensor (`torch.max(x, floor)`) instead of reducing over a dimension."""
    other = op.argument(0, "other")
    return other is not None and "keepdim" not in op.keywords and "dim" not in op.keywords and script.number(other, context) is None


def never_large(script: Script, node: ast.expr, context: Context, depth: int = 0) -> bool:
    """Whether an exponent is bounded above: negated squares, `x - x.max()`, log-probabilities, clamped values."""
    if depth > 6:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)) and _LOG_PROBABILITY.search(node.id if isinstance(node, ast.Name) else node.attr):
        return True
    node, context = script.resolve(node, context)
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return nonnegative(script, operand, context, depth + 1)
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if _is_maximum_of(script, right, left, context):
            return True
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            a, b = script.number(left, context), script.number(right, context)
            if a is not None and a < 0:
                return nonnegative(script, right, context, depth + 1)
            if b is not None and b < 0:
                return nonnegative(script, left, context, depth + 1)
            if isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub):
                return nonnegative(script, left.operand, context, depth + 1)
            return never_large(script, left, context, depth + 1)
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):  # products of unit vectors
            return all(never_large(script, side, context, depth + 1) for side in (left, right))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return never_large(script, left, context, depth + 1) and never_large(script, right, context, depth + 1)
    op = script.op(node)
    if op is None:
        return script.number(node, context) is not None
    if op.name in _BOUNDED:
        return not (op.name in ("clamp", "clip") and op.argument(1, "max") is None)
    if op.name in ("min", "max") and _clamps(script, op, context):
        return op.name == "min"
    if op.name in ("neg", "negative"):
        return nonnegative(script, op.operand, context, depth + 1)
    if op.name in ("matmul", "mm", "bmm", "einsum") and op.args:
        return all(never_large(script, side, context, depth + 1) for side in (op.operand, op.args[0]))
    return op.name in (*_KEEPERS, "t", "gather", "masked_fill") and op.name != "pow" and never_large(script, op.operand, context, depth + 1)


def nonnegative(script: Script, node: ast.expr, context: Context, depth: int = 0) -> bool:
    """Whether an expression cannot be negative: squares, norms, distances, softplus, and sums and products of such."""
    if depth > 6:
        return False
    node, context = script.resolve(node, context)
    if square_of(script, node) is not None:
        return True
    match node:
        case ast.Constant(value=int() | float() as value):
            return value >= 0
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Div(), right=right):
            sides = (left, right)
            return all(nonnegative(script, side, context, depth + 1) or is_eps(script, side, context) for side in sides) or (
                isinstance(node.op, (ast.Mult, ast.Div)) and nonnegative(script, left, context, depth + 1)
            )
    op = script.op(node)
    if op is None:
        return False
    if op.name in ("abs", "norm", "cdist", "pdist", "softplus", "relu", "exp", "sigmoid", "softmax", "sqrt", "var", "std", "vector_norm", "arange"):
        return True
    return op.name in (*_KEEPERS, "cumsum") and nonnegative(script, op.operand, context, depth + 1)


def _is_maximum_of(script: Script, node: ast.expr, operand: ast.expr, context: Context) -> bool:
    """Whether `node` is the maximum (or logsumexp) of `operand`, perhaps through names and `[0]`."""
    node, context = script.resolve(node, context)
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node, context = script.resolve(node.value, context)
    op = script.op(node)
    if op is None:
        return False
    if op.name in ("unsqueeze", "view", "detach", "expand_as", "reshape"):
        return _is_maximum_of(script, op.operand, operand, context)
    return op.name in ("max", "amax", "logsumexp") and (same(op.operand, operand) or same(script.resolve(op.operand, context)[0], operand))


def mentions(node: ast.expr, *words: str) -> bool:
    """Whether a name or attribute in an expression contains one of these words."""
    names = [str(getattr(part, "id", "") or getattr(part, "attr", "")).lower() for part in within(node, (ast.Name, ast.Attribute))]
    return any(word in name for name in names for word in words)


def leaves_graph(script: Script, node: ast.expr) -> bool:
    """Whether a value is taken out of the graph at once (`.item()`, `.detach()`, `float(...)`, an integer cast): no gradient flows through it."""
    for parent in script.ancestors(node):
        op = script.op(parent) if isinstance(parent, ast.expr) else None
        if op is not None and op.name in ("item", "detach", "tolist", "numpy", "long", "int", "cpu"):
            return True
        if op is not None and op.name in ("to", "type") and any(_is_integer(script, a) for a in op.args):
            return True
        match parent:
            case ast.Call(func=ast.Name(id="float" | "int" | "round" | "print" | "str")):
                return True
    return False


def _is_integer(script: Script, node: ast.expr) -> bool:
    return (script.qualname(node) or "").rpartition(".")[2] in ("long", "int", "int64", "int32", "int8", "uint8", "bool", "LongTensor")


def finfo_min(script: Script, node: ast.expr, context: Context) -> Place | None:
    """`torch.finfo(dtype).min`, through names; the place where it is written."""
    for value, there in script.values(node, context):
        match value:
            case ast.Attribute(value=ast.Call(func=function), attr="min") if (script.qualname(function) or "") == "torch.finfo":
                return value, there
            case ast.Call(func=function, args=[_, ast.Constant(value="min"), *_]) if script.key(function) == "getattr":
                return value, there
    return None


def operands(node: ast.expr, kind: type[ast.operator]) -> Iterator[ast.expr]:
    """The terms of a chain of one operator (`a + b + c`)."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        yield from operands(node.left, kind)
        yield from operands(node.right, kind)
    else:
        yield node
