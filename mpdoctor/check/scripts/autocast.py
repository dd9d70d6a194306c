"""`torch.autocast` in all its spellings: what a context manager or decorator does to precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.check.scripts.dtypes import dtypes
from mpdoctor.check.scripts.model import Script, once
from mpdoctor.check.scripts.scopes import Context
from mpdoctor.core.record import dataclass

_POSITIONS = {
    "torch.autocast": ("device_type", "dtype", "enabled", "cache_enabled"),
    "torch.amp.autocast": ("device_type", "dtype", "enabled", "cache_enabled"),
    "torch.amp.autocast_mode.autocast": ("device_type", "dtype", "enabled", "cache_enabled"),
    "torch.cuda.amp.autocast": ("enabled", "dtype", "cache_enabled"),
    "torch.cuda.amp.autocast_mode.autocast": ("enabled", "dtype", "cache_enabled"),
    "torch.cpu.amp.autocast": ("enabled", "dtype", "cache_enabled"),
    "autocast": ("enabled", "dtype", "cache_enabled"),
}
"""Positional arguments by dotted name (torch 2.13). The bare name is for files that do not show the import."""
_GRADLESS = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Autocast:
    """One use of autocast.

    Attributes:
        node: the expression that makes the context.
        device: `cuda`, `cpu` ..., or None when it is not visible.
        dtypes: formats that it may cast to; empty when they are not visible.
        explicit: whether the script itself names the format (else it is torch's default for the device).
        enabled: None when it depends on something that is not visible.
        caches: whether casts of weights are kept until the outermost context is left.
    """

    node: ast.Call
    device: str | None
    dtypes: frozenset[str]
    explicit: bool
    enabled: bool | None
    caches: bool

    def only(self, dtype: str) -> bool:
        """Whether it may be on, and casts to this format whenever it is."""
        return self.enabled is not False and self.dtypes == {dtype}


def read(script: Script, node: ast.expr, context: Context) -> Autocast | None:
    """The autocast that an expression makes: a call, a name bound to one, or a call of a function of the script that returns one."""
    question = ("autocast", node)
    if question not in script.answers:
        script.answers[question] = _read(script, node, context)
    answer: Autocast | None = script.answers[question]
    return answer


def _read(script: Script, node: ast.expr, context: Context) -> Autocast | None:
    values = script.values(node, context)
    found = [made for value, there in values if (made := _from_call(script, value, there)) is not None]
    if len(found) != 1:
        return None
    if len(values) > 1 and found[0].enabled:  # the alternative is no autocast at all, e.g. nullcontext()
        made = found[0]
        return Autocast(node=made.node, device=made.device, dtypes=made.dtypes, explicit=made.explicit, enabled=None, caches=made.caches)
    return found[0]


def _from_call(script: Script, node: ast.expr, context: Context) -> Autocast | None:
    if not isinstance(node, ast.Call):
        return None
    function, positional, keywords = node.func, list(node.args), {k.arg: k.value for k in node.keywords if k.arg}
    if not _is_autocast(script, function):
        partial = node if script.qualname(function) == "functools.partial" else None
        if partial is None and isinstance(function, (ast.Name, ast.Attribute)):
            held = script.resolve(function, context)[0]
            partial = held if isinstance(held, ast.Call) and script.qualname(held.func) == "functools.partial" else None
        if partial is None or not partial.args or not _is_autocast(script, partial.args[0]):
            return None
        positional = partial.args[1:] + (positional if partial is not node else [])
        keywords = {k.arg: k.value for k in partial.keywords if k.arg} | (keywords if partial is not node else {})
        function = partial.args[0]
    name = script.qualname(function) or "autocast"
    names = _POSITIONS.get(name, _POSITIONS["autocast"])
    arguments = dict(zip(names, positional, strict=False)) | keywords
    device = "cpu" if name.startswith("torch.cpu.") else "cuda" if "device_type" not in names and "device_type" not in arguments else None
    if "device_type" in arguments:
        device = _device(script, arguments["device_type"], context)
    explicit = "dtype" in arguments and not _is_none(arguments["dtype"])
    if explicit:
        formats = dtypes(script, arguments["dtype"], context)
    else:
        formats = frozenset({"bf16"}) if device == "cpu" else frozenset() if script.calls.get("set_autocast_dtype") else frozenset({"fp16"})
        formats = frozenset() if script.calls.get("set_autocast_gpu_dtype") else formats
    caches = not _is(script, arguments.get("cache_enabled"), context, False)
    enabled = _truth(script, arguments.get("enabled"), context)
    if any(keyword.arg is None for keyword in node.keywords):  # `autocast(**settings)`
        enabled, formats = None, formats if explicit else frozenset()
    return Autocast(node=node, device=device, dtypes=formats, explicit=explicit, enabled=enabled, caches=caches)


def _is_autocast(script: Script, function: ast.expr) -> bool:
    qualname = script.qualname(function)
    return qualname in _POSITIONS or (qualname or "").endswith(".amp.autocast")


def _device(script: Script, node: ast.expr, context: Context) -> str | None:
    values = [value.value for value, _ in script.values(node, context) if isinstance(value, ast.Constant)]
    names = {value.partition(":")[0] for value in values if isinstance(value, str)}
    if names == {"cuda", "cpu"}:
        return "cuda"  # `"cuda" if torch.cuda.is_available() else "cpu"`: meant for the GPU
    return names.pop() if len(names) == 1 else None


def _truth(script: Script, node: ast.expr | None, context: Context) -> bool | None:
    if node is None:
        return True
    found = {value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None for value, _ in script.values(node, context)}
    return found.pop() if len(found) == 1 else None


def _is(script: Script, node: ast.expr | None, context: Context, wanted: bool) -> bool:
    return node is not None and _truth(script, node, context) is wanted


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def open_autocasts(script: Script, context: Context) -> Iterator[Autocast]:
    """The autocast contexts open at a place, outermost first."""
    for expression, there in context.withs:
        made = read(script, expression, there)
        if made is not None:
            yield made


def innermost(script: Script, context: Context) -> Autocast | None:
    """The autocast that decides at a place: the innermost one; None outside any, and inside `autocast(enabled=False)`."""
    found = list(open_autocasts(script, context))
    return found[-1] if found and found[-1].enabled is not False else None


def gradless(script: Script, context: Context) -> bool:
    """Whether a place records no gradients: inside `no_grad` or `inference_mode`, by block or decorator."""
    for expression, _ in context.withs:
        name = script.qualname(expression.func if isinstance(expression, ast.Call) else expression)
        if name in _GRADLESS:
            return True
        if name == "torch.set_grad_enabled" and isinstance(expression, ast.Call) and any(_is(script, a, context, False) for a in expression.args[:1]):
            return True
    return False


@once
def every_autocast(script: Script) -> list[tuple[Autocast, Context]]:
    """All calls of the script that make an autocast context and may turn it on."""
    found = []
    for call, context in script.named("autocast", "partial"):
        made = _from_call(script, call, context)
        if made is not None and made.enabled is not False:
            found.append((made, context))
    return found
