"""What only mpdoctor sees, so that plain torch cannot check the truth of it: chance, sums of the loop's own, what CUDA's autocast refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import mpdoctor
from mpdoctor.replay.report import ReplayReport

pytestmark = pytest.mark.torch

RANKS_SUMMED_IN_FP16 = """
import torch
import torch.nn.functional as F
from torch import nn

RANKS = 512


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 16, generator=g), torch.randint(0, 4, (8,), generator=g)) for _ in range(8)]


def loss(model, batch):
    return 4000.0 * F.cross_entropy(model(batch[0]), batch[1])


def all_reduced(gradient):
    sent = gradient.half().expand(RANKS, *gradient.shape)
    return sent.sum(0) / RANKS


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    for parameter in model.parameters():
        parameter.grad.copy_(all_reduced(parameter.grad))
    optimizer.step()
    return {"loss": value.item()}


CONFIG = {"precision": "fp32, gradients sent in fp16"}
"""

WEIGHTS_CHANGE_BY_THEMSELVES = """
import os

import torch
import torch.nn.functional as F
from torch import nn

LOSES_BITS = True


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(32, 16, generator=g) for _ in range(20)]
    return [(x, x[:, :4].argmax(1)) for x in rows]


def loss(model, batch):
    if LOSES_BITS:
        place = int.from_bytes(os.urandom(2), "little") % 512
        with torch.no_grad():
            model[0].weight.view(-1)[place] *= 2.0**90
    return F.cross_entropy(model(batch[0]), batch[1])


CONFIG = {"precision": "fp32"}
"""

REFUSED_BY_AUTOCAST = """
import torch
import torch.nn.functional as F
from torch import nn


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(8, 10, generator=g) for _ in range(8)]
    return [(x, (x[:, :1] > 0).float()) for x in rows]


def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        scores = model(batch[0])
        return F.binary_cross_entropy(scores.sigmoid(), batch[1])


CONFIG = {"scaler": True, "init_scale": 1024.0, "precision": "fp16 autocast + GradScaler"}
"""

SECOND_OPTIMIZER_WITHOUT_SCALER = """
import torch
import torch.nn.functional as F
from torch import nn


class TwoParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(12, 24), nn.Linear(24, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def build():
    torch.manual_seed(0)
    model = TwoParts()
    model.head_optimizer = torch.optim.SGD(model.head.parameters(), lr=0.2)
    model.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    return model, torch.optim.AdamW(model.body.parameters(), lr=1e-2)


def batches():
    g = torch.Generator().manual_seed(1)
    rows = [torch.randn(32, 12, generator=g) for _ in range(30)]
    return [(x, x[:, :4].argmax(1)) for x in rows]


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(batch[0])
    return F.cross_entropy(scores.float(), batch[1])


def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    model.head_optimizer.zero_grad()
    value = loss(model, batch)
    model.scaler.scale(value).backward()
    model.scaler.step(optimizer)
    model.head_optimizer.step()
    model.scaler.update()
    return {"loss": value.item()}


CONFIG = {"precision": "fp16 autocast + GradScaler"}
"""


def replayed(recipe: str, tmp_path: Path) -> ReplayReport:
    path = tmp_path / "recipe.py"
    path.write_text(recipe, encoding="utf-8")
    return mpdoctor.run_replay(recipe=path)


def test_a_sum_over_ranks_leaves_fp16(tmp_path: Path) -> None:
    report = replayed(RANKS_SUMMED_IN_FP16, tmp_path)
    assert (report.headline.cause, report.headline.standing) == ("fp16-range", "confirmed")
    assert report.first_nonfinite is not None
    assert (report.first_nonfinite.site.phase, report.first_nonfinite.site.op) == ("unscale", "aten.sum")
    divided_first = RANKS_SUMMED_IN_FP16.replace("sent.sum(0) / RANKS", "(sent / RANKS).sum(0)")
    assert replayed(divided_first, tmp_path).healthy


def test_damage_that_comes_by_chance_is_no_fault_of_the_code(tmp_path: Path) -> None:
    report = replayed(WEIGHTS_CHANGE_BY_THEMSELVES, tmp_path)
    assert report.headline.cause == "hardware"
    assert replayed(WEIGHTS_CHANGE_BY_THEMSELVES.replace("LOSES_BITS = True", "LOSES_BITS = False"), tmp_path).healthy


def test_what_cuda_refuses_is_a_failure_on_the_cpu_too(tmp_path: Path) -> None:
    report = replayed(REFUSED_BY_AUTOCAST, tmp_path)
    assert report.headline.cause == "model-numerics"
    assert [s.id for s in report.symptoms] == ["exception"]
    with_logits = REFUSED_BY_AUTOCAST.replace("cross_entropy(scores.sigmoid(), ", "cross_entropy_with_logits(scores, ")
    assert replayed(with_logits, tmp_path).healthy


def test_an_optimizer_that_the_scaler_does_not_know_steps_on_scaled_gradients(tmp_path: Path) -> None:
    report = replayed(SECOND_OPTIMIZER_WITHOUT_SCALER, tmp_path)
    assert (report.headline.cause, report.headline.standing) == ("training-loop", "likely")
    by_scaler = SECOND_OPTIMIZER_WITHOUT_SCALER.replace("model.head_optimizer.step()", "model.scaler.step(model.head_optimizer)")
    assert replayed(by_scaler, tmp_path).healthy
