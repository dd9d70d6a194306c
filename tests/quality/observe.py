"""Runs recipes in plain torch and says what was seen: the ground that the fault matrix stands on.

Nothing of mpdoctor is imported here, so that what the matrix calls the truth does not come from what it tests.

    python tests/quality/observe.py dice_empty_mask      # a fault and its repaired twin
    python tests/quality/observe.py                      # all of them, one line each
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
import traceback
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # hundreds of files, which optimizers import at first use: read once, not in every fork
from torch.nn.modules import module as nn_module
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recipes import FAULTS, HEALTHY, repaired

_ALLOCATES = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "_efficientzerotensor")
_OVERWRITES = ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_")


@dataclass
class Origin:
    """An op that was given finite numbers and returned others, or was given infinities and made the first NaN of them."""

    step: int
    phase: str
    module: str
    op: str
    kind: str

    def __str__(self) -> str:
        return f"step {self.step} {self.phase} [{self.module}] {self.op} {self.kind}"


@dataclass
class Observation:
    """What a run did."""

    losses: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    moved: float = 0.0
    """Share of the trainable parameters (tensors) that differ from their start."""
    none_grads: list[str] = field(default_factory=list)
    """Trainable parameters that had no gradient in any step."""
    zero_grads: list[str] = field(default_factory=list)
    """Parameters whose gradient was exactly zero in every step."""
    bad_state: list[str] = field(default_factory=list)
    """Parameters and buffers that are not finite at the end."""
    origins: list[Origin] = field(default_factory=list)
    """Of the first step that has any, and of the steps after it up to `trace_steps`."""
    error: str = ""
    error_place: tuple[str, str, str] = ("", "", "")
    """Phase, module and op in which the step raised."""
    seconds: float = 0.0

    @property
    def finite(self) -> bool:
        return not self.error and not self.bad_state and all(map(math.isfinite, self.losses))

    @property
    def falls(self) -> float:
        """Mean loss of the last quarter over that of the first; below 1 where the run learns."""
        if len(self.losses) < 2:
            return 1.0
        n = max(1, len(self.losses) // 4)
        first, last = sum(self.losses[:n]) / n, sum(self.losses[-n:]) / n
        return last / first if first > 0 else 1.0 + last - first


def load(source: str, name: str) -> types.ModuleType:
    """A recipe as a module. Autocast for a GPU is run as the CPU's, which is near enough for matrix
    products; a recipe that lives by the other ops' lists asks to be observed without autocast."""
    module = types.ModuleType(f"recipe_{name}")
    sys.modules[module.__name__] = module
    here = 'autocast("cpu", enabled=False' if "OBSERVE_IN_FP32 = True" in source else 'autocast("cpu"'
    exec(compile(source.replace('autocast("cuda"', here), f"{name}.py", "exec"), module.__dict__)
    return module


def floats(tree: Any) -> list[torch.Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()) and t.numel()]


def finite(tensor: torch.Tensor) -> bool:
    dense = tensor.coalesce().values() if tensor.is_sparse else tensor
    return bool(torch.isfinite(dense).all())


def kind_of(tensor: torch.Tensor) -> str:
    if bool(torch.isnan(tensor).any()):
        return "nan"
    return "inf" if bool((tensor == math.inf).any()) else "-inf"


class OpWatch(TorchDispatchMode):
    """Records every op whose inputs are finite and whose output is not."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.names = {m: n for n, m in model.named_modules()}
        self.stack: list[str] = []
        self.made_by: dict[int, str] = {}
        self.phase: str | None = None
        self.step = 0
        self.origins: list[Origin] = []
        self.last: tuple[str, str, str] = ("", "", "")
        self.hooks = [
            nn_module.register_module_forward_pre_hook(lambda m, _: self.stack.append(self.names.get(m, "?"))),
            nn_module.register_module_forward_hook(lambda *_: self.leave(), always_call=True),
            register_optimizer_step_pre_hook(lambda *_: self.enter("optimizer")),
            register_optimizer_step_post_hook(lambda *_: self.enter(None)),
        ]
        self.unscale = torch.amp.GradScaler._unscale_grads_
        torch.amp.GradScaler._unscale_grads_ = lambda *args: self.unscaling(*args)  # type: ignore[method-assign]

    def leave(self) -> None:
        self.stack.pop()

    def enter(self, phase: str | None) -> None:
        self.phase = phase

    def unscaling(self, *args: Any) -> Any:
        """Stands in for the scaler's own method, which tells nobody that it runs."""
        self.enter("unscale")
        try:
            return self.unscale(*args)
        finally:
            self.enter(None)

    def close(self) -> None:
        torch.amp.GradScaler._unscale_grads_ = self.unscale  # type: ignore[method-assign]
        for hook in self.hooks:
            hook.remove()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        node = torch._C._current_autograd_node()
        backward = node is not None and not (self.stack and torch.is_grad_enabled())
        sequence = torch._C._autograd._get_sequence_nr() - 1
        where = self.stack[-1] if self.stack else ""
        if backward:
            place = ("backward", self.made_by.get(node._sequence_nr(), ""), type(node).__name__ if "Backward" in type(node).__name__ else node.name())
        else:
            self.made_by.setdefault(sequence, where)
            place = (self.phase or ("forward" if self.stack else "loss"), where, func._schema.name.replace("::", "."))
        self.last = place
        given = floats((args[1:] if name in _OVERWRITES else args, {k: v for k, v in kwargs.items() if k != "out"}))
        before = {kind_of(t) for t in given if not finite(t)}
        result = func(*args, **kwargs)
        if "nan" not in before and name not in _ALLOCATES:
            outputs = floats(result)
            if func._schema.is_mutable:
                outputs += floats(args)
            after = [kind_of(t) for t in outputs if not finite(t)]
            if after and not before:
                self.origins.append(Origin(self.step, *place, after[0]))
            elif "nan" in after:  # infinities went in on purpose or by an earlier origin; the NaN was made here
                self.origins.append(Origin(self.step, *place, "nan"))
        return result


def run(recipe: types.ModuleType, *, trace: bool = True, trace_steps: int = 1) -> Observation:
    """Trains a recipe over all its batches, as a plain loop would."""
    seen = Observation()
    started = time.process_time()
    torch.manual_seed(0)
    config = getattr(recipe, "CONFIG", {})
    model, optimizer = recipe.build()
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    without, zero = set(trained), set(trained)
    scaler = torch.amp.GradScaler("cpu", init_scale=config.get("init_scale", 2.0**16), enabled=bool(config.get("scaler")))
    scheduler = recipe.scheduler(optimizer) if hasattr(recipe, "scheduler") else None
    watch = OpWatch(model) if trace else None
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.is_floating_point() and not finite(tensor):
            seen.origins.append(Origin(0, "parameter" if name in start else "buffer", name, "", kind_of(tensor)))
    try:
        for step, batch in enumerate(recipe.batches()):
            bad_input = [t for t in floats(batch) if not finite(t)]
            if bad_input:
                seen.origins.append(Origin(step, "input", "batch", "", kind_of(bad_input[0])))
            if watch:
                watch.step = step
            with watch or contextlib.nullcontext():
                logged = plain_step(recipe, model, optimizer, batch, scaler, config)
            if scheduler:
                scheduler.step()
            if hasattr(recipe, "after_step"):
                recipe.after_step(model)
            seen.losses.append(float(logged.get("loss", math.nan)))
            seen.grad_norms.append(float(logged.get("grad_norm", math.nan)))
            seen.scales.append(float(scaler.get_scale()) if config.get("scaler") else math.nan)
            for name, parameter in model.named_parameters():
                if parameter.grad is not None and name in trained:
                    without.discard(name)
                    if bool((parameter.grad != 0).any()):
                        zero.discard(name)
            if watch and watch.origins and step >= watch.origins[0].step + trace_steps - 1:
                seen.origins += watch.origins
                watch.close()
                watch = None
    except (Exception, SystemExit) as error:
        seen.error = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        seen.error_place = watch.last if watch else ("", "", "")
    if watch:
        seen.origins += watch.origins
        watch.close()
    now = dict(model.named_parameters())
    seen.moved = sum(not torch.equal(start[n], now[n].detach()) for n in trained) / max(1, len(trained))
    seen.none_grads, seen.zero_grads = sorted(without), sorted(zero - without)
    seen.bad_state = [n for n, t in [*model.named_parameters(), *model.named_buffers()] if t.is_floating_point() and not finite(t)]
    seen.seconds = time.process_time() - started
    return seen


def plain_step(recipe: Any, model: Any, optimizer: Any, batch: Any, scaler: Any, config: dict[str, Any]) -> dict[str, Any]:
    """One step: the recipe's own, or the plain one."""
    if hasattr(recipe, "step"):
        return recipe.step(model, optimizer, batch, scaler) or {}
    optimizer.zero_grad()
    loss = recipe.loss(model, batch)
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    clip = config.get("clip")
    if isinstance(clip, int | float):
        scaler.unscale_(optimizer)
        norm, scale = torch.nn.utils.clip_grad_norm_(model.parameters(), clip), 1.0
    else:
        grads = [p.grad for p in model.parameters() if p.grad is not None and not p.grad.is_sparse]
        norm = torch.nn.utils.get_total_norm(grads) if grads else torch.tensor(0.0)
    scaler.step(optimizer)
    scaler.update()
    return {"loss": float(loss.detach()), "grad_norm": float(norm) / scale if scale else math.nan}


def _short(values: list[float]) -> str:
    shown = values if len(values) <= 10 else [*values[:6], *values[-4:]]
    return " ".join(f"{v:.4g}" for v in shown)


def describe(path: Path, *, full: bool) -> str:
    """A fault and its twin in words."""
    lines = []
    variants = [("fault", path.read_text(encoding="utf-8"))]
    if path.parent == FAULTS:
        variants.append(("twin", repaired(path)))
    for label, source in variants:
        seen = run(load(source, path.stem))
        counts = f"moved={seen.moved:.2f} none={len(seen.none_grads)} zero={len(seen.zero_grads)} {seen.seconds:.1f}s"
        verdict = f"finite={seen.finite} falls={seen.falls:.3f} {counts}"
        lines.append(f"{path.stem:32s} {label:5s} {verdict} {seen.error} {'/'.join(seen.error_place) if seen.error else ''}")
        if full or (label == "fault" and path.parent == FAULTS):
            lines += [f"    losses {_short(seen.losses)}", f"    norms  {_short(seen.grad_norms)}", f"    scales {_short(seen.scales)}"]
            lines += [f"    {o}" for o in seen.origins[:8]]
        if seen.bad_state:
            lines.append(f"    not finite at the end: {', '.join(seen.bad_state[:4])}")
    return "\n".join(lines)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    paths = [p for n in names for p in (FAULTS / f"{n}.py", HEALTHY / f"{n}.py") if p.exists()]
    paths = paths or [*sorted(FAULTS.glob("*.py")), *sorted(HEALTHY.glob("*.py"))]
    for path in paths:
        pid = os.fork()  # recipes keep state in their modules and in torch's globals
        if not pid:
            try:
                print(describe(path, full=bool(names)), flush=True)
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
