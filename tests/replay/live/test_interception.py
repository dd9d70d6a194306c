"""A run leaves torch and the process as they were, whatever happens inside."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import torch.utils.checkpoint
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_hooks
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from mpdoctor.replay.live.changes import NOTHING, Changes
from mpdoctor.replay.live.in_loop import LoopTrace
from mpdoctor.replay.live.interception import Interception
from mpdoctor.replay.live.process_state import BudgetSpent
from mpdoctor.replay.live.recipe import RecipeSource
from mpdoctor.replay.live.training_loop import Tracing, run

pytestmark = pytest.mark.torch

RECIPE = """
import torch
def build():
    model = torch.nn.Linear(3, 1)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)
def batches():
    return [torch.ones(2, 3) for _ in range(3)]
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(batch.cuda() if False else batch.to("cuda")).square().mean()
CONFIG = dict(scaler=True, clip=1.0)
"""

OWN_LOOP = """
import torch
def build():
    model = torch.nn.Linear(3, 1)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)
def batches():
    return [torch.ones(2, 3) for _ in range(3)]
def loss(model, batch):
    return model(batch).mean()
def step(model, optimizer, batch, scaler):
    torch.autocast("cpu", dtype=torch.bfloat16).__enter__()
    {what}
"""


def entry_points() -> dict[str, Any]:
    """Everything of torch that an interception may wrap."""
    autocast, scaler = torch.amp.autocast_mode.autocast, torch.amp.grad_scaler.GradScaler
    optimizer = torch.optim.Optimizer
    found = {f"autocast.{n}": autocast.__dict__[n] for n in ("__init__", "__enter__", "__exit__")}
    found |= {f"scaler.{n}": scaler.__dict__[n] for n in ("__init__", "scale", "unscale_", "step", "load_state_dict")}
    found |= {"clip": torch.nn.utils.clip_grad_norm_, "clip value": torch.nn.utils.clip_grad_value_}
    found |= {"clip module": torch.nn.utils.clip_grad.clip_grad_norm_, "backward": torch.autograd.backward}
    found |= {"zero_grad": optimizer.zero_grad, "module zero_grad": torch.nn.Module.zero_grad, "checkpoint": torch.utils.checkpoint.checkpoint}
    return found


def hooks() -> tuple[int, ...]:
    tables = (
        optimizer_hooks._global_optimizer_pre_hooks,
        optimizer_hooks._global_optimizer_post_hooks,
        module_hooks._global_forward_pre_hooks,
        module_hooks._global_forward_hooks,
    )
    return tuple(len(table) for table in tables)


def process() -> tuple[Any, ...]:
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state()[1].tolist(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
        len(_get_current_dispatch_mode_stack()),
        torch._C._len_torch_function_stack(),
        torch.is_grad_enabled(),
        hooks(),
    )


@pytest.fixture
def unchanged() -> Any:
    """Compares torch and the process before and after the test."""
    torch.manual_seed(5)
    before, state = entry_points(), process()
    yield
    assert entry_points() == before
    assert process() == state
    half = torch.ones(2, 2, dtype=torch.float16)
    assert (half @ half).dtype is torch.float16


def source(tmp_path: Path, text: str = RECIPE) -> RecipeSource:
    path = tmp_path / "recipe.py"
    path.write_text(text, encoding="utf-8")
    return RecipeSource(path)


EVERYTHING = Changes(
    lr_factor=0.5,
    compute_dtype=torch.float32,
    dynamic_scaling=True,
    clip_after_unscale=True,
    adam_eps=1e-6,
    master_weights=True,
    fresh_optimizer=True,
    math_attention=True,
    uncached_autocast=True,
    nonreentrant_checkpointing=True,
)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("changes", [NOTHING, EVERYTHING], ids=["nothing", "everything"])
def test_after_a_run(changes: Changes, tmp_path: Path) -> None:
    result = run(source(tmp_path), changes=changes)
    assert len(result.steps) == 3
    assert result.emulated_cuda_autocast


@pytest.mark.usefixtures("unchanged")
def test_after_a_traced_run(tmp_path: Path) -> None:
    tracers = []
    run(source(tmp_path), tracing=Tracing(frozenset([1]), lambda tracer, _session, step: tracers.append((tracer, step))))
    assert [step for _, step in tracers] == [1]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("traced", [False, True])
def test_after_a_step_that_raises(traced: bool, tmp_path: Path) -> None:
    text = OWN_LOOP.format(what="batch @ batch")
    tracing = Tracing(frozenset([0]), lambda *_: None) if traced else None
    result = run(source(tmp_path, text), tracing=tracing)
    assert result.exception is not None
    assert result.exception.type == "RuntimeError"


@pytest.mark.usefixtures("unchanged")
def test_after_ctrl_c(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(source(tmp_path, OWN_LOOP.format(what="raise KeyboardInterrupt")), tracing=Tracing(frozenset([0]), lambda *_: None))


@pytest.mark.usefixtures("unchanged")
def test_a_step_that_ends_the_process_is_a_step_that_raised(tmp_path: Path) -> None:
    result = run(source(tmp_path, OWN_LOOP.format(what="raise SystemExit(0)")))
    assert result.exception is not None
    assert result.exception.type == "SystemExit"


@pytest.mark.usefixtures("unchanged")
def test_after_a_step_that_hangs(tmp_path: Path) -> None:
    import time

    text = OWN_LOOP.format(what="import time\n    while True:\n        try:\n            time.sleep(60)\n        except Exception:\n            pass")
    result = run(source(tmp_path, text), deadline=time.monotonic() + 0.5)
    assert result.spent
    assert not result.steps


@pytest.mark.usefixtures("unchanged")
def test_after_a_deadline_that_is_over_already(tmp_path: Path) -> None:
    with pytest.raises(BudgetSpent):
        run(source(tmp_path), deadline=0.0)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("inside", [lambda: None, lambda: (_ for _ in ()).throw(ValueError("mine"))], ids=["fine", "raises"])
def test_after_a_trace_in_a_loop(inside: Callable[[], Any]) -> None:
    with torch.random.fork_rng():
        model = torch.nn.Linear(2, 1)
    with suppress(ValueError), LoopTrace(model, batch=None):
        inside()


def test_autocast_regions_and_scalers_of_user_code_are_seen_and_changed() -> None:
    with Interception(Changes(compute_dtype=torch.bfloat16, scale=8.0), map_cuda=True) as seen:
        scaler = torch.amp.GradScaler("cuda", init_scale=2.0**20)
        with torch.autocast("cuda", dtype=torch.float16):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype is torch.bfloat16
    assert seen.scalers == [scaler]
    assert scaler.get_scale() == 8.0
    assert seen.autocast.dtypes == ["float16"]


def test_the_older_spellings_of_cuda_amp_are_seen() -> None:
    with pytest.warns(FutureWarning), Interception(NOTHING, map_cuda=True) as seen:
        scaler = torch.cuda.amp.GradScaler()
        with torch.cuda.amp.autocast():
            product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype is torch.float16
    assert seen.scalers == [scaler]


def test_clipping_before_unscaling_is_noted_with_the_scale_that_was_left() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Interception(NOTHING, map_cuda=True) as seen:
        seen.watch.follow(model, optimizer)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        scaler.scale(model(torch.ones(3, 2)).mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    (call,) = seen.clip_calls
    assert (call.scale, call.limit) == (1024.0, 1.0)
    assert call.norm == pytest.approx(1024.0 * 3**0.5)
    assert str(call.source).startswith(__file__)
