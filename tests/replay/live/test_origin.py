"""Where the first bad value of a step was made: phase, module, op, line of the user's code."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import mpdoctor
from mpdoctor.core.report import NonFinite
from mpdoctor.replay.live.in_loop import LoopTrace

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def traced(step: Callable[[], Any], model: nn.Module, optimizer: torch.optim.Optimizer | None = None, batch: Any = None) -> LoopTrace:
    with mpdoctor.trace(model, optimizer=optimizer, batch=batch) as trace:
        step()
    return trace


def origin_of(step: Callable[[], Any], model: nn.Module, optimizer: torch.optim.Optimizer | None = None, batch: Any = None) -> NonFinite:
    origin = traced(step, model, optimizer, batch).origin
    assert origin is not None
    return origin


def place(origin: NonFinite) -> tuple[str, str, str | None]:
    return origin.site.phase.value, origin.site.module, origin.site.op


def marked(function: Any) -> int:
    """Number of the line of a function that ends in `# here`."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if line.rstrip().endswith("# here"))


def line(origin: NonFinite) -> int | None:
    assert origin.site.source is not None
    assert origin.site.source.file == __file__
    return origin.site.source.line


class Log(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(x)  # here


class Inverse(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(x * 0.0).sum(-1)  # here


ONES = torch.ones(4, 3)
"""Never modified."""


def test_forward_inside_a_module() -> None:
    model = nn.Sequential(nn.Identity(), Log())
    origin = origin_of(lambda: model(-ONES.clone().requires_grad_()).sum().backward(), model)
    assert place(origin) == ("forward", "1", "aten.log")
    assert line(origin) == marked(Log.forward)
    assert (origin.kind, origin.dtype, origin.harmful, origin.mechanism) == ("nan", "float32", True, "undefined")


def test_functional_code_in_the_root_module() -> None:
    class Root(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x) / (x - x)  # here

    model = Root()
    origin = origin_of(lambda: model(ONES.clone().requires_grad_()).sum().backward(), model)
    assert place(origin) == ("forward", "", "aten.div")
    assert line(origin) == marked(Root)


def test_loss_code_outside_any_module() -> None:
    model = nn.Linear(3, 1)

    def step() -> None:
        out = model(ONES)
        loss = torch.log(out - 100.0).mean()  # here
        loss.backward()

    origin = origin_of(step, model)
    assert place(origin) == ("loss", "", "aten.log")
    assert line(origin) == marked(step)


def test_a_loss_module_that_the_model_does_not_contain_is_loss_code() -> None:
    model, criterion = nn.Linear(3, 1), Log()
    origin = origin_of(lambda: criterion(model(ONES) - 100.0).mean().backward(), model)
    assert place(origin) == ("loss", "", "aten.log")


def test_backward_names_the_module_and_line_of_the_forward_op() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), Inverse())
    with torch.no_grad():
        model[0].bias.fill_(-50.0)
    origin = origin_of(lambda: model(ONES).sum().backward(), model)
    assert place(origin) == ("backward", "2", "SqrtBackward0")
    assert line(origin) == marked(Inverse)


def test_a_value_that_where_hides_from_the_loss_and_not_from_the_gradient() -> None:
    model = nn.Linear(3, 1)

    def step() -> None:
        x = model(ONES) - 100.0
        loss = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x)).sum()  # here
        loss.backward()

    trace = traced(step, model)
    assert trace.origin is not None
    assert trace.origin.site.op == "aten.sqrt"
    assert trace.origin.hurts_at is not None
    assert trace.origin.hurts_at.phase == "backward"


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(context: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = context.saved_tensors
        return grad / (x - x)  # here


def test_custom_autograd_function_names_its_own_backward_line() -> None:
    class Custom(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Bad.apply(x)

    model = nn.Sequential(nn.Linear(3, 2), Custom())
    origin = origin_of(lambda: model(ONES).sum().backward(), model)
    assert place(origin) == ("backward", "1", "BadBackward")
    assert line(origin) == marked(Bad)


def test_in_place_ops() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x * 1.0
            x.sub_(1.0)
            x.div_(0.0)  # here
            return x

    model = nn.Sequential(InPlace())
    origin = origin_of(lambda: model(ONES.clone().requires_grad_()).sum().backward(), model)
    assert place(origin) == ("forward", "0", "aten.div_")
    assert line(origin) == marked(InPlace)
    assert origin.kind == "nan"


def test_a_write_through_a_view_is_found_from_its_base() -> None:
    class View(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            whole = x * 2.0
            part = whole.view(-1)[3:6]
            part.neg_()
            part.log_()  # here
            return whole

    model = nn.Sequential(View())
    origin = origin_of(lambda: model(ONES.clone().requires_grad_()).sum().backward(), model)
    assert place(origin) == ("forward", "0", "aten.log_")
    assert line(origin) == marked(View)


@pytest.mark.parametrize("reentrant", [True, False])
def test_forward_of_a_checkpointed_region(reentrant: bool) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Log()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.inner, -x.exp(), use_reentrant=reentrant)

    model = nn.Sequential(nn.Linear(3, 3), Block())
    origin = origin_of(lambda: model(ONES).sum().backward(), model)
    assert place(origin) == ("forward", "1.inner", "aten.log")
    assert line(origin) == marked(Log.forward)


@pytest.mark.parametrize("reentrant", [True, False])
def test_backward_of_a_checkpointed_region(reentrant: bool) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inverse()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.inner, x - 100.0, use_reentrant=reentrant)

    model = nn.Sequential(nn.Linear(3, 3), Block())
    origin = origin_of(lambda: model(ONES).sum().backward(), model)
    assert place(origin) == ("backward", "1.inner", "SqrtBackward0")
    assert line(origin) == marked(Inverse)


@pytest.mark.parametrize("kind", [{"foreach": True}, {"foreach": False}, {"fused": True}])
def test_an_update_that_divides_by_zero_names_optimizer_and_parameter(kind: dict[str, bool]) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    optimizer = torch.optim.AdamW(model.parameters(), eps=0.0, **kind)

    def step() -> None:
        loss = model[1](torch.zeros(4, 2)).sum() + 0.0 * model[0](ONES).sum()
        loss.backward()
        optimizer.step()

    origin = origin_of(step, model, optimizer)
    assert origin.site.phase == "optimizer"
    assert origin.site.op == "AdamW.step"
    assert origin.site.module in ("0.weight", "0.bias", "1.weight")
    assert origin.kind == "nan"


def test_unscaling_by_a_scale_of_zero() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)

    def step() -> None:
        loss = model(ONES).sum()
        scaler.scale(loss)
        scaler._scale.fill_(0.0)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)

    origin = origin_of(step, model, optimizer)
    assert place(origin) == ("unscale", "0.weight", "GradScaler.unscale_")


def test_batch_norm_statistics() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3))
    x = torch.randn(4, 3) * 1e30
    trace = traced(lambda: model(x).mul(0.0).sum(), model)
    assert trace.origin is not None
    assert (trace.origin.site.phase, trace.origin.site.module) == ("forward", "0")
    assert "batch_norm" in str(trace.origin.site.op)
    assert "0.running_var" in [entry.site.module for entry in trace.timeline]


def test_a_bad_embedding_row_names_parameter_and_index() -> None:
    model = nn.Sequential(nn.Embedding(8, 3), nn.Linear(3, 1))
    with torch.no_grad():
        model[0].weight[5, 1] = math.nan
    ids = torch.tensor([[1, 5], [2, 3]])
    origin = origin_of(lambda: model(ids).sum().backward(), model, batch=ids)
    assert (origin.site.phase, origin.site.module, origin.site.tensor) == ("parameter", "0.weight", "0.weight[5, 1]")
    assert origin.mechanism == "arrived"


def test_a_bad_value_of_the_batch_names_field_and_row() -> None:
    model = nn.Linear(3, 1)
    batch = {"x": torch.ones(4, 3), "y": torch.ones(4)}
    batch["x"][2, 0] = math.nan
    origin = origin_of(lambda: (model(batch["x"])[:, 0] - batch["y"]).square().mean().backward(), model, batch=batch)
    assert (origin.site.phase, origin.site.tensor, origin.rows) == ("input", "batch['x'][2, 0]", (2,))


def test_tied_weights_have_one_name() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(6, 4)
            self.head = nn.Linear(4, 6, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(ids))

    model = Tied()
    with torch.no_grad():
        model.embed.weight[2, 0] = math.inf
    origin = origin_of(lambda: model(torch.tensor([0, 1])).logsumexp(-1).sum().backward(), model)
    assert (origin.site.phase, origin.site.module, origin.kind) == ("parameter", "embed.weight", "inf")


def test_a_module_used_twice_keeps_its_name() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log = Log()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.log(self.log(x))

    model = nn.Sequential(Twice())
    origin = origin_of(lambda: model(ONES.clone().requires_grad_()).sum().backward(), model)
    assert place(origin) == ("forward", "0.log", "aten.log")
    assert origin.kind == "-inf"


def test_a_module_made_on_the_fly_belongs_to_the_module_that_made_it() -> None:
    class Outer(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Log()(x)

    model = nn.Sequential(Outer())
    origin = origin_of(lambda: model(-ONES.clone().requires_grad_()).sum().backward(), model)
    assert place(origin) == ("forward", "0", "aten.log")


def test_data_parallel_style_wrapper() -> None:
    model = nn.DataParallel(nn.Sequential(nn.Linear(3, 3), nn.Softplus(), Log()))
    origin = origin_of(lambda: model(ONES - 1e6).sum().backward(), model)
    assert origin.site.module == "module.2"
    assert line(origin) == marked(Log.forward)


def test_compiled_model_runs_eagerly_under_its_own_names() -> None:
    inner = nn.Sequential(nn.Linear(3, 3), Log())
    model = torch.compile(inner, backend="inductor")
    origin = origin_of(lambda: model(ONES - 1e6).sum().backward(), model)
    assert place(origin) == ("forward", "1", "aten.log")


def test_overflow_tells_the_exact_value() -> None:
    model = nn.Sequential(nn.Linear(4, 1, bias=False)).half()
    with torch.no_grad():
        model[0].weight.fill_(200.0)
    x = torch.full((3, 4), 10.0, dtype=torch.float16)
    x[1] = 100.0
    origin = origin_of(lambda: model(x).float().mean().backward(), model, batch=x)
    assert (origin.site.phase, origin.site.module, origin.kind, origin.dtype) == ("forward", "0", "inf", "float16")
    assert origin.mechanism == "overflow"
    assert origin.exact == 80000.0
    assert "80000" in origin.why
    assert "65504" in origin.why
    assert origin.rows == (1,)


def test_a_cast_of_a_finite_value_is_an_overflow() -> None:
    model = nn.Linear(3, 1)
    origin = origin_of(lambda: (model(ONES) * 0 + 1e6).half().float().mean().backward(), model)
    assert (origin.mechanism, origin.exact, origin.dtype) == ("overflow", 1e6, "float16")


def test_a_fully_masked_row_is_told_from_a_mask() -> None:
    model = nn.Linear(3, 3)
    mask = torch.zeros(4, 3, dtype=torch.bool)
    mask[:, 0] = True
    mask[2] = True
    origin = origin_of(lambda: model(ONES).masked_fill(mask, -math.inf).softmax(-1).sum().backward(), model)
    assert origin.mechanism == "masked-row"
    assert "softmax" in str(origin.site.op)


def test_a_mean_of_nothing() -> None:
    model = nn.Linear(3, 1)
    origin = origin_of(lambda: model(ONES)[ONES[:, 0] > 5].mean().backward(), model)
    assert origin.mechanism == "empty-reduction"


def test_a_raise_inside_a_module_names_module_op_and_line() -> None:
    class Raises(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ torch.ones(7, 2)  # here

    model = nn.Sequential(nn.Linear(3, 3), Raises())
    trace = mpdoctor.trace(model)
    with pytest.raises(RuntimeError, match="mat1 and mat2"), trace:
        model(ONES)
    assert trace.exception is not None
    site = trace.exception.site
    assert (site.phase, site.module, site.op) == ("forward", "1", "aten.mm")
    assert site.source is not None
    assert site.source.line == marked(Raises)


# -- values that are not finite, and do no harm


def deliberate_mask(model: nn.Module) -> torch.Tensor:
    mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    return model(torch.ones(3, 3)).masked_fill(mask, -math.inf).softmax(-1).square().mean()


def mask_made_of_a_buffer(model: nn.Module) -> torch.Tensor:
    return (model(torch.ones(3, 3)) + torch.full((3, 3), -math.inf).triu(1)).softmax(-1).square().mean()


def metric(model: nn.Module) -> torch.Tensor:
    out = model(ONES)
    with torch.no_grad():
        torch.exp(out.double() * 1e9 + 1e9).mean()
    return out.square().mean()


def branch_not_taken(model: nn.Module) -> torch.Tensor:
    out = model(ONES)
    safe = torch.where(out > 0, out, torch.ones_like(out))
    return torch.where(out > 0, safe.log(), torch.zeros_like(out)).mean() + torch.log(-ONES).detach().nan_to_num(0.0).mean()


def running_extreme(model: nn.Module) -> torch.Tensor:
    best = torch.full((1,), math.inf)
    return model(ONES).square().mean() + torch.minimum(best, torch.ones(1)).sum() * 0.0


@pytest.mark.parametrize("loss", [deliberate_mask, mask_made_of_a_buffer, metric, branch_not_taken, running_extreme])
def test_harmless_values_are_no_origin(loss: Callable[[nn.Module], torch.Tensor]) -> None:
    model = nn.Linear(3, 3)
    trace = traced(lambda: loss(model).backward(), model)
    assert trace.origin is None
    assert trace.events
    assert all("harmless" in entry.note for entry in trace.timeline)


def test_an_empty_tensor_is_finite() -> None:
    model = nn.Linear(3, 3)
    trace = traced(lambda: (model(ONES).sum() + torch.ones(0).sum()).backward(), model)
    assert trace.origin is None
    assert not trace.events


def test_sparse_gradients_are_read() -> None:
    model = nn.Embedding(8, 3, sparse=True)
    origin = origin_of(lambda: (model(torch.tensor([1, 2])) * 1e38 * 1e38).sum().backward(), model)
    assert origin.kind in ("inf", "-inf", "nan")
    assert origin.site.phase == "loss"


def test_complex_values_are_read() -> None:
    model = nn.Linear(3, 1)
    origin = origin_of(lambda: (torch.fft.fft(model(ONES)[:, 0] * 1e38 * 1e38).abs()).sum().backward(), model)
    assert origin.site.phase == "loss"
