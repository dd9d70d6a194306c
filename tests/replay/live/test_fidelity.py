"""CUDA's autocast on the CPU: by behaviour."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F

from mpdoctor.replay.live.changes import NOTHING, Changes
from mpdoctor.replay.live.fidelity import CUDA_FP32_OPS
from mpdoctor.replay.live.interception import Interception

pytestmark = pytest.mark.torch

X = torch.linspace(0.1, 0.9, 12, dtype=torch.float16).reshape(3, 4)
TARGET = torch.tensor([0, 1, 2])

FP32: dict[str, Callable[[], torch.Tensor]] = {
    "softmax": lambda: torch.softmax(X, -1),
    "functional softmax": lambda: F.softmax(X, dim=-1),
    "method softmax": lambda: X.softmax(-1),
    "log_softmax": lambda: F.log_softmax(X, -1),
    "layer_norm": lambda: F.layer_norm(X, (4,)),
    "group_norm": lambda: F.group_norm(X, 2),
    "exp": lambda: X.exp(),
    "expm1": lambda: torch.expm1(X),
    "log": lambda: torch.log(X),
    "log1p": lambda: X.log1p(),
    "log2": lambda: X.log2(),
    "pow": lambda: X.pow(2),
    "operator pow": lambda: X**2,
    "reversed pow": lambda: 2.0**X,
    "reversed division": lambda: 1.0 / X,
    "reciprocal": lambda: X.reciprocal(),
    "rsqrt": lambda: X.rsqrt(),
    "sum": lambda: X.sum(),
    "prod": lambda: X.prod(),
    "cumsum": lambda: X.cumsum(0),
    "norm": lambda: X.norm(),
    "cosine_similarity": lambda: F.cosine_similarity(X, X),
    "cross_entropy": lambda: F.cross_entropy(X, TARGET),
    "mse_loss": lambda: F.mse_loss(X, X * 2),
    "l1_loss": lambda: F.l1_loss(X, X * 2),
    "smooth_l1_loss": lambda: F.smooth_l1_loss(X, X * 2),
    "binary_cross_entropy_with_logits": lambda: F.binary_cross_entropy_with_logits(X, X),
    "kl_div": lambda: F.kl_div(X, X, reduction="batchmean"),
    "softplus": lambda: F.softplus(X),
    "tan": lambda: X.tan(),
    "acos": lambda: X.acos(),
    "asin": lambda: X.asin(),
    "cosh": lambda: X.cosh(),
    "sinh": lambda: X.sinh(),
    "erfinv": lambda: X.erfinv(),
    "cdist": lambda: torch.cdist(X, X),
}
W = torch.ones(4, 4)
LOW: dict[str, Callable[[], torch.Tensor]] = {
    "mm": lambda: W @ W,
    "linear": lambda: F.linear(W, W),
    "bmm": lambda: torch.bmm(W[None], W[None]),
    "conv1d": lambda: F.conv1d(W[None], W[:, :, None]),
    "mv": lambda: torch.mv(W, W[0]),
    "prelu": lambda: F.prelu(W, torch.ones(1)),
}
AS_GIVEN: dict[str, Callable[[], torch.Tensor]] = {
    "mean": lambda: X.mean(),
    "relu": lambda: X.relu(),
    "sqrt": lambda: X.sqrt(),
    "mul": lambda: X * X,
    "tanh": lambda: X.tanh(),
    "sigmoid": lambda: X.sigmoid(),
    "gelu": lambda: F.gelu(X),
    "max": lambda: X.max(),
    "mean of a square by hand": lambda: (X * X).mean(-1),
}


@pytest.fixture
def on_cpu() -> Iterator[Interception]:
    with Interception(NOTHING, map_cuda=True) as seen:
        yield seen


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("name", FP32)
def test_runs_in_fp32(name: str) -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        assert FP32[name]().dtype is torch.float32


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("name", LOW)
def test_runs_in_16_bits(name: str) -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        assert LOW[name]().dtype is torch.float16


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("name", AS_GIVEN)
def test_keeps_the_dtype_of_its_input(name: str) -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        assert AS_GIVEN[name]().dtype is torch.float16


@pytest.mark.usefixtures("on_cpu")
def test_a_dtype_that_the_code_names_itself_is_kept() -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        assert X.softmax(-1, dtype=torch.float16).dtype is torch.float16
        assert X.sum(dtype=torch.float64).dtype is torch.float64


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("name", ["softmax", "exp", "pow", "sum", "norm"])
def test_code_that_says_cpu_is_left_alone(name: str) -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        inside = FP32[name]().dtype
    with Interception(NOTHING, map_cuda=False), torch.autocast("cpu", dtype=torch.float16):
        assert FP32[name]().dtype is inside


@pytest.mark.usefixtures("on_cpu")
def test_a_region_that_is_switched_off_inside_another_casts_nothing() -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        with torch.autocast("cuda", enabled=False):
            assert X.exp().dtype is torch.float16
            assert (W @ W).dtype is torch.float32
        assert X.exp().dtype is torch.float32


@pytest.mark.usefixtures("on_cpu")
def test_outside_of_autocast_nothing_is_cast() -> None:
    assert X.exp().dtype is torch.float16
    with torch.autocast("cuda", dtype=torch.float16):
        pass
    assert X.softmax(-1).dtype is torch.float16


@pytest.mark.usefixtures("on_cpu")
def test_cuda_means_the_cpu() -> None:
    assert torch.ones(2, device="cuda").device.type == "cpu"
    assert torch.ones(2).cuda().device.type == "cpu"
    assert torch.ones(2).to("cuda:0").device.type == "cpu"
    assert torch.ones(2).to(torch.device("cuda", 1), torch.float16).dtype is torch.float16
    assert torch.nn.Linear(2, 2).to("cuda").weight.device.type == "cpu"
    assert torch.nn.Linear(2, 2).cuda().weight.device.type == "cpu"


@pytest.mark.usefixtures("on_cpu")
def test_the_default_dtype_of_cuda_autocast_is_fp16() -> None:
    with torch.autocast("cuda"):
        assert (W @ W).dtype is torch.float16
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        assert (W @ W).dtype is torch.bfloat16


def test_every_listed_function_exists() -> None:
    owners = (torch, torch.Tensor, F)
    assert [name for name in sorted(CUDA_FP32_OPS) if not any(hasattr(owner, name) for owner in owners)] == []


@pytest.mark.parametrize("wanted", [torch.float32, torch.bfloat16])
def test_another_dtype_stands_wherever_16_bits_are_asked_for(wanted: torch.dtype) -> None:
    with Interception(Changes(compute_dtype=wanted), map_cuda=True):
        assert torch.ones(2).half().dtype is wanted
        assert torch.ones(2).to(torch.float16).dtype is wanted
        assert torch.ones(2, dtype=torch.float16).dtype is wanted
        with torch.autocast("cuda", dtype=torch.float16):
            assert (W @ W).dtype is wanted
        assert math.isfinite(float(torch.full((1,), 1e5, dtype=torch.float16)))


@pytest.mark.usefixtures("on_cpu")
def test_what_cuda_autocast_refuses_is_refused() -> None:
    probability, target = torch.full((3,), 0.5), torch.ones(3)
    with torch.autocast("cuda"):
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(probability, target)
        with torch.autocast("cuda", enabled=False):
            assert F.binary_cross_entropy(probability, target).isfinite()
    with torch.autocast("cpu"):
        assert F.binary_cross_entropy(probability, target).isfinite()
