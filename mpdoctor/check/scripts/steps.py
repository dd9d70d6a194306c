"""The steps of a training loop in the order in which they run, calls of the script's own functions followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from mpdoctor.check.scripts import autocast
from mpdoctor.check.scripts.guards import exclusive
from mpdoctor.check.scripts.model import Script, once
from mpdoctor.check.scripts.objects import Role, role
from mpdoctor.check.scripts.scopes import Context, Scope

MAX_CALL_DEPTH = 4
"""How many calls of the script's own functions are followed from the outermost one."""
MAX_STEPS = 500
"""Where following calls from one function stops, calls and steps together: real loops have under 50."""


class Do(StrEnum):
    """What a step does."""

    BACKWARD = "backward"
    SCALED_BACKWARD = "scaled-backward"
    """`subject` is the scaler."""
    FRAMEWORK_BACKWARD = "framework-backward"
    """accelerate, Fabric, DeepSpeed, apex, fairseq: whether the loss is scaled is not visible. `subject` is the framework's object."""
    UNSCALE = "unscale"
    CLIP = "clip"
    OPTIMIZER_STEP = "optimizer-step"
    SCALER_STEP = "scaler-step"
    """`subject` is the scaler, `other` the optimizer."""
    SCALER_UPDATE = "scaler-update"
    ZERO_GRAD = "zero-grad"
    SCHEDULER_STEP = "scheduler-step"
    AUTOCAST_ENTER = "autocast-enter"
    """By `__enter__` or an exit stack, not by a `with` block."""
    AUTOCAST_EXIT = "autocast-exit"
    CLEAR_CACHE = "clear-cache"


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step. `subject` and `other` are written as in the function where the sequence starts."""

    do: Do
    node: ast.Call | ast.Assign
    context: Context
    subject: str = ""
    other: str | None = None
    depth: int = 0
    """How many calls lie between the sequence's function and the step."""

    def meets(self, other: Step) -> bool:
        """Whether both can run in one pass: no test sends one of them the other way."""
        return not exclusive(self.context, other.context)


Sequence = tuple[Step, ...]
_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value", "dispatch_clip_grad")


@once
def sequences(script: Script) -> list[Sequence]:
    """One sequence for the module and for each function that the script does not call itself, if anything happens there."""
    callables = [scope for scope in script.scopes if scope.function is not None]
    roots = [script.module, *(scope for scope in callables if not script.call_sites(scope))]
    follow = _Follow(script)
    found = [tuple(follow.scope(scope, {}, ())) for scope in roots]
    # Functions that only call each other are no roots, and are reached from none.
    found += [tuple(follow.scope(scope, {}, ())) for scope in callables if scope not in follow.reached]
    return [sequence for sequence in found if sequence]


class _Follow:
    """Walks through a script's functions in the order of execution."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.reached: set[Scope] = set()
        self.budget = MAX_STEPS
        self.own = {scope: [(a, c, _step(script, a, c)) for a, c in scope.actions] for scope in script.scopes}
        self.busy = {scope for scope, actions in self.own.items() if any(step for _, _, step in actions)}
        """Functions in which, or below which, there is a step at all: the others are not followed."""
        queue = list(self.busy)
        while queue:
            for _, context in script.call_sites(queue.pop()):
                if context.scope not in self.busy:
                    self.busy.add(context.scope)
                    queue.append(context.scope)

    def scope(self, scope: Scope, names: dict[str, str], stack: tuple[Scope, ...]) -> Iterator[Step]:
        """The steps of a function; `names` maps its parameters to how the first function writes what was passed."""
        self.reached.add(scope)
        self.budget = self.budget if stack else MAX_STEPS
        if scope not in self.busy:
            return
        stack = (*stack, scope)
        for action, context, step in self.own[scope]:
            # A stand-in that a script has for the scaler (`DummyGradScaler`) is not what runs where the loss is scaled.
            stands_in = step is not None and step.do in (Do.UNSCALE, Do.SCALER_STEP, Do.SCALER_UPDATE)
            callee = None if stands_in and isinstance(action, ast.Call) and not _closure(action, context) else self._callee(action, context, stack)
            if callee is not None and isinstance(action, ast.Call) and self.budget > 0:
                passed = {name: _renamed(self.script.key(value), names) for name, value in self.script.passed(callee, action).items()}
                for inner in self.scope(callee, passed, stack):
                    yield replace(inner, context=inner.context.inside(context), depth=inner.depth + 1)
            if step is not None and (callee is None or step.do in (Do.OPTIMIZER_STEP, Do.SCALER_STEP)) and self.budget > 0:
                self.budget -= 1
                yield _rename(step, names)

    def _callee(self, action: ast.Call | ast.Assign, context: Context, stack: tuple[Scope, ...]) -> Scope | None:
        if not isinstance(action, ast.Call) or len(stack) > MAX_CALL_DEPTH:
            return None
        callee = self.script.callee(action, context) or _closure(action, context)
        if callee is None or callee in stack:
            return None
        self.budget -= 1
        return callee


def _closure(call: ast.Call, context: Context) -> Scope | None:
    """The function that `optimizer.step(closure)` runs."""
    match call:
        case ast.Call(func=ast.Attribute(attr="step"), args=[ast.Name(id=name), *_]):
            scope: Scope | None = context.scope
            while scope is not None:
                if name in scope.functions:
                    return scope.functions[name]
                scope = scope.parent
    return None


def _renamed(key: str, names: dict[str, str]) -> str:
    head, dot, rest = key.partition(".")
    return names.get(key) or (names[head] + dot + rest if head in names else key)


def _rename(step: Step, names: dict[str, str]) -> Step:
    return replace(step, subject=_renamed(step.subject, names), other=None if step.other is None else _renamed(step.other, names)) if names else step


def _step(script: Script, action: ast.Call | ast.Assign, context: Context) -> Step | None:
    """What a call does for the training loop, if anything."""
    if isinstance(action, ast.Assign):
        cleared = isinstance(action.value, ast.Constant) and action.value.value is None
        return Step(Do.ZERO_GRAD, action, context, script.key(action.targets[0])) if cleared else None
    function = action.func
    owner = function.value if isinstance(function, ast.Attribute) else None
    name = function.attr if isinstance(function, ast.Attribute) else script.key(function) if isinstance(function, ast.Name) else ""
    if owner is None:
        name = (script.qualname(function) or name).rpartition(".")[2]
    first = action.args[0] if action.args else None
    match name:
        case "backward" | "manual_backward":
            return _backward(script, action, owner, context)
        case "unscale_" | "unscale_gradients":
            return Step(Do.UNSCALE, action, context, script.key(owner) if owner else "", script.key(first) if first else None)
        case "zero_grad" if owner is not None:
            return Step(Do.ZERO_GRAD, action, context, script.key(owner))
        case "update" if owner is not None and role(script, owner, context) is Role.SCALER:
            return Step(Do.SCALER_UPDATE, action, context, script.key(owner))
        case "step" if owner is not None:
            return _optimizer_or_scheduler(script, action, owner, first, context)
        case "clear_autocast_cache":
            return Step(Do.CLEAR_CACHE, action, context)
        case "__enter__" | "__exit__" | "enter_context":
            return _entered(script, action, name, owner, first, context)
    if name in _CLIPS and (owner is None or script.qualname(function) is not None or _is_module_method(script, name, owner, context)):
        return Step(Do.CLIP, action, context)
    if name in ("clamp_", "clip_") and owner is not None and ".grad" in script.key(owner):
        return Step(Do.CLIP, action, context)
    return None


def _is_module_method(script: Script, name: str, owner: ast.expr, context: Context) -> bool:
    """Whether it is the clipping method of a sharded module; those of frameworks and of wrapped optimizers know of the scale."""
    return name.endswith("_") and role(script, owner, context) not in (Role.FRAMEWORK, Role.OPTIMIZER)


def _backward(script: Script, call: ast.Call, owner: ast.expr | None, context: Context) -> Step | None:
    if owner is None:
        return None
    loss = owner
    if script.qualname(owner) == "torch.autograd":
        if not call.args:
            return None
        loss = call.args[0]
    elif call.args and (script.calls.get("manual_backward") or role(script, owner, context) in (Role.FRAMEWORK, Role.OPTIMIZER)):
        return Step(Do.FRAMEWORK_BACKWARD, call, context, script.key(owner))
    value, there = loss, context
    for _ in range(2):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "scale" and role(script, value.func.value, there) is Role.SCALER:
                merged = replace(context, guards=context.guards + tuple(g for g in there.guards if g not in context.guards))
                return Step(Do.SCALED_BACKWARD, call, merged, script.key(value.func.value))
            if value.func.attr == "scale_loss":  # apex
                return Step(Do.FRAMEWORK_BACKWARD, call, context, "amp")
        value, there = script.resolve(value, there)
    if isinstance(owner, ast.Name):
        _, found = script.bindings(owner, context)
        entered = [b.value for b in found if isinstance(b.value, ast.Call) and isinstance(b.value.func, ast.Attribute)]
        if any(isinstance(call.func, ast.Attribute) and call.func.attr == "scale_loss" for call in entered):
            return Step(Do.FRAMEWORK_BACKWARD, call, context, "amp")
    return Step(Do.BACKWARD, call, context, script.key(loss))


def _optimizer_or_scheduler(script: Script, call: ast.Call, owner: ast.expr, first: ast.expr | None, context: Context) -> Step | None:
    match role(script, owner, context):
        case Role.SCALER if first is not None:
            return Step(Do.SCALER_STEP, call, context, script.key(owner), script.key(first))
        case Role.OPTIMIZER:
            return Step(Do.OPTIMIZER_STEP, call, context, script.key(owner))
        case Role.SCHEDULER if len(call.args) + len(call.keywords) <= 1:  # with more it is a diffusion model's noise scheduler
            return Step(Do.SCHEDULER_STEP, call, context, script.key(owner))
    return None


def _entered(script: Script, call: ast.Call, name: str, owner: ast.expr | None, first: ast.expr | None, context: Context) -> Step | None:
    manager = first if name == "enter_context" else owner
    made = autocast.read(script, manager, context) if manager is not None else None
    if made is None or manager is None:
        return None
    return Step(Do.AUTOCAST_EXIT if name == "__exit__" else Do.AUTOCAST_ENTER, call, context, script.key(manager))
