"""Between the run's code and torch: CUDA on a machine without it, the dtype that an experiment puts in another's place, looks at single numbers.

CPU autocast leaves softmax, layer_norm, exp, log, pow, sum and norm in 16 bits; CUDA runs them in fp32. When code asks for
`autocast("cuda")` and there is no GPU, it is mapped to the CPU and CUDA's op lists are applied (torch documentation,
"Automatic Mixed Precision package", Autocast Op Reference). Code that itself says `autocast("cpu")` is left as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from mpdoctor.replay.live.finiteness import is_finite, own_look

_LOW = (torch.float16, torch.bfloat16)

CUDA_FP32_OPS = frozenset(
    [
        "acos",
        "asin",
        "binary_cross_entropy_with_logits",
        "cosh",
        "cosine_embedding_loss",
        "cdist",
        "cosine_similarity",
        "cross_entropy",
        "cumprod",
        "cumsum",
        "dist",
        "erfinv",
        "exp",
        "expm1",
        "group_norm",
        "hinge_embedding_loss",
        "kl_div",
        "l1_loss",
        "layer_norm",
        "log",
        "log10",
        "log_softmax",
        "log1p",
        "log2",
        "logsumexp",
        "margin_ranking_loss",
        "mse_loss",
        "multilabel_margin_loss",
        "multi_margin_loss",
        "nll_loss",
        "norm",
        "normalize",
        "pdist",
        "poisson_nll_loss",
        "pow",
        "prod",
        "reciprocal",
        "rsqrt",
        "sinh",
        "smooth_l1_loss",
        "soft_margin_loss",
        "softmax",
        "softmin",
        "softplus",
        "sum",
        "renorm",
        "tan",
        "triplet_margin_loss",
        "huber_loss",
        "gaussian_nll_loss",
        "__pow__",
        "__rpow__",
        "__rdiv__",
        "__rtruediv__",
    ]
)
"""Functions that CUDA autocast runs in fp32."""

CUDA_LOW_OPS = frozenset(["prelu", "addmv", "addr", "mv"])
"""Functions that CUDA autocast runs in 16 bits and CPU autocast leaves alone."""


_NUMBER_LOOKS = frozenset(["item", "__float__", "__bool__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
_LOOKS = frozenset(["isnan", "isfinite", "isinf"])
"""How code looks at its loss before it decides to go on; the first only tell of single numbers."""

CUDA_REFUSED_OPS = frozenset(["binary_cross_entropy"])
"""Functions that CUDA autocast refuses: their derivative leaves fp16's range."""


class Fidelity(TorchFunctionMode):
    """Maps CUDA to the CPU where there is no GPU, applies CUDA's autocast lists, and substitutes dtypes.

    Args:
        map_cuda: `device="cuda"`, `.cuda()` and `.to("cuda")` mean the CPU.
        compute_dtype: stands wherever one of `replaced` is asked for; None leaves dtypes alone.
        replaced: the dtypes that it stands for.
    """

    def __init__(self, *, map_cuda: bool, compute_dtype: torch.dtype | None, replaced: tuple[torch.dtype, ...] = _LOW) -> None:
        super().__init__()
        self.map_cuda = map_cuda
        self.replaced = replaced
        self._casts = ("half", "bfloat16", "float") if torch.float32 in replaced else ("half", "bfloat16")
        self.compute_dtype = compute_dtype
        self.cuda_regions = 0
        """How many open autocast regions stand for CUDA's."""
        self.looking = False
        """Whether looks count: while the step's own code runs, until its first backward pass."""
        self.bad_look: torch.Tensor | None = None
        """The last value that the code looked at and that was not finite."""
        self.looked_on = False
        """Whether it looked at a finite one since."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":  # a tensor's attribute: half of all calls
            return func(*args)
        kwargs = kwargs or {}
        if self.map_cuda:
            if name == "cuda" and args and isinstance(args[0], torch.Tensor):
                return args[0]
            if any(map(_is_cuda, args)):
                args = tuple(_on_cpu(v) for v in args)
            if kwargs and any(map(_is_cuda, kwargs.values())):
                kwargs = {k: _on_cpu(v) for k, v in kwargs.items()}
        if self.compute_dtype is not None:
            if name in self._casts and args and isinstance(args[0], torch.Tensor):
                return args[0].to(self.compute_dtype)
            args, kwargs = tuple(self._substituted(v) for v in args), {k: self._substituted(v) for k, v in kwargs.items()}
        if self.cuda_regions and torch.is_autocast_enabled("cpu"):
            if name in CUDA_REFUSED_OPS:
                raise RuntimeError(f"{name} is unsafe to autocast; use {name}_with_logits on values before the sigmoid (CUDA's autocast refuses it)")
            if name in CUDA_FP32_OPS and kwargs.get("dtype") is None:
                args, kwargs = _cast(args, _LOW, torch.float32), _cast(kwargs, _LOW, torch.float32)
            elif name in CUDA_LOW_OPS:
                low = torch.get_autocast_dtype("cpu")
                args, kwargs = _cast(args, (torch.float32,), low), _cast(kwargs, (torch.float32,), low)
        if self.looking and (name in _NUMBER_LOOKS or name in _LOOKS) and args and isinstance(args[0], torch.Tensor):
            self._look(args[0], number=name in _NUMBER_LOOKS)
        return func(*args, **kwargs)

    @own_look
    def _look(self, tensor: torch.Tensor, *, number: bool) -> None:
        if tensor.is_floating_point() and (tensor.numel() == 1 or not number):
            self.looked_on = is_finite(tensor)
            self.bad_look = self.bad_look if self.looked_on else tensor

    def _substituted(self, value: Any) -> Any:
        return self.compute_dtype if isinstance(value, torch.dtype) and value in self.replaced else value


def _is_cuda(value: Any) -> bool:
    # No function of torch takes a device or a dtype inside a list, so looking at the arguments themselves is enough.
    if isinstance(value, str):
        return value == "cuda" or value.startswith("cuda:")
    return isinstance(value, torch.device) and value.type == "cuda"


def _on_cpu(value: Any) -> Any:
    if not _is_cuda(value):
        return value
    return "cpu" if isinstance(value, str) else torch.device("cpu")


def _cast(value: Any, wanted: tuple[torch.dtype, ...], to: torch.dtype) -> Any:
    return tree_map(lambda v: v.to(to) if isinstance(v, torch.Tensor) and v.dtype in wanted else v, value)


__all__ = ["CUDA_FP32_OPS", "CUDA_LOW_OPS", "CUDA_REFUSED_OPS", "Fidelity"]
