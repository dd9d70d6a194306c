"""Checkpoints made by their real writers; layouts of writers that cannot run here are made by hand from their documentation."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

Build = Callable[[Path], Path]


@pytest.fixture
def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model and an AdamW that took three steps."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95))
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
    return model, optimizer


class DynamicLossScaler:
    """Fields of deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler (version 0.14), pickled under its name."""

    def __init__(self, scale: float) -> None:
        self.cur_scale, self.cur_iter, self.last_overflow_iter = scale, 30, 12
        self.scale_factor, self.scale_window, self.min_scale, self.cur_hysteresis = 2.0, 1000, 1, 2


DynamicLossScaler.__module__ = "deepspeed.runtime.fp16.loss_scaler"


@pytest.fixture
def deepspeed_folder(trained: tuple[torch.nn.Module, torch.optim.Optimizer], monkeypatch: pytest.MonkeyPatch) -> Build:
    """A DeepSpeed ZeRO-1 fp16 checkpoint of two ranks, by the layout of DeepSpeed 0.14 (made here, not by DeepSpeed)."""
    import sys
    import types

    module = types.ModuleType("deepspeed.runtime.fp16.loss_scaler")
    module.DynamicLossScaler = DynamicLossScaler  # type: ignore[attr-defined]
    for name in ("deepspeed", "deepspeed.runtime", "deepspeed.runtime.fp16"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def build(root: Path) -> Path:
        model, _ = trained
        step = root / "global_step30"
        step.mkdir(parents=True)
        config = {"fp16": {"enabled": True, "loss_scale": 0}, "zero_optimization": {"stage": 1}, "gradient_clipping": 1.0}
        weights = {k: v.half() for k, v in model.state_dict().items()}
        torch.save(
            {"module": weights, "optimizer": None, "lr_scheduler": None, "skipped_steps": 2, "global_steps": 30,
             "dp_world_size": 2, "mp_world_size": 1, "ds_config": config, "ds_version": "0.14.0"},
            step / "mp_rank_00_model_states.pt",
        )  # fmt: skip
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        for rank, part in enumerate(flat.chunk(2)):
            state = {
                "loss_scaler": DynamicLossScaler(4096.0), "dynamic_loss_scale": True, "overflow": False, "clip_grad": 1.0, "zero_stage": 1,
                "base_optimizer_state": {
                    "state": {0: {"step": 28, "exp_avg": part * 0.1, "exp_avg_sq": part.square()}},
                    "param_groups": [{"lr": 2e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "params": [0]}],
                },
                "single_partition_of_fp32_groups": [part.clone()], "partition_count": [2], "ds_version": "0.14.0",
            }  # fmt: skip
            torch.save(
                {"optimizer_state_dict": state, "ds_config": config, "ds_version": "0.14.0"}, step / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            )
        (root / "latest").write_text("global_step30")
        (root / "zero_to_fp32.py").write_text("# DeepSpeed copies a script here\n")
        return root

    return build


@pytest.fixture
def megatron_folder(trained: tuple[torch.nn.Module, torch.optim.Optimizer]) -> Build:
    """A Megatron-LM fp16 checkpoint of two tensor-parallel ranks, by the layout of Megatron core 0.8 (made here, not by Megatron)."""

    def build(root: Path) -> Path:
        model, optimizer = trained
        for rank in range(2):
            folder = root / "iter_0000120" / f"mp_rank_{rank:02d}"
            folder.mkdir(parents=True)
            arguments = argparse.Namespace(
                fp16=True, bf16=False, lr=1.5e-4, clip_grad=1.0, micro_batch_size=4, train_iters=5000, adam_eps=1e-8, seed=1234
            )
            state: dict[str, Any] = {
                "args": arguments, "checkpoint_version": 3.0, "iteration": 120,
                "model": {"language_model": {k: v.half() for k, v in model.state_dict().items()}},
                "optimizer": {
                    "optimizer": optimizer.state_dict(),
                    "grad_scaler": {"scale": torch.tensor([8192.0]), "growth_tracker": 5, "hysteresis_tracker": 2},
                    "fp32_from_fp16_params": [[p.detach().clone() for p in model.parameters()]],
                },
                "rng_state": [{"np_rng_state": None, "torch_rng_state": torch.get_rng_state()}],
            }  # fmt: skip
            torch.save(state, folder / "model_optim_rng.pt")
        (root / "latest_checkpointed_iteration.txt").write_text("120")
        return root

    return build


@pytest.fixture
def sharded_folder() -> Build:
    """A model in two safetensors shards with an index."""

    def build(root: Path) -> Path:
        from safetensors.torch import save_file

        root.mkdir(parents=True, exist_ok=True)
        save_file({"a.weight": torch.ones(3, 3), "a.bias": torch.ones(3)}, root / "model-00001-of-00002.safetensors")
        save_file({"b.weight": torch.ones(2, 3)}, root / "model-00002-of-00002.safetensors")
        weight_map = dict.fromkeys(("a.weight", "a.bias"), "model-00001-of-00002.safetensors") | {"b.weight": "model-00002-of-00002.safetensors"}
        (root / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 72}, "weight_map": weight_map}))
        (root / "config.json").write_text(json.dumps({"architectures": ["X"], "dtype": "float32"}))
        return root

    return build
