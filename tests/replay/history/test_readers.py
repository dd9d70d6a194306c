"""Every kind of log gives the same rows: step, loss, gradient norm, scale, rate, skipped."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.history import History, read_history
from mpdoctor.replay.history.history import is_log

MEGATRON = """\
using world size: 8, data-parallel size: 8
 [2024-05-01 10:00:00] iteration        1/  500000 | consumed samples: 8 | elapsed time per iteration (ms): 900.1 | learning rate: 1.500E-06 | global batch size:     8 | loss scale: 4294967296.0 | grad norm: inf | number of skipped iterations:   1 | number of nan iterations:   0 |
 [2024-05-01 10:00:01] iteration        2/  500000 | consumed samples: 16 | elapsed time per iteration (ms): 90.1 | learning rate: 3.000E-06 | global batch size:     8 | lm loss: 1.084E+01 | loss scale: 2147483648.0 | grad norm: 4.125 | number of skipped iterations:   0 | number of nan iterations:   0 |
"""  # noqa: E501
DEEPSPEED = """\
[2024-05-01 10:00:00,001] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.0
[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
[2024-05-01 10:00:01,001] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=1, lr=[1e-05], mom=[(0.9, 0.95)]
step: 11, loss: 4.25
step: 12, loss: nan
"""
FAIRSEQ = """\
2024-05-01 10:00:00 | INFO | fairseq_cli.train | task: LanguageModelingTask
2024-05-01 10:00:01 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0
2024-05-01 10:00:02 | INFO | train_inner | epoch 001:    100 / 1000 loss=13.5, ppl=11585, wps=2000, num_updates=99, lr=1.2e-05, gnorm=3.25, loss_scale=64, train_wall=60
2024-05-01 10:00:03 | INFO | train_inner | {"epoch": 1, "update": 0.2, "loss": "12.5", "num_updates": "199", "lr": "2.4e-05", "gnorm": "2.5", "loss_scale": "64"}
2024-05-01 10:00:04 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 11.1 | num_updates 199
"""  # noqa: E501
HF = (
    "  0%|          | 0/12 [00:00<?, ?it/s]\r 17%|█▋        | 2/12 [00:00<00:01,  8.1it/s]\r"
    "{'loss': '3.961', 'grad_norm': '1.201', 'learning_rate': '0.001', 'epoch': '0.1'}\n"
    " 33%|███▎      | 4/12 [00:00<00:01,  8.1it/s]\r"
    "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0005, 'epoch': 0.2}\n"
    "{'eval_loss': '3.5', 'eval_runtime': '1.0', 'epoch': '0.2'}\n"
    "{'train_runtime': '0.2', 'train_loss': '4.1', 'epoch': '0.5'}\n"
)
NANOGPT = """\
number of parameters: 10.65M
step 0: train loss 4.2874, val loss 4.2823
iter 0: loss 4.2654, time 13000.12ms, mfu -100.00%
iter 10: loss 3.1500, time 130.12ms, mfu 5.00%
iter 20: loss nan, time 130.12ms, mfu 5.00%
"""
LIGHTNING_BAR = """\
Epoch 0:  50%|█████     | 1/2 [00:00<00:00, 30.0it/s, v_num=0, train_loss=0.900]
Epoch 0: 100%|██████████| 2/2 [00:00<00:00, 30.0it/s, v_num=0, train_loss=0.500]
"""


def written(tmp_path: Path, text: str | bytes, name: str = "train.log") -> History:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_history(path)


def losses(history: History) -> dict[int, float | None]:
    return {row.step: row.loss for row in history.rows}


def test_megatron(tmp_path: Path) -> None:
    history = written(tmp_path, MEGATRON)
    assert history.kind == "megatron-text"
    first, second = history.rows
    assert (first.step, first.loss, first.grad_norm, first.scale, first.skipped) == (1, None, math.inf, 4294967296.0, True)
    assert (second.step, second.loss, second.grad_norm, second.lr, second.skipped) == (2, 10.84, 4.125, 3e-6, False)


def test_megatron_in_bf16_has_no_scale(tmp_path: Path) -> None:
    history = written(tmp_path, MEGATRON.replace("4294967296.0", "1.0").replace("2147483648.0", "1.0"))
    assert all(row.scale is None for row in history.rows)


def test_deepspeed(tmp_path: Path) -> None:
    history = written(tmp_path, DEEPSPEED)
    assert history.kind == "deepspeed-text"
    assert history.rows[0].skipped and history.rows[0].scale == 32768
    assert losses(history)[11] == 4.25 and history.facts.nonfinite_loss == 12 and history.facts.broken_from == 12


def test_fairseq(tmp_path: Path) -> None:
    history = written(tmp_path, FAIRSEQ)
    assert history.kind == "fairseq-text"
    assert [(r.step, r.loss, r.grad_norm, r.scale, r.skipped) for r in history.rows] == [
        (1, None, None, 64.0, True), (99, 13.5, 3.25, 64.0, None), (199, 12.5, 2.5, 64.0, None)]  # fmt: skip


def test_hugging_face_console(tmp_path: Path) -> None:
    history = written(tmp_path, HF)
    assert history.kind == "hf-text" and losses(history) == {2: 3.961, 4: 0.0}
    assert history.facts.zero_loss == 4 and history.facts.filtered


@pytest.mark.parametrize(("text", "expected"), [(NANOGPT, [0, 10, 20]), (LIGHTNING_BAR, [1, 2])], ids=["nanogpt", "lightning-bar"])
def test_home_made_text(tmp_path: Path, text: str, expected: list[int]) -> None:
    history = written(tmp_path, text)
    assert history.kind == "key-value-text" and list(losses(history)) == expected


def test_crlf_colours_and_broken_utf8_do_not_matter(tmp_path: Path) -> None:
    text = NANOGPT.replace("\n", "\r\n").replace("iter 10", "\x1b[32miter 10\x1b[0m").encode() + b"\xff\xfe iter 30: loss 2.0\n"
    assert list(losses(written(tmp_path, text))) == [0, 10, 20, 30]


def test_lightning_csv_by_its_real_logger(tmp_path: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(tmp_path)
    for step in range(4):
        logger.log_metrics({"train_loss": 4.0 - step, "grad_2.0_norm_total": 1.0}, step=step)
        logger.log_metrics({"lr-AdamW": 1e-3}, step=step)
    logger.log_metrics({"train_loss": math.nan, "val_loss": 3.0}, step=4)
    logger.save()
    history = read_history(Path(logger.log_dir) / "metrics.csv")
    assert history.kind == "csv"
    assert [(r.step, r.loss, r.grad_norm, r.lr) for r in history.rows[:2]] == [(0, 4.0, 1.0, 1e-3), (1, 3.0, 1.0, 1e-3)]
    assert history.facts.broken_from == 4


def test_wandb_exports(tmp_path: Path) -> None:
    text = '"Step","run - 7 - train/loss","run - 7 - train/loss__MIN","run - 7 - train/grad_norm"\n"10","4.5","4.0","1.5"\n"20","NaN","","Infinity"\n'
    history = written(tmp_path, text, "wandb_export.csv")
    assert losses(history)[10] == 4.5 and history.facts.broken_from == 20
    lines = '{"_step": 1, "train/loss": 4.0, "train/global_step": 10}\n{"_step": 2, "eval/loss": 3.0}\n'
    lines += '{"_step": 3, "train/loss": "NaN", "train/global_step": 20}\n'
    assert written(tmp_path, lines, "wandb-history.jsonl").facts.broken_from == 20
    columns = {"_step": {"0": 1, "1": 2}, "loss": {"0": 4.0, "1": 3.0}}
    assert losses(written(tmp_path, json.dumps(columns), "history.json")) == {1: 4.0, 2: 3.0}
    records = json.dumps([{"step": 5, "loss": 1.0}, {"step": 6, "loss": 2.0}], indent=1)
    assert losses(written(tmp_path, records, "records.json")) == {5: 1.0, 6: 2.0}


def test_tensorboard_by_its_real_writer(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    for step in range(3):
        writer.add_scalar("train/loss", 4.0 - step, step)
        writer.add_scalar("train/learning_rate", 1e-3, step)
        writer.add_scalar("train/grad_norm", 1.5, step)
    writer.add_scalar("train/loss", math.nan, 3)
    writer.close()
    (path,) = tmp_path.glob("events*")
    history = read_history(path)
    assert history.kind == "tensorboard"
    assert [(r.step, r.loss, r.grad_norm) for r in history.rows[:3]] == [(0, 4.0, 1.5), (1, 3.0, 1.5), (2, 2.0, 1.5)]
    assert history.facts.broken_from == 3
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert len(read_history(path).rows) == 3


def test_the_frame_has_one_row_per_step(tmp_path: Path) -> None:
    from mpdoctor.replay.frames import history_frame

    frame = history_frame(written(tmp_path, MEGATRON))
    assert list(frame.index) == [1, 2] and list(frame.columns) == ["loss", "grad_norm", "scale", "lr", "skipped"]
    assert bool(frame["skipped"].iloc[0]) and math.isnan(frame["loss"].iloc[0])


@pytest.mark.parametrize("text", ["", "hello\n", "\0\1\2" * 100, '{"a": 1}', "a,b\n1,2\n", "no numbers in this loss of words\n", "[1, 2, 3]"])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.txt"
    path.write_text(text)
    assert not is_log(path)
    with pytest.raises(UnreadableInput, match="not a training log"):
        read_history(path)


def test_a_missing_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="does not exist"):
        read_history(tmp_path / "none.log")
