"""What the tracer leaves out, it leaves out without a trace: ops are counted alike with and without the optimizer, norms are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from mpdoctor.replay.live.changes import Changes, OpOfStep
from mpdoctor.replay.live.events import Event
from mpdoctor.replay.live.op_trace import OpTracer
from mpdoctor.replay.live.recipe import RecipeSource
from mpdoctor.replay.live.training_loop import Tracing, run

pytestmark = pytest.mark.torch

TWO_OPTIMIZERS = """
import torch
class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
def build():
    torch.manual_seed(0)
    model = Pair()
    model.second_optimizer = torch.optim.AdamW(model.second.parameters(), lr=0.1)
    return model, torch.optim.AdamW(model.first.parameters(), lr=0.1)
def batches():
    return [torch.ones(2, 3)]
def loss(model, batch):
    return model.first(batch).mean()
def step(model, optimizer, batch, scaler):
    for optimizer, layer, shift in zip((optimizer, model.second_optimizer), (model.first, model.second), (0.0, {shift})):
        optimizer.zero_grad()
        loss = (layer(batch).abs() + 1.0 + shift).log().mean()
        loss.backward()
        {hook}
        optimizer.step()
    return {{"loss": loss.item()}}
"""


def source(tmp_path: Path, hook: str = "pass", shift: float = -100.0) -> RecipeSource:
    path = tmp_path / "recipe.py"
    path.write_text(TWO_OPTIMIZERS.format(hook=hook, shift=shift))
    return RecipeSource(path)


@pytest.mark.parametrize("optimizer_ops", [False, True])
def test_an_op_behind_an_optimizer_is_found_by_its_number(optimizer_ops: bool, tmp_path: Path) -> None:
    tracers: list[OpTracer] = []
    tracing = Tracing(frozenset([0]), lambda tracer, *_: tracers.append(tracer), optimizer_ops=optimizer_ops)
    run(source(tmp_path), tracing=tracing)
    log = next(e for e in tracers[0].events if e.created)
    assert isinstance(log, Event)
    assert (log.op, log.optimizer_ops) == ("aten.log", optimizer_ops)
    cured = run(source(tmp_path), changes=Changes(finite_op=OpOfStep(0, log.n - 1, optimizer_ops)))
    assert cured.steps[0].loss == 1.0
    missed = run(source(tmp_path), changes=Changes(finite_op=OpOfStep(0, log.n - 2, optimizer_ops)))
    assert missed.steps[0].loss != 1.0


@pytest.mark.parametrize("hook", ["pass", "layer.weight.grad.mul_(3.0)", "layer.weight.grad = layer.weight.grad.t().contiguous().t() * 2"])
def test_a_traced_step_has_the_gradient_norm_of_an_untraced_one(hook: str, tmp_path: Path) -> None:
    plain = run(source(tmp_path, hook, 0.0)).steps[0]
    traced = run(source(tmp_path, hook, 0.0), tracing=Tracing(frozenset([0]), lambda *_: None)).steps[0]
    assert plain.grad_norm == traced.grad_norm
    assert plain.weight_norm == traced.weight_norm


def test_an_optimizer_that_raises_leaves_no_mode_behind(tmp_path: Path) -> None:
    hook = "optimizer.param_groups[0]['betas'] = None"
    result = run(source(tmp_path, hook), tracing=Tracing(frozenset([0]), lambda *_: None))
    assert result.exception is not None
    assert result.exception.type == "TypeError"
    assert _get_current_dispatch_mode_stack() == []
