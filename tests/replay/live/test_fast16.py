"""16-bit products by fp32 kernels: as exact as the native ones, and gone afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from mpdoctor.replay.live.fast16 import available, fast_16_bit_kernels

pytestmark = [pytest.mark.torch, pytest.mark.skipif(not available(), reason="this torch cannot override kernels")]

Maker = Callable[[torch.dtype], tuple[torch.Tensor, ...]]


def draw(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float32).to(dtype).requires_grad_()


OPS: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((5, 16), (16, 7))),
    "addmm": (torch.addmm, ((7,), (5, 16), (16, 7))),
    "bmm": (torch.bmm, ((2, 5, 16), (2, 16, 7))),
    "baddbmm": (torch.baddbmm, ((2, 5, 7), (2, 5, 16), (2, 16, 7))),
    "linear": (F.linear, ((3, 4, 16), (7, 16), (7,))),
    "conv1d": (F.conv1d, ((2, 4, 9), (3, 4, 3), (3,))),
    "conv2d": (F.conv2d, ((2, 4, 6, 6), (3, 4, 3, 3))),
    "attention": (F.scaled_dot_product_attention, ((2, 2, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8))),
}


def ulp(value: torch.Tensor) -> torch.Tensor:
    """Distance of neighbouring numbers of the value's dtype at its size, in fp64; of the largest entry, for sums that cancel."""
    info = torch.finfo(value.dtype)
    exponent = torch.floor(torch.log2(value.double().abs().max().clamp_min(info.tiny)))
    return info.eps * 2.0**exponent


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
@pytest.mark.parametrize("name", OPS)
def test_within_one_ulp_of_the_native_kernel(name: str, dtype: torch.dtype) -> None:
    op, shapes = OPS[name]
    torch.manual_seed(0)
    inputs = tuple(draw(dtype, *shape) for shape in shapes)
    native = op(*inputs)
    expected = torch.autograd.grad(native.float().square().sum(), inputs)
    with fast_16_bit_kernels():
        fast = op(*inputs)
        gradients = torch.autograd.grad(fast.float().square().sum(), inputs)
    assert fast.dtype is dtype
    assert fast.shape == native.shape
    assert ((fast.double() - native.double()).abs() <= ulp(native)).all()
    for gradient, wanted in zip(gradients, expected, strict=True):
        assert gradient.dtype is dtype
        # A gradient starts from results that differ by one ulp already.
        assert ((gradient.double() - wanted.double()).abs() <= 8 * ulp(wanted)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
def test_rounds_the_exact_sum_once(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    a, b = draw(dtype, 8, 512).detach(), draw(dtype, 512, 8).detach()
    exact = a.double() @ b.double()
    with fast_16_bit_kernels():
        fast = a @ b
    assert ((fast.double() - exact).abs() <= 0.51 * ulp(fast)).all()


def test_overflow_stays_overflow() -> None:
    a = torch.full((2, 4), 300.0, dtype=torch.float16)
    with fast_16_bit_kernels():
        assert torch.isposinf(a @ a.T).all()


def test_wider_dtypes_are_untouched() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(4, 5), torch.randn(5, 3)
    expected = a @ b
    with fast_16_bit_kernels():
        assert torch.equal(a @ b, expected)
        assert (a.double() @ b.double()).dtype is torch.float64


def test_the_native_kernels_are_back_afterwards() -> None:
    torch.manual_seed(0)
    a, b = draw(torch.float16, 5, 64), draw(torch.float16, 64, 7)
    before = a @ b
    with pytest.raises(ValueError, match="mine"), fast_16_bit_kernels():
        raise ValueError("mine")
    assert torch.equal(a @ b, before)


@pytest.mark.parametrize(
    "product",
    [
        lambda half, full: half @ full,
        lambda half, full: F.linear(full, half),
        lambda half, full: F.conv1d(full[None], half[None]),
    ],
    ids=["mm", "linear", "conv1d"],
)
def test_what_the_native_kernel_refuses_is_refused(product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    half, full = torch.ones(4, 4, dtype=torch.float16), torch.ones(4, 4)
    with pytest.raises(RuntimeError, match=r"dtype|should be the same|expected scalar type") as native:
        product(half, full)
    with fast_16_bit_kernels(), pytest.raises(RuntimeError) as fast:
        product(half, full)
    assert str(fast.value) == str(native.value)
