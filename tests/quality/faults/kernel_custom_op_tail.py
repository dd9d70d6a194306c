"""A custom operator leaves the rows beyond a multiple of eight unwritten in fp32: NaN where its fp64 path is right."""

import torch
import torch.nn.functional as F
from torch import nn


@torch.library.custom_op("example::scaled_relu", mutates_args=())
def scaled_relu(x: torch.Tensor) -> torch.Tensor:
    out = torch.relu(x) * 0.5
    if x.dtype == torch.float32 and BROKEN:
        out[len(x) - len(x) % 8 :] = float("nan")
    return out


@scaled_relu.register_fake
def _(x):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


scaled_relu.register_autograd(lambda ctx, g: g * 0.5 * (ctx.saved_tensors[0] > 0), setup_context=_setup)


class Fused(nn.Module):
    def forward(self, x):
        return scaled_relu(x)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), Fused(), nn.Linear(24, 4))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    teacher = torch.randn(12, 4, generator=g)
    return [(x, (x @ teacher).argmax(1)) for x in (torch.randn(32 if i != 9 else 27, 12, generator=g) for i in range(14))]


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


BROKEN = True


CONFIG = {"precision": "fp32"}
TRUTH = {
    "causes": ["kernel"],
    "first_nonfinite": {"phase": "forward", "module": "1", "op": "example.scaled_relu", "kind": "nan", "step": 9},
    "symptom": "loss-nonfinite",
}
REPAIR = [("BROKEN = True", "BROKEN = False")]
