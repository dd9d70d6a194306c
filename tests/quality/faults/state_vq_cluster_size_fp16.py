"""The moving averages of a VQ codebook are kept in fp16: the count of an unused code underflows to 0 and sum / count is 0/0."""

import torch
import torch.nn.functional as F
from torch import nn


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(8, dtype=KEEP))
        self.register_buffer("total", torch.randn(8, 4).to(KEEP))
        self.register_buffer("codes", self.total.float().clone())

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(-1)
        code = self.codes[index].clone()
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(index, 8).float()
                self.count.mul_(0.3).add_(0.7 * hot.sum(0).to(KEEP))
                self.total.mul_(0.3).add_(0.7 * (hot.T @ z).to(KEEP))
                self.codes.copy_(self.total.float() / self.count.float()[:, None])
        return z + (code - z).detach(), F.mse_loss(z, code)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.vq, self.dec = nn.Linear(10, 4), Codebook(), nn.Linear(4, 10)

    def forward(self, x):
        z, commit = self.vq(self.enc(x))
        return self.dec(z), commit


def build():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    basis = torch.randn(3, 10, generator=g)
    return [torch.randn(32, 3, generator=g) @ basis for _ in range(24)]


def loss(model, batch):
    out, commit = model(batch)
    return F.mse_loss(out, batch) + 0.25 * commit


KEEP = torch.float16


CONFIG = {"precision": "fp32, averages in fp16"}
TRUTH = {
    "causes": ["low-precision-state", "model-numerics"],
    "first_nonfinite": {"phase": "forward", "module": "vq", "op": "aten.div", "kind": "nan", "step": 14},
    "symptom": "buffers-nonfinite",
}
REPAIR = [("KEEP = torch.float16", "KEEP = torch.float32")]
