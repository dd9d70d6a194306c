"""Recipes drafted from training scripts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.drafting.recipe import MARK, draft

SCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "scripts").rglob("*.py"))

LOOP = """
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from somewhere import make_dataset

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 10)
    def forward(self, x):
        return self.fc(x)

def main():
    args = argparse.Namespace(lr=3e-4, width=64)
    device = "cuda"
    net = Net(args.width).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**14)
    for epoch in range(3):
        for i, (x, y) in enumerate(DataLoader(make_dataset(), batch_size=8)):
            x, y = x.to(device), y.to(device)
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                out = net(x)
                loss = F.cross_entropy(out, y)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()

if __name__ == "__main__":
    main()
"""

LIGHTNING = """
import lightning as L
import torch

class Classifier(L.LightningModule):
    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

if __name__ == "__main__":
    L.Trainer(precision="16-mixed").fit(Classifier(width=3))
"""

MINIMAL = """
import torch

class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 1)
    def forward(self, x):
        return self.fc(x)

def train(data):
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in data:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def functions(text: str) -> set[str]:
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def test_the_template_is_a_recipe_with_marked_gaps() -> None:
    text = draft()
    assert functions(text) == {"build", "batches", "loss"}
    assert text.count("# CHECK:") >= 4


def test_a_training_loop_becomes_a_recipe(script: Path, snapshot: SnapshotAssertion) -> None:
    script.write_text(LOOP)
    assert draft(script) == snapshot


def test_a_lightning_module_brings_loss_and_optimizer(script: Path, snapshot: SnapshotAssertion) -> None:
    script.write_text(LIGHTNING)
    assert draft(script) == snapshot


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_gives_valid_python(script: Path) -> None:
    assert {"build", "batches", "loss"} <= functions(draft(script))


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("loss.backward()", "loss"),
        ("scaler.scale(total).backward()", "total"),
        ("accelerator.backward(loss)", "loss"),
        ("(loss / 4).backward()", None),
    ],
)
def test_ways_to_call_backward(script: Path, statement: str, name: str | None) -> None:
    script.write_text(f"for b in data:\n    loss = f(b)\n    total = loss + 1\n    {statement}\n")
    assert f"return {name or 'loss'}" in draft(script)


def test_only_what_the_loss_is_computed_from_is_copied(script: Path) -> None:
    aside = "            kept = {'model': net.state_dict(), 'optimizer': opt.state_dict()}\n"
    aside += "            scale = {}\n            scale['loss'] = 0.5\n"
    text = LOOP.replace("            opt.zero_grad()\n", aside).replace("F.cross_entropy(out, y)", "F.cross_entropy(out, y) * scale['loss']")
    script.write_text(text, encoding="utf-8")
    drafted = draft(script)
    assert "kept" not in drafted and "state_dict" not in drafted
    assert "scale = {}" in drafted and "scale['loss'] = 0.5" in drafted and "x.to(device)" in drafted


@pytest.mark.parametrize(
    ("text", "message"),
    [("def broken(:\n", r"train\.py:1: not valid Python"), ("a = 1\0", "not valid Python")],
)
def test_a_script_that_is_no_python_is_told(script: Path, text: str, message: str) -> None:
    script.write_text(text)
    with pytest.raises(UnreadableInput, match=message):
        draft(script)


def test_a_missing_script_is_told(script: Path) -> None:
    with pytest.raises(UnreadableInput, match="No such file"):
        draft(script)


def test_bytes_are_told(script: Path) -> None:
    script.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableInput, match="not UTF-8"):
        draft(script)


@pytest.mark.torch
def test_a_drafted_recipe_replays(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from mpdoctor.api import run_replay

    script.write_text(MINIMAL)
    text = draft(script)
    assert text.count(MARK) >= 1
    recipe = tmp_path / "recipe.py"
    recipe.write_text(text)
    torch.save([torch.ones(4, 3), torch.full((4, 3), float("nan"))], tmp_path / "batches.pt")
    monkeypatch.chdir(tmp_path)
    report = run_replay(recipe=recipe)
    assert (report.headline.cause, report.first_nonfinite.site.step) == ("dirty-data", 1)
