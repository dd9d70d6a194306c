"""A plain PyTorch loop whose loss becomes nan. What mpdoctor needs is saved by the three lines marked so."""

import math

import torch
from torch import nn


class Encoder(nn.Module):
    """A point in 8 dimensions for each of 16 measurements."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.Linear(width, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def contrastive(left: torch.Tensor, right: torch.Tensor, same: torch.Tensor, margin: float = 2.0) -> torch.Tensor:
    """Draws pairs of one class together, and pushes others apart up to the margin."""
    distance = torch.sqrt(((left - right) ** 2).sum(-1))
    return torch.where(same, distance**2, (margin - distance).clamp(min=0) ** 2).mean()


def pairs(steps: int = 40):
    """Random pairs of a small data set: sooner or later a sample is drawn twice."""
    generator = torch.Generator().manual_seed(3)
    samples, classes = torch.randn(300, 16, generator=generator), torch.randint(0, 4, (300,), generator=generator)
    for _ in range(steps):
        i, j = torch.randint(0, 300, (2, 12), generator=generator)
        yield samples[i], samples[j], classes[i] == classes[j]


def main() -> None:
    torch.manual_seed(0)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    recent = []
    for step, (left, right, same) in enumerate(pairs()):
        if step % 10 == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")  # for mpdoctor: a checkpoint
            recent.clear()
        recent.append((left, right, same))  # for mpdoctor: the batches since then
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = contrastive(model(left), model(right), same)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
        if not math.isfinite(loss.item()):
            torch.save(recent, "batches.pt")  # for mpdoctor
            raise SystemExit("the loss is nan")


if __name__ == "__main__":
    main()
