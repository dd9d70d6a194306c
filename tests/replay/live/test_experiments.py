"""Each experiment on a minimal run whose failure it cures, and on one that it leaves as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mpdoctor.causes import all_causes
from mpdoctor.core.report import ExperimentOutcome
from mpdoctor.core.rule import modules
from mpdoctor.replay.live.experiment import all_experiments

pytestmark = pytest.mark.torch

LINEAR = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr={lr})
def batches():
    torch.manual_seed(1)
    return [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range({n})]
"""

TOO_LARGE_STEPS = (
    LINEAR.format(lr=30.0, n=40)
    + """
def loss(model, batch):
    return (model(batch[0]) - batch[1]).square().mean()
"""
)

TEN_TIMES_TOO_LARGE_STEPS = TOO_LARGE_STEPS.replace("lr=30.0", "lr=3.0").replace("range(40)", "range(80)")

FLIPPED_BIT = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(16, 2)
    with torch.no_grad():
        model.weight.view(torch.int32)[1, 2] ^= 1 << 30
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 16) for _ in range(3)]
def loss(model, batch):
    return model(batch).square().mean()
"""

FP16_RANGE = """
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 1)
        nn.init.constant_(self.up.weight, 300.0)
    def forward(self, x):
        return self.down(self.up(x) * 1e-5)
def build():
    torch.manual_seed(0)
    model = Wide()
    return model, torch.optim.SGD(model.parameters(), lr=1e-9)
def batches():
    return [torch.full((4, 4), 100.0) for _ in range(3)]
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(batch)
    return out.float().square().mean()
"""

NAN_ROW = (
    LINEAR.format(lr=0.01, n=6)
    + """
_batches = batches
def batches():
    found = _batches()
    found[2][0][5, 1] = float("nan")
    return found
def loss(model, batch):
    return (model(batch[0]) - batch[1]).square().mean()
"""
)

NO_SUCH_TOKEN = """
def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
def batches():
    found = [torch.arange(16).remainder(10).reshape(16, 1) for _ in range(4)]
    found[1] = found[1].clone()
    found[1][11] = 10
    return found
def loss(model, batch):
    return model(batch).square().mean()
"""

UNSAFE_ROOT = (
    LINEAR.format(lr=0.01, n=3)
    + """
def loss(model, batch):
    return torch.sqrt((model(batch[0]) * 0.0).sum(-1)).mean()
"""
)

CANCELLATION = (
    LINEAR.format(lr=0.01, n=3)
    + """
def loss(model, batch):
    x = 31.7 + 1e-4 * model(batch[0]).sigmoid()
    return ((x * x).mean() - x.mean() * x.mean()).sqrt()
"""
)

NO_SCALING = """
def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(4)]
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(batch)
    return (out.float() * 1e-9).mean() + 1.0
"""

SCALE_FIXED_TOO_HIGH = """
def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(24)]
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(batch)
    return (out.float() - 100.0).square().mean()
CONFIG = dict(scaler=True, init_scale=2.0**20, growth_interval=100000, backoff_factor=0.999999)
"""

CLIP_FIRST = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(4)]
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
def loss(model, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(batch).float().mean()
def step(model, optimizer, batch, _scaler):
    optimizer.zero_grad()
    scaler.scale(loss(model, batch)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    scaler.step(optimizer)
    scaler.update()
"""

NEVER_CLEARED = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.001)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(5)]
def loss(model, batch):
    return model(batch).square().mean()
def step(model, optimizer, batch, scaler):
    loss(model, batch).backward()
    optimizer.step()
"""

AUTOCAST_OPEN = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.5)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(5)]
region = torch.autocast("cuda", dtype=torch.bfloat16)
entered = []
def loss(model, batch):
    return model(batch).float().square().mean()
def step(model, optimizer, batch, scaler):
    if not entered:
        entered.append(region.__enter__())
    optimizer.zero_grad()
    loss(model, batch).backward()
    optimizer.step()
"""

REENTRANT = """
from torch.utils.checkpoint import checkpoint
class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=True))
def build():
    torch.manual_seed(0)
    model = Blocks()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(4)]
def loss(model, batch):
    return model(batch).square().mean()
"""

FP16_ADAM = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1).half()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-8)
def batches():
    return [torch.full((2, 4), 1e-2, dtype=torch.float16) for _ in range(4)]
def loss(model, batch):
    return (model(batch) * 1e-3).mean()
"""

LOST_UPDATES = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(16, 1, bias=False).bfloat16()
    with torch.no_grad():
        model.weight.fill_(1.0)
    return model, torch.optim.SGD(model.parameters(), lr=1e-4)
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 16).bfloat16() for _ in range(6)]
def loss(model, batch):
    return model(batch).float().square().mean()
"""

BAD_START = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    with torch.no_grad():
        model.weight[0, 2] = float("inf")
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
def batches():
    return [torch.randn(8, 4) for _ in range(3)]
def loss(model, batch):
    return model(batch).square().mean()
"""

BAD_MOMENTS = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for p in model.parameters():
        bad = torch.full_like(p, -1.0)
        optimizer.state[p] = dict(step=torch.tensor(3.0), exp_avg=torch.ones_like(p), exp_avg_sq=bad)
    return model, optimizer
def batches():
    torch.manual_seed(1)
    return [torch.randn(8, 4) for _ in range(3)]
def loss(model, batch):
    return model(batch).square().mean()
"""

FUSED_ATTENTION = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
def batches():
    torch.manual_seed(1)
    return [torch.randn(2, 2, 4, 8) for _ in range(3)]
def loss(model, batch):
    q = model(batch)
    mask = torch.zeros(4, 4)
    mask[1] = float("-inf")
    return F.scaled_dot_product_attention(q * 1e25, q * 1e25, q).square().mean()
"""

GONE, SAME, OTHER, NOT_RUN = (
    ExperimentOutcome.FAILURE_GONE,
    ExperimentOutcome.SAME_FAILURE,
    ExperimentOutcome.OTHER_FAILURE,
    ExperimentOutcome.NOT_RUN,
)

OUTCOMES = [
    ("learning-rate-half", NAN_ROW, SAME, "the loss is nan at step 2"),
    ("learning-rate-tenth", NAN_ROW, SAME, "the loss is nan at step 2"),
    ("learning-rate-tenth", FP16_RANGE, NOT_RUN, "before any optimizer step"),
    ("learning-rate-tenth", TEN_TIMES_TOO_LARGE_STEPS, GONE, "no failure up to step"),
    ("learning-rate-hundredth", TOO_LARGE_STEPS, GONE, "no failure up to step"),
    ("dynamic-loss-scaling", NO_SCALING, GONE, "at scale 65536"),
    ("dynamic-loss-scaling", SCALE_FIXED_TOO_HIGH, GONE, "steps are taken again at loss scale"),
    ("dynamic-loss-scaling", NAN_ROW, NOT_RUN, "the run does not compute in fp16"),
    ("dynamic-loss-scaling", SCALE_FIXED_TOO_HIGH.replace("range(24)", "range(6)"), NOT_RUN, "the batches end at loss scale 2048"),
    ("loss-scale-one", SCALE_FIXED_TOO_HIGH, GONE, "no failure up to step 0"),
    ("loss-scale-in-window", SCALE_FIXED_TOO_HIGH, GONE, "(scale "),
    ("bf16", FP16_RANGE, GONE, "no failure"),
    ("bf16", NAN_ROW, NOT_RUN, "does not compute in fp16"),
    ("fp32", FP16_RANGE, GONE, "no failure"),
    ("fp32", NAN_ROW, NOT_RUN, "computes in fp32"),
    ("guilty-module-fp32", FP16_RANGE, GONE, "up in fp32: no failure"),
    ("guilty-op-finite", UNSAFE_ROOT, GONE, "no failure"),
    ("fp64", CANCELLATION, GONE, "cancellation"),
    ("fp64", UNSAFE_ROOT, SAME, "at step 0"),
    ("bad-parameters-replaced", BAD_START, GONE, "no failure"),
    ("outlier-weights-restored", FLIPPED_BIT, GONE, "no failure"),
    ("outlier-weights-restored", BAD_START, NOT_RUN, "no weight is out of proportion"),
    ("failing-batch-out", NAN_ROW, GONE, "the 3 batches after it pass"),
    ("failing-batch-out", FP16_RANGE, SAME, "other batches fail too"),
    ("failing-rows-out", NAN_ROW, GONE, "row 5 alone fails; the other 7 pass"),
    ("failing-rows-out", NO_SUCH_TOKEN, GONE, "row 11 alone fails; the other 15 pass"),
    ("clip-after-unscale", CLIP_FIRST, GONE, "the clipped norm goes from"),
    ("cleared-gradients", NEVER_CLEARED, GONE, "5 optimizer steps in 5 steps"),
    ("uncached-autocast", AUTOCAST_OPEN, GONE, "with fresh casts"),
    ("nonreentrant-checkpointing", REENTRANT, GONE, "all 2 gradients are there"),
    ("adam-eps", FP16_ADAM, GONE, "no failure"),
    ("fp32-master-weights", FP16_ADAM, GONE, "no failure"),
    ("fp32-master-weights", LOST_UPDATES, GONE, "fp32 masters move by"),
    ("fresh-optimizer-state", BAD_MOMENTS, GONE, "no failure"),
    ("math-attention", FUSED_ATTENTION, SAME, "at step 0"),
]


@pytest.mark.parametrize(("slug", "recipe", "outcome", "words"), OUTCOMES, ids=[f"{slug}-{outcome}" for slug, _, outcome, _ in OUTCOMES])
def test_outcome(slug: str, recipe: str, outcome: ExperimentOutcome, words: str, investigate: Callable[[str], object]) -> None:
    result = investigate(recipe).try_(slug)  # type: ignore[attr-defined]
    assert (result.outcome, words in result.detail) == (outcome, True), result


def test_every_experiment_has_an_outcome_here() -> None:
    performed = {slug for slug, _, outcome, _ in OUTCOMES if outcome is not NOT_RUN}
    assert {e.slug for e in all_experiments()} == performed


def test_every_experiment_tells_what_it_proves_and_when_it_misleads() -> None:
    for module in modules("mpdoctor.replay.live.experiments"):
        assert "What it proves:" in module.__doc__, module.__name__
        assert "When it misleads:" in module.__doc__, module.__name__


def test_experiments_test_known_causes() -> None:
    known = {cause.id for cause in all_causes()}
    assert all(set(e.causes) <= known and e.causes for e in all_experiments())
