"""Where a script trains in 16 bits: autocast, weights cast to 16 bits, settings of a framework."""

from __future__ import annotations

import ast
import re

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.dtypes import cast, dtypes
from mpdoctor.check.scripts.model import Script, once
from mpdoctor.check.scripts.scopes import Context, Scope
from mpdoctor.core.record import dataclass

_MODEL_NAME = re.compile(
    r"(?:^|_)(?:model|net|network|module|encoder|decoder|backbone|unet|vae|generator|discriminator|transformer|critic|actor|policy)s?(?:$|_)"
)
_SETTINGS: dict[str, dict[object, str]] = {
    "fp16": {True: "fp16"},
    "bf16": {True: "bf16"},
    "mixed_precision": {"fp16": "fp16", "bf16": "bf16"},
    "precision": {16: "fp16", "16": "fp16", "16-mixed": "fp16", "16-true": "fp16", "bf16": "bf16", "bf16-mixed": "bf16", "bf16-true": "bf16"},
}
"""Keyword arguments of trainers (transformers, accelerate, Lightning, Fabric) that choose a format."""
_TRAINERS = ("TrainingArguments", "Trainer", "Accelerator", "Fabric", "LightningLite", "Config")
"""Ends of the names of the calls that take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightCast:
    """A cast of a whole module's weights.

    Attributes:
        node: the cast, or the call that loads the module in a format.
        module: how the module is written.
        identities: which objects that may be.
        dtypes: the formats that it may get.
    """

    node: ast.Call
    module: str
    identities: frozenset[tuple[Scope | None, str]]
    dtypes: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A place where the script shows that it uses a format."""

    node: ast.expr
    text: str


@once
def weight_casts(script: Script) -> list[WeightCast]:
    """All casts of modules, in the order of the file; a module is known by its class, its use in `.parameters()`, or its name."""
    found = []
    for call, context in script.named("half", "bfloat16", "float", "double", "to", "type"):
        if not isinstance(call.func, ast.Attribute):
            continue
        formats = cast(script, call, context)
        if formats and (module := module_of(script, call, context)) is not None:
            found.append(_cast(script, call, context, module, formats))
    for call, context in script.named("from_pretrained", "from_config"):
        keyword = next((k.value for k in call.keywords if k.arg in ("torch_dtype", "dtype")), None)
        formats = dtypes(script, keyword, context)
        module = _assigned_to(script, call)
        if formats and module is not None and not _is_pipeline(script, call):
            found.append(_cast(script, call, context, module, formats))
    return sorted(found, key=lambda cast: (cast.node.lineno, cast.node.end_lineno or 0, cast.node.end_col_offset or 0))


def _cast(script: Script, call: ast.Call, context: Context, module: ast.expr, formats: frozenset[str]) -> WeightCast:
    return WeightCast(node=call, module=script.key(module), identities=script.identities(module, context), dtypes=formats)


def _is_pipeline(script: Script, call: ast.Call) -> bool:
    """Whether it loads a diffusers pipeline or a tokenizer, whose weights nobody trains as a whole."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return script.key(owner).endswith(("Pipeline", "Tokenizer", "Processor", "Config"))


def module_of(script: Script, call: ast.Call, context: Context) -> ast.expr | None:
    """The module that a method call such as `model.to(device).half()` works on; None for a tensor.

    A module that is made in the same expression is known by the name that it is assigned to.
    """
    receiver: ast.expr = call
    while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute) and script.qualname(receiver.func) is None:
        receiver = receiver.func.value
        if isinstance(receiver, (ast.Name, ast.Attribute)) and script.qualname(receiver) is None:
            return receiver if is_module(script, receiver, context) else None
    return _assigned_to(script, call) if isinstance(receiver, ast.Call) and _constructs(script, receiver) else None


def is_module(script: Script, node: ast.expr, context: Context) -> bool:
    """Whether an object is a module: by the class that made it, by `.parameters()` being asked of it, or by its name."""
    if any(isinstance(value, ast.Call) and _constructs(script, _base(script, value)) for value, _ in script.values(node, context)):
        return True
    key = script.key(node)
    if key in _owners(script):
        return True
    last = key.rpartition(".")[2].lower()
    return bool(_MODEL_NAME.search(last)) and not last.endswith(("input", "inputs", "output", "outputs", "out", "pred", "loss", "dtype"))


def _base(script: Script, value: ast.Call) -> ast.expr:
    receiver: ast.expr = value
    while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute) and script.qualname(receiver.func) is None:
        receiver = receiver.func.value
    return receiver


@once
def _owners(script: Script) -> set[str]:
    """Everything that is asked for its parameters."""
    calls = script.named("parameters", "named_parameters")
    return {script.key(call.func.value) for call, _ in calls if isinstance(call.func, ast.Attribute)}


def _constructs(script: Script, node: ast.expr) -> bool:
    """Whether a call makes a module: one of torch.nn's classes, or a module class of the script."""
    if not isinstance(node, ast.Call):
        return False
    name = script.qualname(node.func)
    last = (name or "").rpartition(".")[2]
    if name and name.startswith("torch.nn.") and not name.startswith("torch.nn.functional.") and last[:1].isupper():
        return last != "Parameter"
    if isinstance(node.func, ast.Name):
        own = script.own_classes.get(node.func.id)
        return own is not None and script.is_module(own)
    return False


def _assigned_to(script: Script, node: ast.expr) -> ast.expr | None:
    statement = script.statement(node)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], (ast.Name, ast.Attribute)):
        return statement.targets[0]
    return None


@once
def settings(script: Script) -> list[tuple[str, Seen]]:
    """Formats that keyword arguments of trainers choose, e.g. `TrainingArguments(fp16=True)`."""
    found = []
    for name, calls in script.calls.items():
        if not name.endswith(_TRAINERS):
            continue
        for call in calls:
            for keyword in call.keywords:
                table = _SETTINGS.get(keyword.arg or "")
                if table and isinstance(keyword.value, ast.Constant) and keyword.value.value in table:
                    found.append((table[keyword.value.value], Seen(node=call, text=f"{keyword.arg}={keyword.value.value!r}")))
    return found


def final_cast(script: Script, identities: frozenset[tuple[Scope | None, str]]) -> WeightCast | None:
    """The last cast of a module, or of one that it is part of."""
    last = None
    for found in weight_casts(script):
        if any(scope is other and (key == name or key.startswith(f"{name}.")) for scope, key in identities for other, name in found.identities):
            last = found
    return last


def cast_of(script: Script, module: ast.expr, context: Context) -> WeightCast | None:
    """The cast that decides in which format a module's weights are, `model.half().parameters()` and torch's default format included."""
    direct = next((found for found in weight_casts(script) if found.node is module), None)
    return direct or final_cast(script, script.identities(module, context)) or _default_cast(script)


@once
def _default_cast(script: Script) -> WeightCast | None:
    """`torch.set_default_dtype`, where the script sets it only once and for good: modules are then made in that format."""
    calls = [(call, context) for call, context in script.named("set_default_dtype") if (script.qualname(call.func) or "").startswith("torch.")]
    if len(calls) != 1 or calls[0][1].guards or not calls[0][0].args:
        return None
    call, context = calls[0]
    return WeightCast(node=call, module="every module", identities=frozenset(), dtypes=dtypes(script, call.args[0], context))


def pure(script: Script, dtype: str) -> Seen | None:
    """A cast of a module's weights to this format that no later cast of the same module undoes."""
    seen = next((found for found in weight_casts(script) if found.dtypes == {dtype} and final_cast(script, found.identities) is found), None)
    default = _default_cast(script)
    if seen is None and default is not None and default.dtypes == {dtype}:
        seen = default
    return Seen(node=seen.node, text=f"the weights of {seen.module} become {dtype}") if seen else None


def mixed(script: Script, dtype: str) -> Seen | None:
    """An autocast with this format, or a trainer's setting that asks for one."""
    for made, _ in autocast.every_autocast(script):
        if made.only(dtype):
            return Seen(node=made.node, text=f"autocast in {dtype}")
    return next((seen for name, seen in settings(script) if name == dtype), None)


def visible(script: Script, dtype: str) -> Seen | None:
    """Any sign that the script trains in this format."""
    return pure(script, dtype) or mixed(script, dtype)


def at(script: Script, context: Context, dtype: str) -> Seen | None:
    """A sign that code at this place runs in this format: weights of that format, an autocast around it, or around calls of its module.

    None inside `autocast(enabled=False)` and where nothing shows it.
    """
    opened = list(autocast.open_autocasts(script, context))
    if opened:
        made = opened[-1]
        return Seen(node=made.node, text=f"autocast in {dtype}") if made.only(dtype) else None
    if script.enclosing_module(context.scope) is not None:
        return visible(script, dtype)
    return _called_under(script, context.scope, dtype, ())


def _called_under(script: Script, scope: Scope, dtype: str, stack: tuple[Scope, ...]) -> Seen | None:
    """An autocast that is open where one of the script's own calls runs a function."""
    if scope in stack or len(stack) > 3:
        return None
    for _, context in script.call_sites(scope):
        made = autocast.innermost(script, context)
        if made is not None and made.only(dtype):
            return Seen(node=made.node, text=f"autocast in {dtype}")
        if found := _called_under(script, context.scope, dtype, (*stack, scope)):
            return found
    return None
