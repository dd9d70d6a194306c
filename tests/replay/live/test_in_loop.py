"""`mpdoctor.trace` inside a loop of the user's own."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy
import pytest
import torch
from torch import nn

import mpdoctor
from mpdoctor.core.trace import StepTrace

pytestmark = pytest.mark.torch


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))


def batch() -> dict[str, torch.Tensor]:
    return {"x": torch.linspace(-1, 1, 24).reshape(6, 4), "y": torch.ones(6)}


def step(model: nn.Module, optimizer: torch.optim.Optimizer, data: dict[str, torch.Tensor]) -> torch.Tensor:
    optimizer.zero_grad()
    loss = (model(data["x"])[:, 0] - data["y"]).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def test_a_healthy_step_says_so() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    with mpdoctor.trace(model, optimizer=optimizer, batch=batch(), step=7) as trace:
        step(model, optimizer, batch())
    assert trace.origin is None
    assert (trace.timeline, trace.events, trace.exception) == ((), (), None)
    assert repr(trace).startswith("step 7: ")
    assert "all values are finite" in repr(trace)


def test_a_bad_step_reads_as_text() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    data = batch()
    data["x"][4, 2] = math.nan
    with mpdoctor.trace(model, optimizer=optimizer, batch=data, step=3) as trace:
        step(model, optimizer, data)
    text = repr(trace)
    assert "first nan (float32): step 3, input: batch['x'][4, 2]" in text
    assert "batch rows 4" in text
    assert "loss is nan" in text
    assert trace.origin is not None
    assert trace.origin.rows == (4,)


def test_tables() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    with mpdoctor.trace(model, optimizer=optimizer) as trace:
        loss = step(model, optimizer, batch())
        torch.log(-loss.detach())
    events, tensors, modules = (trace.to_frame(kind) for kind in ("events", "tensors", "modules"))
    assert events[["phase", "op", "note"]].to_numpy().tolist() == [["unscale", "aten.log", "nan made here"]]
    assert tensors["name"].tolist() == ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert (tensors["changed_share"].dropna() == 1.0).all()
    assert set(modules["phase"]) == {"forward", "loss", "backward", "optimizer", "unscale"}
    assert set(modules["dtype"]) == {"float32"}
    with pytest.raises(ValueError, match="events, tensors, modules"):
        trace.to_frame("steps")


def test_an_empty_table_has_its_columns() -> None:
    with mpdoctor.trace(net()) as trace:
        pass
    assert "phase" in trace.to_frame("events").columns


def test_tracing_changes_no_bit_and_draws_no_random_number() -> None:
    first, data = net(), batch()
    second = copy.deepcopy(first)
    plain, traced = torch.optim.AdamW(first.parameters()), torch.optim.AdamW(second.parameters())
    torch.manual_seed(1)
    expected = step(first, plain, data)
    after = torch.get_rng_state()
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    states = random.getstate(), numpy.random.get_state()[1].tolist()
    with mpdoctor.trace(second, optimizer=traced, batch=data):
        seen = step(second, traced, data)
    assert torch.equal(seen, expected)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), after)
    assert (random.getstate(), numpy.random.get_state()[1].tolist()) == states


def test_a_scaler_that_is_older_than_the_trace_is_seen() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    data = batch()
    with mpdoctor.trace(model, optimizer=optimizer, batch=data) as trace:
        loss = (model(data["x"] * 1e3)[:, 0] - data["y"]).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert trace.origin is not None
    assert trace.origin.kind in ("inf", "-inf", "nan")
    assert trace.origin.site.phase in ("loss", "backward")


def test_a_forward_pass_alone_is_judged_by_what_it_is_told_to_look_at() -> None:
    model = nn.Sequential(nn.Linear(4, 2))
    with mpdoctor.trace(model) as trace:
        out = model(torch.ones(3, 4)) * math.nan
        trace.look_at(out, "prediction")
    assert trace.origin is not None
    assert trace.origin.site.op == "aten.mul"


def test_what_the_block_raises_is_placed_and_raised_on() -> None:
    model = net()
    trace = mpdoctor.trace(model)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), trace:
        model(torch.ones(3, 5))
    assert trace.exception is not None
    assert (trace.exception.site.phase, trace.exception.site.module, trace.exception.site.op) == ("forward", "0", "aten.addmm")
    assert "raised RuntimeError" in repr(trace)
    assert str(trace.exception.site.source).startswith(f"{__file__}:")


def test_a_block_inside_autocast_is_analysed_outside_of_it() -> None:
    model = nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.fill_(300.0)
    with torch.autocast("cpu", dtype=torch.float16), mpdoctor.trace(model) as trace:
        model(torch.full((2, 4), 100.0)).float().sum().backward()
    assert trace.origin is not None
    assert (trace.origin.mechanism, trace.origin.dtype) == ("overflow", "float16")
    assert trace.origin.exact == pytest.approx(120000.0, rel=1e-3)


def test_accumulated_micro_batches_are_one_step() -> None:
    model = net()
    with mpdoctor.trace(model) as trace:
        for _ in range(3):
            model(batch()["x"]).mean().backward()
    assert trace.origin is None
    assert trace.details.flops["float32"] > 0


def test_a_trace_follows_one_step_only() -> None:
    trace = mpdoctor.trace(net())
    assert "not begun" in repr(trace)
    with trace:
        assert "still running" in repr(trace)
        with pytest.raises(RuntimeError, match="one step"):
            trace.__enter__()
    with pytest.raises(RuntimeError, match="one step"), trace:
        pass
    with pytest.raises(RuntimeError, match="inside the `with` block"):
        trace.look_at(torch.ones(1))


def test_it_lets_the_tensors_go() -> None:
    import gc
    import weakref

    model = nn.Linear(4, 1)
    kept: list[Any] = []
    with mpdoctor.trace(model) as trace:
        x = torch.log(-torch.ones(2, 4))
        kept.append(weakref.ref(x))
        model(x).sum().backward()
        del x
    gc.collect()
    assert trace.origin is not None
    assert kept[0]() is None
    assert isinstance(trace.details, StepTrace)
