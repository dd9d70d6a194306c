"""What the objects of a training loop are: scaler, optimizer, scheduler, or a framework's stand-in for them.

An object is known by the call that made it; where that is not visible (a parameter), by how the script
uses it, and last by its name.
"""

from __future__ import annotations

import ast
from enum import StrEnum

from mpdoctor.check.scripts.model import Script, once
from mpdoctor.check.scripts.scopes import BindingKind, Context


class Role(StrEnum):
    """What an object is for."""

    SCALER = "scaler"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    FRAMEWORK = "framework"
    """accelerate, Fabric, Lightning, DeepSpeed, Colossal-AI: scales, unscales and skips on its own."""


_FRAMEWORK_CLASSES = ("Accelerator", "Fabric", "LightningLite", "DeepSpeedEngine", "Booster")
_FRAMEWORK_NAMES = ("accelerator", "fabric", "engine", "model_engine", "booster", "strategy", "precision_plugin")
_OPTIMIZERS = (
    "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "SGD", "ASGD", "LBFGS", "Lion",
    "Adafactor", "FusedAdam", "FusedLAMB", "FusedSGD", "FusedNovoGrad", "LAMB", "Lamb", "Adam8bit", "AdamW8bit", "PagedAdamW8bit", "PagedAdamW",
    "Lion8bit", "DeepSpeedCPUAdam", "Muon", "Prodigy", "NovoGrad", "Ranger", "AdaBelief", "SM3",
)  # fmt: skip
ADAM_FAMILY = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax")
"""torch's optimizers that divide by a running root of squared gradients kept in the parameter's own format."""


def role(script: Script, node: ast.expr, context: Context) -> Role | None:
    """What an object is, or None when nothing tells."""
    question = ("role", node)
    if question not in script.answers:
        script.answers[question] = _made(script, node, context) or _annotated(script, node, context) or _used(script, node) or _called(script, node)
    answer: Role | None = script.answers[question]
    return answer


def _made(script: Script, node: ast.expr, context: Context) -> Role | None:
    for value, _ in script.values(node, context):
        if not isinstance(value, ast.Call):
            continue
        name = script.qualname(value.func) or script.key(value.func)
        last = name.rpartition(".")[2]
        if found := _of_class(name, last):
            return found
        if last == "initialize" and name.startswith("deepspeed"):
            return Role.FRAMEWORK
    return None


def _of_class(name: str, last: str) -> Role | None:
    lower = last.lower()
    if last.endswith("GradScaler"):
        return Role.SCALER
    if last in _FRAMEWORK_CLASSES:
        return Role.FRAMEWORK
    if "lr_scheduler" in name or "sched" in lower:
        return Role.SCHEDULER
    if last in _OPTIMIZERS or name.startswith("torch.optim.") or "optim" in lower:
        return Role.OPTIMIZER
    return None


def _annotated(script: Script, node: ast.expr, context: Context) -> Role | None:
    _, found = script.bindings(node, context)
    for binding in found:
        annotation = getattr(binding.node, "annotation", None)
        if binding.kind is BindingKind.PARAMETER and isinstance(annotation, ast.expr):
            name = script.qualname(annotation) or script.source.segment(annotation)
            if answer := _of_class(name, name.rpartition(".")[2].strip("\"'] ")):
                return answer
    return None


def _used(script: Script, node: ast.expr) -> Role | None:
    """By methods that only one kind of object has."""
    return _usage(script).get(script.key(node))


@once
def _usage(script: Script) -> dict[str, Role]:
    found: dict[str, Role] = {}
    for call, _ in script.named("unscale_"):
        if isinstance(call.func, ast.Attribute) and len(call.args) == 1:
            found[script.key(call.func.value)] = Role.SCALER
    for call, _ in script.named("backward"):
        match call.func:
            case ast.Attribute(value=ast.Call(func=ast.Attribute(value=owner, attr="scale"))):
                found[script.key(owner)] = Role.SCALER
    for call, _ in script.named("step", "unscale_"):
        match call:
            case ast.Call(func=ast.Attribute(value=owner), args=[argument, *_]) if found.get(script.key(owner)) is Role.SCALER:
                found.setdefault(script.key(argument), Role.OPTIMIZER)
    for call, _ in script.named("zero_grad"):
        if isinstance(call.func, ast.Attribute) and any(_is_step_of(script, step, call.func.value) for step, _ in script.named("step")):
            found.setdefault(script.key(call.func.value), Role.OPTIMIZER)
    return found


def _is_step_of(script: Script, step: ast.Call, owner: ast.expr) -> bool:
    return isinstance(step.func, ast.Attribute) and not step.args and script.key(step.func.value) == script.key(owner)


def _called(script: Script, node: ast.expr) -> Role | None:
    """By its name: the last word before an index."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    name = (node.attr if isinstance(node, ast.Attribute) else script.key(node)).lower().strip("_")
    if name in _FRAMEWORK_NAMES:
        return Role.FRAMEWORK
    if "sched" in name:
        return Role.SCHEDULER
    if "optim" in name or name == "opt" or name.startswith("opt_") or name.endswith("_opt"):
        return Role.OPTIMIZER
    if name in ("scaler", "grad_scaler", "gradscaler", "amp_scaler", "loss_scaler"):
        return Role.SCALER
    return None
