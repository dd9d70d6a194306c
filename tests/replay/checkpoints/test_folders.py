"""Checkpoint folders of every kind: all parts are found, named, and given their roles."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

from mpdoctor.core.errors import NothingToJudge, UnreadableInput
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.autopsy.series import autopsy_series
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence
from mpdoctor.replay.checkpoints import Checkpoint, ProblemKind, Role, open_checkpoint, settings_from
from mpdoctor.replay.checkpoints.series import members_of, step_of
from mpdoctor.replay.history import read_history

Build = Callable[[Path], Path]
Trained = tuple[torch.nn.Module, torch.optim.Optimizer]


def roles(checkpoint: Checkpoint) -> dict[str, Role]:
    return {t.name: t.role for t in checkpoint.tensors}


# Hugging Face


def test_shards_are_read_by_their_index(tmp_path: Path, sharded_folder: Build) -> None:
    found = open_checkpoint(sharded_folder(tmp_path / "model"))
    assert found.format == "hf-model" and set(roles(found)) == {"a.weight", "a.bias", "b.weight"} and not found.problems


@pytest.mark.parametrize(
    ("damage", "kind", "left"),
    [
        (lambda p: (p / "model-00002-of-00002.safetensors").unlink(), ProblemKind.MISSING, 2),
        (lambda p: (p / "model-00002-of-00002.safetensors").write_bytes(b""), ProblemKind.EMPTY, 2),
        (lambda p: (p / "model-00002-of-00002.safetensors").write_bytes(b"garbage" * 10), ProblemKind.MALFORMED, 2),
        (lambda p: shutil.copy(p / "model-00001-of-00002.safetensors", p / "model-00002-of-00002.safetensors"), ProblemKind.DUPLICATE, 4),
        (lambda p: save_file({"c": torch.ones(1)}, p / "model-00003-of-00003.safetensors"), ProblemKind.DISAGREES, 3),
        (lambda p: (p / "model.safetensors.index.json").write_text("{"), ProblemKind.TRUNCATED, 3),
        (lambda p: (p / "model.safetensors.index.json").write_text('{"weight_map": 3}'), ProblemKind.MALFORMED, 3),
        (lambda p: ((p / "model.safetensors.index.json").unlink(), (p / "model-00001-of-00002.safetensors").unlink()), ProblemKind.MISSING, 1),
    ],
    ids=["shard-missing", "shard-empty", "shard-garbage", "shard-copied", "shard-unlisted", "index-cut", "index-odd", "no-index"],
)
def test_damaged_shards_are_problems_and_the_rest_is_listed(
    tmp_path: Path, sharded_folder: Build, damage: Callable[[Path], object], kind: ProblemKind, left: int
) -> None:
    folder = sharded_folder(tmp_path)
    damage(folder)
    found = open_checkpoint(folder)
    assert kind in {p.kind for p in found.problems} and len(found.tensors) == left


def test_an_index_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path, sharded_folder: Build) -> None:
    folder = sharded_folder(tmp_path / "inner")
    save_file({"secret": torch.ones(1)}, tmp_path / "secret.safetensors")
    (folder / "link.safetensors").symlink_to(tmp_path / "secret.safetensors")
    for name in ("../secret.safetensors", str(tmp_path / "secret.safetensors"), "link.safetensors"):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"secret": name}}))
        found = open_checkpoint(folder)
        assert ProblemKind.ESCAPES in {p.kind for p in found.problems} and "secret" not in roles(found)


def test_links_into_the_hub_cache_are_followed(tmp_path: Path, sharded_folder: Build) -> None:
    real = sharded_folder(tmp_path / "real")
    blobs, snapshot = tmp_path / "models--x" / "blobs", tmp_path / "models--x" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for file in real.iterdir():
        shutil.copy(file, blobs / f"hash-{file.name}")
        (snapshot / file.name).symlink_to(Path("../../blobs") / f"hash-{file.name}")
    found = open_checkpoint(snapshot)
    assert len(found.tensors) == 3 and not found.problems


def test_adapter_folders_have_adapter_weights(tmp_path: Path) -> None:
    import peft

    base = torch.nn.Sequential()
    base.add_module("proj", torch.nn.Linear(4, 4))
    model = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["proj"]))
    model.save_pretrained(tmp_path)
    found = open_checkpoint(tmp_path)
    assert found.format == "hf-peft" and found.adapter_config is not None and found.adapter_config["r"] == 2
    assert set(roles(found).values()) == {Role.ADAPTER}


# accelerate, Lightning


def test_accelerate_folder(tmp_path: Path) -> None:
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.backward(model(torch.ones(2, 4)).sum())
    optimizer.step()
    accelerator.save_state(str(tmp_path / "step_7"))
    found = open_checkpoint(tmp_path / "step_7")
    assert found.format == "accelerate" and found.rng and found.step == 7
    assert roles(found)["weight"] is Role.WEIGHT and roles(found)["state.0.exp_avg_sq"] is Role.SECOND_MOMENT
    assert found.param_groups[0]["lr"] == 1e-3


def test_lightning_checkpoint(tmp_path: Path) -> None:
    import lightning

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self, lr: float = 1e-3) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
            return self.layer(batch[0]).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=2)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_steps=3, accelerator="cpu", precision="bf16-mixed", default_root_dir=tmp_path, **quiet)
    trainer.fit(Module(), data)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    found = open_checkpoint(tmp_path / "last.ckpt")
    assert found.format == "lightning" and found.step == 3 and not found.problems
    assert roles(found)["layer.weight"] is Role.WEIGHT
    assert roles(found)["optimizer_states.0.state.0.exp_avg"] is Role.FIRST_MOMENT
    assert settings_from(found)["learning_rate"] == 1e-3
    assert autopsy(found).optimizer is not None


def test_the_folder_of_a_lightning_run_brings_its_log(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "hparams.yaml").write_text("lr: 0.001\n")
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss\n0,0,4.0\n0,1,nan\n")
    for step in (3, 20):
        saved = {"epoch": 0, "global_step": step, "pytorch-lightning_version": "2.5.0", "state_dict": {"w": torch.ones(2)}}
        torch.save(saved, tmp_path / "checkpoints" / f"epoch=0-step={step}.ckpt")
    found = open_checkpoint(tmp_path)
    assert found.format == "lightning" and found.step == 20
    history = read_history(found)
    assert history.kind == "csv" and history.facts.broken_from == 1


# torch.distributed.checkpoint


@pytest.fixture
def dcp_folder(trained: Trained) -> Build:
    from torch.distributed.checkpoint.state_dict import get_state_dict

    def build(path: Path) -> Path:
        weights, state = get_state_dict(*trained)
        dcp.save({"model": weights, "optim": state, "step": 5}, checkpoint_id=path)
        return path

    return build


@pytest.mark.filterwarnings("ignore")
def test_dcp_folder(tmp_path: Path, dcp_folder: Build, trained: Trained) -> None:
    found = open_checkpoint(dcp_folder(tmp_path / "step-5"))
    assert found.format == "torch-dcp" and found.step == 5 and not found.problems
    moment = next(t for t in found.tensors if t.name == "optim.state.0.weight.exp_avg_sq")
    assert moment.role is Role.SECOND_MOMENT and moment.parameter == "0.weight"
    assert found.param_groups[0]["betas"] == [0.9, 0.95]
    weight = next(t for t in autopsy(found).tensors if t.name == "0.weight")
    assert weight.amax == pytest.approx(float(trained[0].state_dict()["0.weight"].abs().max()))
    assert autopsy(found).optimizer.steps == (3, 3)  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore")
def test_dcp_folder_whose_save_did_not_finish(tmp_path: Path, dcp_folder: Build) -> None:
    folder = dcp_folder(tmp_path / "a")
    data = folder / "__0_0.distcp"
    data.write_bytes(data.read_bytes()[:-3000])
    found = open_checkpoint(folder)
    assert {p.kind for p in found.problems} == {ProblemKind.TRUNCATED} and found.tensors
    data.unlink()
    assert {p.kind for p in open_checkpoint(folder).problems} == {ProblemKind.MISSING}
    data.write_bytes(b"x" * 100)
    (folder / ".metadata").unlink()
    with pytest.raises(UnreadableInput, match="did not finish"):
        open_checkpoint(folder)


@pytest.mark.filterwarnings("ignore")
def test_trainer_folder_of_fsdp_holds_dcp_folders(tmp_path: Path, dcp_folder: Build) -> None:
    folder = tmp_path / "checkpoint-5"
    folder.mkdir()
    dcp_folder(folder / "pytorch_model_fsdp_0")
    (folder / "trainer_state.json").write_text('{"global_step": 5, "log_history": []}')
    found = open_checkpoint(folder)
    assert found.format == "hf-trainer" and found.parts == {"pytorch_model_fsdp_0": "torch-dcp"} and roles(found)["0.weight"] is Role.WEIGHT


# DeepSpeed, Megatron, NeMo, torchtune


def test_deepspeed_folder_by_latest_and_by_step(tmp_path: Path, deepspeed_folder: Build) -> None:
    root = deepspeed_folder(tmp_path / "ds")
    for path in (root, root / "global_step30"):
        found = open_checkpoint(path)
        assert found.format == "deepspeed" and not found.problems and found.step == 30
        result = autopsy(found)
        assert result.scaler is not None and (result.scaler.scale, result.scaler.dynamic) == (4096.0, True)
        assert result.dtypes.stored.keys() == {"float16"} and result.dtypes.master.keys() == {"float32"}
        assert result.optimizer is not None and result.optimizer.steps == (28, 28)
        assert found.extra["skipped_steps"] == 2
        assert settings_from(found)["fp16"] is True and result.dtypes.training == "float16"


def test_deepspeed_with_a_rank_missing(tmp_path: Path, deepspeed_folder: Build) -> None:
    root = deepspeed_folder(tmp_path / "ds")
    (root / "global_step30" / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    (problem,) = open_checkpoint(root).problems
    assert problem.kind is ProblemKind.MISSING and "rank 1 first" in problem.text


@pytest.mark.parametrize(("text", "match"), [("global_step99", "not there"), ("../../etc", "out of the checkpoint"), ("", "not there")])
def test_deepspeed_latest_that_leads_nowhere(tmp_path: Path, deepspeed_folder: Build, text: str, match: str) -> None:
    root = deepspeed_folder(tmp_path / "ds")
    (root / "latest").write_text(text)
    with pytest.raises(UnreadableInput, match=match):
        open_checkpoint(root)


def test_megatron_folder(tmp_path: Path, megatron_folder: Build) -> None:
    found = open_checkpoint(megatron_folder(tmp_path / "m"))
    assert found.format == "megatron" and found.step == 120 and not found.problems and found.rng
    settings = settings_from(found)
    assert settings["fp16"] is True and settings["learning_rate"] == 1.5e-4 and settings["max_grad_norm"] == 1.0
    assert found.scaler is not None and found.scaler["scale"] == 8192.0
    assert {Role.WEIGHT, Role.MASTER, Role.FIRST_MOMENT, Role.SECOND_MOMENT} <= set(roles(found).values())
    assert sum(t.role is Role.WEIGHT for t in found.tensors) == 8  # two ranks


def test_nemo_archive(tmp_path: Path, trained: Trained) -> None:
    torch.save({f"model.{k}": v for k, v in trained[0].state_dict().items()}, tmp_path / "model_weights.ckpt")
    (tmp_path / "model_config.yaml").write_text("precision: bf16\n")
    with tarfile.open(tmp_path / "m.nemo", "w") as archive:
        for name in ("model_config.yaml", "model_weights.ckpt"):
            archive.add(tmp_path / name, arcname=f"./{name}")
    found = open_checkpoint(tmp_path / "m.nemo")
    assert found.format == "nemo" and len(found.tensors) == 4 and not found.problems
    assert autopsy(found).tensors[0].amax == float(trained[0].state_dict()["0.weight"].abs().max())
    with tarfile.open(tmp_path / "z.nemo", "w:gz") as archive:
        archive.add(tmp_path / "model_weights.ckpt", arcname="model_weights.ckpt")
    with pytest.raises(UnreadableInput, match="tar xzf"):
        open_checkpoint(tmp_path / "z.nemo")


@pytest.mark.filterwarnings("ignore")
def test_nemo_folder(tmp_path: Path, dcp_folder: Build) -> None:
    (tmp_path / "context").mkdir()
    dcp_folder(tmp_path / "weights")
    found = open_checkpoint(tmp_path)
    assert found.format == "nemo" and found.parts == {"weights": "torch-dcp"} and found.step == 5


def test_torchtune_folder(tmp_path: Path, trained: Trained) -> None:
    model, optimizer = trained
    torch.save({k: v.bfloat16() for k, v in model.state_dict().items()}, tmp_path / "hf_model_0001_0.pt")
    torch.save({"optimizer": optimizer.state_dict(), "epochs_run": 1, "seed": 3, "total_epochs": 2}, tmp_path / "recipe_state.pt")
    torch.save({"0.lora_a.weight": torch.ones(2)}, tmp_path / "adapter_0.pt")
    found = open_checkpoint(tmp_path)
    assert found.format == "torchtune" and {Role.WEIGHT, Role.ADAPTER, Role.FIRST_MOMENT} <= set(roles(found).values())
    assert settings_from(found)["adam_beta2"] == 0.95


def test_loose_files_keep_their_names_apart(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    torch.save({"w": torch.ones(2)}, tmp_path / "b.pt")
    found = open_checkpoint(tmp_path)
    assert found.format == "folder" and set(roles(found)) == {"a.pt/w", "b.pt/w"} and not found.problems


# series


def test_a_series_names_where_it_turned(tmp_path: Path) -> None:
    for step, scale in ((100, 0.1), (200, 0.11), (300, 5.0), (400, float("nan"))):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        save_file({"w": torch.full((4,), scale)}, folder / "model.safetensors")
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": []}))
    found = open_checkpoint(tmp_path)
    assert found.path == tmp_path / "checkpoint-400" and [m["step"] for m in found.extra["series"]] == [100, 200, 300, 400]
    result = autopsy_series(members_of(tmp_path))
    assert result.first_bad is not None and result.first_bad.step == 400
    assert result.last_good is not None and result.last_good.step == 300
    assert [(t.what, t.after.step) for t in result.turns] == [("largest weight", 300), ("weights", 400)]


def test_the_newest_that_can_be_read_stands_for_the_series(tmp_path: Path) -> None:
    for step in (1, 2):
        (tmp_path / f"step-{step}").mkdir()
    save_file({"w": torch.ones(1)}, tmp_path / "step-1" / "model.safetensors")
    (tmp_path / "step-2" / "model.safetensors").write_bytes(b"")
    found = open_checkpoint(tmp_path)
    assert ProblemKind.EMPTY in {p.kind for p in found.problems}


@pytest.mark.parametrize(
    ("name", "step"),
    [("checkpoint-500", 500), ("global_step30", 30), ("epoch=3-step=400.ckpt", 400), ("iter_0000120", 120), ("step_7.pt", 7), ("model.pt", None),
     ("model-00001-of-00002.safetensors", None), ("rng_state_0.pth", None), ("zero_pp_rank_0_mp_rank_00_optim_states.pt", None), ("last.ckpt", None)],
)  # fmt: skip
def test_steps_in_names(name: str, step: int | None) -> None:
    assert step_of(name) == step


# declined and refused


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("m.gguf", b"GGUF\3\0\0\0", "GGUF"),
        ("m.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 20, "HDF5"),
        ("flax_model.msgpack", b"\x82\xa5model\x80", "Flax"),
        ("w.npy", b"\x93NUMPY\1\0", "NumPy"),
        ("model.onnx", b"\x08\x07\x12\x07pytorch", "ONNX"),
        ("model.ckpt.index", b"\0\0\0\0abc", "TensorFlow"),
    ],
)
def test_formats_that_are_not_judged_are_named(tmp_path: Path, name: str, content: bytes, title: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NothingToJudge, match=title):
        open_checkpoint(tmp_path / name)


def test_tensorflow_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    with pytest.raises(NothingToJudge, match="TensorFlow"):
        open_checkpoint(tmp_path)


def test_missing_empty_and_foreign_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "readme.txt").write_text("hello")
    for path, match in ((tmp_path / "none", "does not exist"), (tmp_path / "empty", "empty"), (tmp_path / "foreign", "without a checkpoint")):
        with pytest.raises(UnreadableInput, match=match):
            open_checkpoint(path)


@pytest.mark.parametrize("function", ["open", "scandir"])
def test_what_may_not_be_read_is_refused(tmp_path: Path, sharded_folder: Build, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    folder = sharded_folder(tmp_path / "locked")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, function, refuse)
    with pytest.raises(UnreadableInput, match=r"(?i)permission"):
        open_checkpoint(folder if function == "scandir" else folder / "model-00001-of-00002.safetensors")


def test_names_with_spaces_and_unicode(tmp_path: Path, sharded_folder: Build) -> None:
    folder = sharded_folder(tmp_path / "mein Modell – 测试 ✓")
    assert len(autopsy(open_checkpoint(folder)).tensors) == 3


def test_a_folder_that_leads_to_a_checkpoint_names_it(tmp_path: Path) -> None:
    inner = tmp_path / "runs" / "seed 1" / "checkpoint-5"
    inner.mkdir(parents=True)
    save_file({"w": torch.ones(2, 2)}, inner / "model.safetensors")
    with pytest.raises(UnreadableInput) as refused:
        open_checkpoint(tmp_path)
    assert refused.value.hint == f"There is a checkpoint below it: {inner.parent}"


def test_the_other_checkpoints_of_a_run_are_read_with_progress(tmp_path: Path) -> None:
    class Seen:
        tasks: list[tuple[str, int | None]] = []  # noqa: RUF012
        notes: list[str] = []  # noqa: RUF012

        def start(self, task: str, total: int | None = None) -> None:
            self.tasks.append((task, total))

        def advance(self, amount: int = 1) -> None: ...

        def note(self, text: str) -> None:
            self.notes.append(text)

    for step in (1, 2, 3):
        (tmp_path / f"checkpoint-{step}").mkdir()
        save_file({"w": torch.ones(2, 2)}, tmp_path / f"checkpoint-{step}" / "model.safetensors")
    evidence = CheckpointEvidence(checkpoint=open_checkpoint(tmp_path), progress=Seen())
    assert evidence.series is not None
    assert Seen.tasks == [("reading the run's checkpoints", 3)]
    assert Seen.notes == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
