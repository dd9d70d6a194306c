"""Autocast, GradScaler, clipping, backward and optimizers, intercepted inside the user's own code.

Nothing of a recipe has to be rewritten: for the time of one run torch's own entry points are wrapped, so that the guard
sees what the loop does, and a counterfactual can change one thing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
import torch.utils.checkpoint
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import _disable_current_modes

from mpdoctor.core.location import Phase
from mpdoctor.core.trace import ClipCall
from mpdoctor.replay.live.autocast_regions import AutocastRegions
from mpdoctor.replay.live.backward_graph import comes_from
from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.fidelity import Fidelity
from mpdoctor.replay.live.finiteness import extremes
from mpdoctor.replay.live.injected_scaler import InjectedScaler
from mpdoctor.replay.live.master_weights import MasterWeights
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.optimizer_watch import OptimizerWatch
from mpdoctor.replay.live.origin import keep_inputs, source_line
from mpdoctor.replay.live.step_mode import StepMode
from mpdoctor.replay.live.swapped_checkpoint import nonreentrant


class Interception:
    """Wraps torch's entry points between `__enter__` and `__exit__`.

    Attributes:
        scalers: GradScalers made by the run, in order.
        loss: the unscaled tensor that the last backward pass started from.
        clip_calls, optimizer_steps, skipped: what the current step did; `new_step` clears them.
        autocast: the run's autocast regions.
        tracer: the tracer of the current step, or None.
        on_optimizer_step, before_backward, on_backward: called after an optimizer step, before a backward pass (with what it starts from)
            and after one, while the gradients still carry the loss scale.
    """

    def __init__(self, changes: Changes, *, map_cuda: bool) -> None:
        self.changes = changes
        self.fidelity = Fidelity(map_cuda=map_cuda, compute_dtype=changes.compute_dtype, replaced=changes.replaced_dtypes)
        self.map_cuda = map_cuda
        self.scalers: list[Any] = []
        self.tracer: OpTracer | None = None
        self._mode: StepMode | None = None
        self.watch = OptimizerWatch()
        self.loss: torch.Tensor | None = None
        self.clip_calls: list[ClipCall] = []
        self.optimizer_steps = 0
        self.skipped: bool | None = None
        self.scale_not_removed: float | None = None
        self.scale_not_applied: float | None = None
        self.step = 0
        self._scaled_backward: bool | None = None
        """Whether the backward pass of this step started from a scaled loss; None before it."""
        self._inside_scaler_step = False
        self.autocast = AutocastRegions(changes, self.fidelity)
        self.on_optimizer_step: Callable[[], None] | None = None
        self.before_backward: Callable[[torch.Tensor], None] | None = None
        self.on_backward: Callable[[], None] | None = None
        self._scaled: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._stack = ExitStack()
        self._optimizer_phase: list[Any] = []
        self._rates: list[tuple[dict[str, Any], Any]] = []
        self._masters: dict[int, MasterWeights] = {}
        self.injected_scaler: InjectedScaler | None = None
        """Set by the loop when dynamic scaling is to be tried on a loop of the user's own that has none."""

    # -- entering and leaving

    def __enter__(self) -> Interception:
        stack = self._stack
        region = torch.amp.autocast_mode.autocast
        scaler = torch.amp.grad_scaler.GradScaler
        self._swap(region, "__init__", self.autocast.opened)
        self._swap(region, "__enter__", self.autocast.entered)
        self._swap(region, "__exit__", self.autocast.left)
        self._swap(scaler, "__init__", self._scaler_init)
        self._swap(scaler, "scale", self._scaler_scale)
        self._swap(scaler, "unscale_", self._scaler_unscale)
        self._swap(scaler, "step", self._scaler_step)
        self._swap(scaler, "load_state_dict", self._scaler_load)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            wrapped = self._clip(getattr(torch.nn.utils, name))
            self._set(torch.nn.utils, name, wrapped)
            self._set(torch.nn.utils.clip_grad, name, wrapped)
        self._swap(torch.autograd, "backward", self._backward)
        self._swap(Optimizer, "__init__", self._optimizer_init)
        self._swap(Optimizer, "zero_grad", self._optimizer_zero_grad)
        self._swap(torch.nn.Module, "zero_grad", self._module_zero_grad)
        for handle in (register_optimizer_step_pre_hook(self._before_step), register_optimizer_step_post_hook(self._after_step)):
            stack.callback(handle.remove)
        if self.changes.math_attention:
            stack.enter_context(torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
        if self.changes.nonreentrant_checkpointing:
            self._swap(torch.utils.checkpoint, "checkpoint", nonreentrant)
        stack.enter_context(self.fidelity)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    def _set(self, owner: Any, name: str, value: Any) -> None:
        original = getattr(owner, name)
        setattr(owner, name, value)
        self._stack.callback(setattr, owner, name, original)

    def _swap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        self._set(owner, name, wrapper(getattr(owner, name)))

    def masters(self) -> dict[int, torch.Tensor]:
        """fp32 masters that were put under optimizers, by id of the parameter."""
        return {key: master for under in self._masters.values() for key, master in under.masters.items()}

    def new_step(self, step: int, mode: StepMode | None) -> None:
        """Forget what the last step did; `mode`, a tracer or another, follows the coming one."""
        self._mode = mode
        self.tracer = mode if isinstance(mode, OpTracer) else None
        self.loss = self.fidelity.bad_look = None
        self.fidelity.looked_on = False
        self.clip_calls, self.optimizer_steps, self.skipped = [], 0, None
        self.scale_not_removed = self.scale_not_applied = self._scaled_backward = None
        self.step = step
        self._scaled.clear()
        self._optimizer_phase.clear()

    @contextmanager
    def looks(self) -> Iterator[None]:
        """The step's own code runs until the end of the block; what looks at numbers after it are the guard's own eyes."""
        self.fidelity.looking = True
        try:
            yield
        finally:
            self.fidelity.looking = False

    @property
    def given_up(self) -> torch.Tensor | None:
        """A value that was not finite and that the code looked at before any backward pass of the step."""
        return self.fidelity.bad_look

    @property
    def stopped_by(self) -> torch.Tensor | None:
        """The same, if it was the last that the code looked at: the reason why it raised."""
        return None if self.fidelity.looked_on else self.fidelity.bad_look

    # -- loss scaling

    def _scaler_init(self, original: Any) -> Any:
        def init(scaler: Any, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
            names = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
            given = dict(zip(names, args, strict=False)) | kwargs
            if self.map_cuda and device.startswith("cuda"):
                device = "cpu"
            if self.changes.dynamic_scaling:
                given |= {"init_scale": 2.0**16, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000}
            if self.changes.scale is not None:
                given |= {"init_scale": self.changes.scale, "growth_interval": 1 << 30, "backoff_factor": 0.999999}
            original(scaler, device, **given)
            if scaler._enabled:
                self.scalers.append(scaler)

        return init

    def _scaler_scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if scaler._enabled and scaler not in self.scalers:  # made before the interception began
                self.scalers.append(scaler)
            if isinstance(outputs, torch.Tensor):
                self._scaled[id(result)] = (result, outputs)
            return result

        return scale

    def _scaler_load(self, original: Any) -> Any:
        def load(scaler: Any, state: dict[str, Any]) -> None:
            if not self.changes.dynamic_scaling and self.changes.scale is None:
                original(scaler, state)

        return load

    def _scaler_unscale(self, original: Any) -> Any:
        def unscale(scaler: Any, optimizer: Any) -> Any:
            if scaler._enabled and self._scaled_backward is False and scaler.get_scale() != 1.0:
                self.scale_not_applied = float(scaler.get_scale())
            if self.tracer is None:
                return original(scaler, optimizer)
            with self.tracer.in_phase(Phase.UNSCALE, "GradScaler.unscale_"):
                return original(scaler, optimizer)

        return unscale

    def _scaler_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            steps = self.optimizer_steps
            self._inside_scaler_step = True
            try:
                result = original(scaler, optimizer, *args, **kwargs)
            finally:
                self._inside_scaler_step = False
            if scaler._enabled:
                self.skipped = self.optimizer_steps == steps
                if self.skipped:
                    self._look_at_grads(optimizer)
            return result

        return step

    def unscaled_by(self, optimizer: Any) -> tuple[Any, float] | None:
        """The scaler whose scale the optimizer's gradients still carry, and that scale; None when they carry none."""
        for scaler in self.scalers:
            if scaler._scale is None or not self._scaled_backward:
                continue
            stage = scaler._per_optimizer_states[id(optimizer)]["stage"]
            if stage.name == "READY":
                return scaler, float(scaler.get_scale())
        return None

    def _clip(self, original: Any) -> Any:
        def clip(parameters: Any, limit: float, *args: Any, **kwargs: Any) -> Any:
            listed = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            optimizer = self.watch.owner_of(listed)
            carried = self.unscaled_by(optimizer) if optimizer is not None else None
            if carried is not None and self.changes.clip_after_unscale:
                carried[0].unscale_(optimizer)
                carried = None
            if self.injected_scaler is not None and optimizer is not None:
                self.injected_scaler.unscale(optimizer)
            largest = 0.0
            if original.__name__ == "clip_grad_value_":
                with _disable_current_modes():
                    bounds = [extremes(p.grad) for p in listed if p.grad is not None]
                largest = max((max(-low, high) for low, high in (b for b in bounds if b is not None)), default=0.0)
            with self.tracer.in_phase(Phase.UNSCALE, original.__name__) if self.tracer is not None else nullcontext():
                result = original(listed, limit, *args, **kwargs)
            norm = float(result) if isinstance(result, torch.Tensor) else largest
            source = source_line(torch.utils._traceback.CapturedTraceback.extract(cpp=False)) if carried and carried[1] != 1.0 else None
            self.clip_calls.append(
                ClipCall(
                    norm=norm,
                    limit=float(limit),
                    scale=carried[1] if carried else 1.0,
                    by_value=original.__name__ == "clip_grad_value_",
                    source=source,
                )
            )
            return result

        clip.__name__ = original.__name__
        return clip

    def _comes_from_scaled(self, root: torch.Tensor) -> bool:
        """Whether a backward pass from `root` starts with a scaled loss (itself, or a few ops after it)."""
        return id(root) in self._scaled or comes_from(root, [result for result, _ in self._scaled.values()])

    # -- backward, optimizer

    def _backward(self, original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            first = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
            if isinstance(first, torch.Tensor):
                self.fidelity.looking = False
                self.loss = self._scaled.get(id(first), (first, first))[1]
                self._scaled_backward = self._comes_from_scaled(first)
                if self.tracer is not None:
                    self.tracer.end_of("loss", "loss", self.loss)
            with _disable_current_modes():  # the guard's looks are no ops of the run
                self.watch.before_backward()
                if self.before_backward is not None and isinstance(first, torch.Tensor):
                    self.before_backward(first)
            if self.injected_scaler is not None and isinstance(first, torch.Tensor) and first.numel() == 1:
                tensors = self.injected_scaler.scaled(first)
            factor = self.changes.backward_scale
            if self.changes.backward_scale_at is not None and self.changes.backward_scale_at[0] == self.step:
                factor *= self.changes.backward_scale_at[1]
            if factor != 1.0 and isinstance(first, torch.Tensor) and first.numel() == 1:
                tensors = first.float() * factor
            result = original(tensors, *args, **kwargs)
            if self.on_backward is not None:
                with _disable_current_modes():
                    self.on_backward()
            if self.tracer is not None:
                self.tracer.after_backward()
            return result

        return backward

    def _optimizer_init(self, original: Any) -> Any:
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self.watch.know(optimizer)

        return init

    def _optimizer_zero_grad(self, original: Any) -> Any:
        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self.watch.know(optimizer)
            self.watch.cleared(optimizer)
            if self.tracer is not None:
                self.tracer.backward_done = False
                self.tracer.gradients_used()
            return original(optimizer, *args, **kwargs)

        return zero_grad

    def _module_zero_grad(self, original: Any) -> Any:
        def zero_grad(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.watch.cleared(None)
            if self.tracer is not None:
                self.tracer.gradients_used()
            return original(module, *args, **kwargs)

        return zero_grad

    def _look_at_grads(self, optimizer: Any) -> None:
        with _disable_current_modes():
            self.watch.look_at_grads(optimizer, self.tracer.squares if self.tracer is not None else {})
        if self.tracer is not None and self.watch.nonfinite:
            for name, parameter in self.watch.parameters_of(optimizer):
                if parameter.grad is not None:
                    self.tracer.end_of("gradient", name, parameter.grad)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.injected_scaler is not None:
            self.injected_scaler.before_step(optimizer)
        carried = None if self._inside_scaler_step else self.unscaled_by(optimizer)
        if carried is not None and carried[1] != 1.0:
            self.scale_not_removed = carried[1]
        self._look_at_grads(optimizer)
        self.watch.before_step(optimizer)
        changes = self.changes
        for group in optimizer.param_groups:
            if changes.lr_factor != 1.0 and group.get("lr") is not None:
                self._rates.append((group, group["lr"]))
                group["lr"] = group["lr"] * changes.lr_factor
            if changes.adam_eps is not None and isinstance(group.get("eps"), float):
                group["eps"] = changes.adam_eps
        if changes.master_weights:
            self._masters.setdefault(id(optimizer), MasterWeights(optimizer)).widen()
        if self.tracer is not None:
            keep_inputs(self.tracer)
            phase = self.tracer.in_phase(Phase.OPTIMIZER, f"{type(optimizer).__name__}.step")
            phase.__enter__()
            self._optimizer_phase.append(phase)
        if self._mode is not None:
            self._mode.optimizer_begins()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._mode is not None:
            self._mode.optimizer_ends()
        if self._optimizer_phase:
            self._optimizer_phase.pop().__exit__(None, None, None)
        if self.tracer is not None:
            self.tracer.gradients_used()
        if id(optimizer) in self._masters:
            self._masters[id(optimizer)].narrow()
        for group, rate in self._rates:
            group["lr"] = rate
        self._rates.clear()
        self.optimizer_steps += 1
        self.watch.after_step(optimizer)
        if self.on_optimizer_step is not None:
            self.on_optimizer_step()
