"""Sessions from a Hugging Face Trainer checkpoint: model by `architectures`, settings, optimizer, scheduler, scaler, data order."""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.checkpoints import Checkpoint, Role, settings_from
from mpdoctor.replay.live.collator import Collator
from mpdoctor.replay.live.data import Data, read_data
from mpdoctor.replay.live.hf_optimizer import build_optimizer, build_scheduler
from mpdoctor.replay.live.session import LoopSettings, Session
from mpdoctor.replay.live.weights import load_torch_file, load_weights

DEFAULT_STEPS = 12
"""Steps that are replayed when `--steps` does not say otherwise."""
_SYNTHETIC_LENGTH = 32
"""Tokens per row of the batches that are made up when there is no data."""


def cannot_build(checkpoint: Checkpoint, *, trust_remote_code: bool) -> str | None:
    """Why the model cannot be built from the folder, or None."""
    import transformers

    names = checkpoint.config.get("architectures") or []
    name = names[0] if isinstance(names, list) and names else ""
    if checkpoint.config.get("auto_map") and not trust_remote_code:
        return f"{name} needs code from the checkpoint's own folder, which is not run; a recipe, or --trust-remote-code, would let mpdoctor replay it"
    if not isinstance(name, str) or not hasattr(transformers, name):
        return f"transformers {transformers.__version__} has no model class {name}; a recipe would let mpdoctor replay it"
    if not checkpoint.by_role(Role.WEIGHT):
        return "the folder holds no model weights"
    return None


class HfCheckpointSource:
    """Sessions that continue a Trainer run from its checkpoint.

    Args:
        checkpoint: the opened folder.
        data: training data; None makes token batches up, and dirty data stays untested.
        steps: how many steps to run.
        precision: `auto` takes the run's own.
        device: `cpu` or `cuda`: where model and batches go.
        trust_remote_code: run the model code that the folder itself carries.

    Raises:
        UnreadableInput: model, optimizer or data do not fit together.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        data: Path | None,
        steps: int | None,
        precision: str,
        device: str = "cpu",
        trust_remote_code: bool = False,
    ) -> None:
        self.checkpoint = checkpoint
        self.device = device
        self.name = checkpoint.name
        self.folder = checkpoint.path
        self.settings = settings_from(checkpoint)
        self.steps = steps or DEFAULT_STEPS
        self.notes: list[str] = []
        self.data: Data | None = read_data(data) if data is not None else None
        self.real_batches = self.data is not None
        self.dtype = self._compute_dtype(precision)
        self._model = self._build_model(trust_remote_code)
        self._optimizer_state = self._torch_file("optimizer.pt")
        self._scheduler_state = self._torch_file("scheduler.pt")
        self._scaler_state = self._torch_file("scaler.pt")
        self._collator = Collator(self.folder, self._model, self.settings)
        self._batches, self._rows = self._make_batches()
        self.first_step = int(checkpoint.step or 0)

    def open(self) -> Session:
        """A copy of the run in the checkpoint's state."""
        model = copy.deepcopy(self._model).to(self.device)
        model.train()
        optimizer = build_optimizer(model, self.settings, self._optimizer_state, self.notes, self.folder)
        scheduler = build_scheduler(optimizer, self.settings, self._scheduler_state)
        self._restore_rng()
        clip = self.settings.get("max_grad_norm")
        has_scaler = self._scaler_state is not None and self.dtype is torch.float16
        return Session(
            model=model,
            optimizer=optimizer,
            batches=self._batches,
            loss=self._loss,
            scheduler=scheduler,
            settings=LoopSettings(
                precision={torch.float16: "fp16 autocast", torch.bfloat16: "bf16 autocast", torch.float32: "fp32"}[self.dtype],
                asked={torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}[self.dtype],
                scaler={} if has_scaler else None,
                clip=float(clip) if isinstance(clip, int | float) and clip > 0 else None,
                accumulation=max(1, int(self.settings.get("gradient_accumulation_steps") or 1)),
            ),
            scaler_state=copy.deepcopy(self._scaler_state) if has_scaler else None,
            first_step=self.first_step,
            schedule_over=0 < int(self.settings.get("max_steps") or 0) <= self.first_step,
        )

    def line_of_row(self, step: int, row: int) -> str | None:
        """Line of the data file that a row of a step's batch comes from."""
        number = step - self.first_step
        if self.data is None or not 0 <= number < len(self._rows) or row >= len(self._rows[number]):
            return None
        return self.data.place(self._rows[number][row])

    def _loss(self, model: torch.nn.Module, batch: Any) -> torch.Tensor:
        """The model's own loss, under the run's autocast (CUDA's, as the run was)."""
        region = torch.autocast("cuda", dtype=self.dtype) if self.dtype is not torch.float32 else nullcontext()
        with region:
            output = model(**{name: value.to(self.device) if isinstance(value, torch.Tensor) else value for name, value in batch.items()})
        loss = getattr(output, "loss", None)
        if not isinstance(loss, torch.Tensor):
            raise UnreadableInput(f"{self.name}: the model returns no loss for this batch", "Give data with labels (--data).")
        return loss.float()

    # -- parts

    def _compute_dtype(self, precision: str) -> torch.dtype:
        named = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
        if precision in named:
            return named[precision]
        if self.settings.get("fp16"):
            return torch.float16
        return torch.bfloat16 if self.settings.get("bf16") else torch.float32

    def _build_model(self, trust_remote_code: bool) -> torch.nn.Module:
        import transformers

        weights = load_weights(self.checkpoint)
        stored = {t.dtype for t in weights.values() if t.is_floating_point()}
        dtype = next(iter(stored)) if len(stored) == 1 else torch.float32
        try:
            config = transformers.AutoConfig.from_pretrained(str(self.folder), local_files_only=True, trust_remote_code=trust_remote_code)
            builder = getattr(transformers, self.checkpoint.config["architectures"][0])
            model: torch.nn.Module = builder(config)
        except UnreadableInput:
            raise
        except Exception as error:
            raise UnreadableInput(
                f"{self.folder / 'config.json'}: {type(error).__name__} while building the model: {str(error).splitlines()[0] if str(error) else ''}",
                "Compare config.json with the one of the run, or give a recipe (--recipe).",
            ) from error
        own = model.state_dict()
        wrong = [k for k, v in weights.items() if k in own and own[k].shape != v.shape]
        missing = [k for k in own if k not in weights and k not in _tied(model)]
        if wrong or (missing and len(missing) == len(own)):
            names = [f"{k} ({list(weights[k].shape)} in the file, {list(own[k].shape)} by config.json)" for k in wrong] or missing
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise UnreadableInput(
                f"{self.folder}: {len(names)} tensors do not fit the model of config.json: {', '.join(names[:3])}{more}",
                "Use the config.json of the run.",
            )
        if dtype in (torch.float16, torch.bfloat16):
            model = model.to(dtype)
        model.load_state_dict(weights, strict=False)
        tie = getattr(model, "tie_weights", None)
        if callable(tie):
            tie()
        if missing:
            self.notes.append(f"{len(missing)} tensors of the model are not in the checkpoint and start anew (first: {missing[0]})")
        return model

    def _torch_file(self, name: str) -> Any:
        path = self.folder / name
        if not path.is_file():
            return None
        try:
            return load_torch_file(path)
        except UnreadableInput as error:
            self.notes.append(f"{error.message}; the replay starts without it")
            return None

    def _restore_rng(self) -> None:
        """The run's random state; a seed where the file is missing."""
        path = self.folder / "rng_state.pth"
        state: dict[str, Any] = {}
        if path.is_file():
            try:
                import numpy

                allowed: list[Any] = [numpy.empty(0).__reduce__()[0], numpy.ndarray, numpy.dtype, type(numpy.dtype(numpy.uint32))]
                with torch.serialization.safe_globals(allowed):
                    state = torch.load(path, map_location="cpu", weights_only=True)
            except Exception:  # an older layout, or one that needs more than NumPy's arrays
                self.notes.append("rng_state.pth was not restored: dropout is drawn anew")
        if isinstance(state.get("cpu"), torch.Tensor):
            torch.set_rng_state(state["cpu"])
            if self.device == "cuda" and isinstance(state.get("cuda"), torch.Tensor):
                torch.cuda.set_rng_state(state["cuda"])
            numpy_state = state.get("numpy")
            if numpy_state is not None:
                import numpy

                numpy.random.set_state(numpy_state)
        else:
            torch.manual_seed(int(self.settings.get("seed") or 42))

    def _make_batches(self) -> tuple[list[Any], list[list[int]]]:
        """The next batches in the Trainer's order, and the data rows of each."""
        wanted = self.steps * max(1, int(self.settings.get("gradient_accumulation_steps") or 1))
        if self.data is None:
            self.notes.append("no data was given: token batches are made up, and dirty data stays untested")
            return [self._collator.made_up(self._batch_size, _SYNTHETIC_LENGTH, i) for i in range(wanted)], []
        if self.data.batches:
            return [self._collator.ready(b) for b in self.data.batches[:wanted]], []
        order = self._next_rows(len(self.data.rows), wanted)
        return [self._batch(rows, self.data) for rows in order], order

    def _batch(self, rows: list[int], data: Data) -> dict[str, torch.Tensor]:
        try:
            return self._collator([data.rows[i].values for i in rows], data, rows)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UnreadableInput(
                f"{data.place(rows[0])}: this row and the {len(rows) - 1} after it in its batch cannot be made tensors: {reason}",
                "Give rows in the form that the run read.",
            ) from error

    @property
    def _batch_size(self) -> int:
        return max(1, int(self.settings.get("per_device_train_batch_size") or 8))

    def _next_rows(self, count: int, wanted: int) -> list[list[int]]:
        """Rows of the next batches.

        Trainer shuffles each epoch by a generator seeded with seed + epoch (accelerate's seedable sampler); with
        `train_sampling_strategy="sequential"` it reads the rows in order.
        """
        in_order = self.settings.get("train_sampling_strategy") == "sequential"
        size = min(self._batch_size, count)
        per_epoch = max(1, math.ceil(count / size))
        accumulation = max(1, int(self.settings.get("gradient_accumulation_steps") or 1))
        done = int(self.checkpoint.step or 0) * accumulation
        seed = int(self.settings.get("data_seed") or self.settings.get("seed") or 42)
        found: list[list[int]] = []
        while len(found) < wanted:
            epoch, position = divmod(done + len(found), per_epoch)
            shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(seed + epoch))
            order = list(range(count)) if in_order else shuffled.tolist()
            found.append(order[position * size : (position + 1) * size])
        return found


def _tied(model: Any) -> set[str]:
    """Names that share their tensor with another one."""
    seen: dict[int, str] = {}
    tied = set()
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if id(parameter) in seen:
            tied |= {name, seen[id(parameter)]}
        seen[id(parameter)] = name
    keys = getattr(model, "_tied_weights_keys", None) or ()
    return tied | set(keys) | {n for n, _ in model.named_buffers()}
