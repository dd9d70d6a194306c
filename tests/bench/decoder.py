"""The run that the benches time: a decoder of 17 million parameters, AdamW, dropout, and a plain training step around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from mpdoctor.replay.live.fast16 import available, fast_16_bit_kernels
from mpdoctor.replay.live.session import LoopSettings, Session

DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Size:
    layers: int = 6
    width: int = 384
    heads: int = 6
    vocabulary: int = 8192
    rows: int = 4
    length: int = 128


TINY = Size(layers=1, width=32, heads=2, vocabulary=64, rows=2, length=8)


class Block(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.before_attention = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width, bias=False)
        self.out = nn.Linear(size.width, size.width, bias=False)
        self.before_mlp = nn.LayerNorm(size.width)
        self.up = nn.Linear(size.width, 4 * size.width)
        self.down = nn.Linear(4 * size.width, size.width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.drop(self.down(gelu(self.up(self.before_mlp(x)))))


class Decoder(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Training:
    """One run: everything that a plain step needs, and the same as a session for mpdoctor."""

    def __init__(self, precision: str, size: Size | None = None) -> None:
        size = size or Size()
        torch.manual_seed(0)
        self.precision = precision
        self.model = Decoder(size)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=True)
        self.scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
        self.batch = (torch.randint(size.vocabulary, (size.rows, size.length)), torch.randint(size.vocabulary, (size.rows, size.length)))

    def loss(self, model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        dtype = DTYPES[self.precision]
        ids, labels = batch
        with torch.autocast("cpu", dtype=dtype) if dtype is not None else nullcontext():
            return cross_entropy(model(ids).float().flatten(0, 1), labels.flatten())

    def step(self) -> None:
        """What a user's loop does. The loss is read, as every loop that logs does."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model, self.batch)
        loss.item()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def session(self, batches: Any) -> Session:
        """The same model and optimizer for mpdoctor's own loop."""
        return Session(
            model=self.model,
            optimizer=self.optimizer,
            batches=batches,
            loss=self.loss,
            settings=LoopSettings(scaler={"init_scale": 2.0**16} if self.precision == "fp16" else None),
        )

    @contextmanager
    def kernels(self) -> Iterator[None]:
        """16-bit products as the replay computes them, for plain steps too: both sides of a ratio run the same arithmetic."""
        with fast_16_bit_kernels() if available() else nullcontext():
            yield


Timed = Callable[[Training], list[float]]
"""Runs some steps and returns the CPU seconds of each."""
