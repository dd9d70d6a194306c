"""Sessions from a Hugging Face Trainer checkpoint: model by `architectures`, settings, optimizer, scheduler, scaler, data order."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.activation_range import ActivationRange
from mpdoctor.replay.checkpoints import Checkpoint, settings_from
from mpdoctor.replay.data_evidence import DataEvidence
from mpdoctor.replay.live.activation_census import activation_census
from mpdoctor.replay.live.collator import Collator
from mpdoctor.replay.live.data import Data, read_data
from mpdoctor.replay.live.hf_adapter import build_adapted
from mpdoctor.replay.live.hf_model import build_model, folders_of
from mpdoctor.replay.live.hf_optimizer import build_optimizer, build_scheduler
from mpdoctor.replay.live.loss_weights import WEIGHT, adds_up, divides_by_count, weigh, weighted
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.row_order import RowOrder, accumulation, batch_size
from mpdoctor.replay.live.session import LoopSettings, Session
from mpdoctor.replay.live.weights import load_torch_file

DEFAULT_STEPS = 12
"""Steps that are replayed when `--steps` does not say otherwise."""
_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class HfCheckpointSource:
    """Sessions that continue a Trainer run from its checkpoint.

    Args:
        checkpoint: the opened folder.
        base: the opened folder of the base model, for an adapter.
        data: training data; None makes batches up, and dirty data stays untested.
        steps: how many steps to run.
        precision: `auto` takes the run's own.
        device: `cpu` or `cuda`: where model and batches go.
        trust_remote_code: run the model code that the folder itself carries.

    Raises:
        UnreadableInput: model, optimizer or data do not fit together.
        NothingToJudge: there is no data, and batches cannot be made up.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        base: Checkpoint | None = None,
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
        self.processes = max(1, len(list(self.folder.glob("rng_state_*.pth"))))
        self.micro_batches = accumulation(self.settings) * self.processes
        self.first_step = int(checkpoint.step or 0)
        if base is not None:
            self._model = build_adapted(checkpoint, base, self.notes, trust_remote_code=trust_remote_code)
        else:
            self._model = build_model(checkpoint, self.notes, trust_remote_code=trust_remote_code)
        self._optimizer_state = self._torch_file("optimizer.pt", "the optimizer starts without its moments")
        self._scheduler_state = self._torch_file("scheduler.pt")
        self._scaler_state = self._torch_file("scaler.pt")
        self._collator = Collator(Preprocessing(folders_of(checkpoint, base), self._model, self.settings, self.notes))
        self._batches, self._rows = self._make_batches()
        if self.micro_batches > 1 and self._batches and adds_up(self._model, checkpoint.config):
            counted = divides_by_count(lambda batch: getattr(self._output(self._model, batch), "loss", None), self._batches[0])
            self._batches = weighted(self._batches, self.micro_batches, by_labels=counted, shifted=self._shifted)
        if self.micro_batches > 1:
            self.notes.append(f"a step of the run is {self.micro_batches} batches; the replay counts each batch as a step")
        if self.processes > 1:
            self.notes.append(f"the run had {self.processes} processes: their batches run one after another here, and their gradients are averaged")

    def open(self) -> Session:
        """A copy of the run in the checkpoint's state."""
        model = copy.deepcopy(self._model).to(self.device)
        model.train()
        optimizer = build_optimizer(model, self.settings, self._optimizer_state, self.notes, self.folder)
        self._collator.leave_idle(model)
        scheduler = build_scheduler(optimizer, self.settings, self._scheduler_state, self.notes)
        self._restore_rng()
        clip = self.settings.get("max_grad_norm")
        has_scaler = self._scaler_state is not None and self.dtype is torch.float16
        asked = next(name for name, dtype in _PRECISIONS.items() if dtype is self.dtype)
        return Session(
            model=model,
            optimizer=optimizer,
            batches=self._batches,
            loss=self._loss,
            scheduler=scheduler,
            settings=LoopSettings(
                precision="fp32" if asked == "fp32" else f"{asked} autocast",
                asked=asked,
                scaler={} if has_scaler else None,
                clip=float(clip) if isinstance(clip, int | float) and clip > 0 else None,
                accumulation=self.micro_batches,
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

    def data_evidence(self) -> DataEvidence | None:
        """The data against the model's head; None without rows."""
        if self.data is None or not self.data.rows:
            return None
        found = {fault.row: fault for fault in self._collator.faults(self.data)} | self._collator.misfits
        replayed = frozenset(row for batch in self._rows for row in batch)
        dropped = self.settings.get("dataloader_drop_last")
        faults = [replace(f, step=self._order.step_of(f.row, self.first_step)) if len(found) <= 100 and not dropped else f for f in found.values()]
        return DataEvidence(path=self.data.path, rows=len(self.data.rows), faults=tuple(faults), replayed=replayed)

    def activations(self) -> ActivationRange | None:
        """The first batch's activations in the precision of the stored weights, for a run in fp16; None for other runs, and for fp16 weights."""
        dtypes = {p.dtype for p in self._model.parameters() if p.is_floating_point()}
        if self.dtype is not torch.float16 or not self._batches or torch.float16 in dtypes:
            return None
        batch = {name: value for name, value in self._batches[0].items() if name != WEIGHT}
        return activation_census(self._model, lambda: self._output(self._model, batch))

    def _output(self, model: torch.nn.Module, batch: Any) -> Any:
        """What the task's loss, or the model itself, makes of a batch."""
        loss = self._collator.loss(model, batch)
        return loss if loss is not None else model(**batch)

    def _loss(self, model: torch.nn.Module, batch: Any) -> torch.Tensor:
        """The model's own loss, under the run's autocast (CUDA's, as the run was)."""
        region = torch.autocast("cuda", dtype=self.dtype) if self.dtype is not torch.float32 else nullcontext()
        inputs = {name: value for name, value in batch.items() if name != WEIGHT}
        placed = {name: value.to(self.device) if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
        with region:
            output = self._output(model, placed)
            loss = output if isinstance(output, torch.Tensor) else self._smoothed(output, placed)
        if not isinstance(loss, torch.Tensor):
            raise UnreadableInput(f"{self.name}: the model returns no loss for this batch", "Give data with labels (--data), or a recipe (--recipe).")
        return weigh(loss.float(), batch)

    @property
    def _shifted(self) -> bool:
        """Whether each label is that of the token before it."""
        return self._collator.purpose == "causal language modelling"

    def _smoothed(self, output: Any, batch: Any) -> Any:
        """The loss of a model's output, with the run's label smoothing."""
        factor = self.settings.get("label_smoothing_factor")
        if not isinstance(factor, int | float) or factor <= 0 or not isinstance(batch.get("labels"), torch.Tensor) or not hasattr(output, "logits"):
            return getattr(output, "loss", None)
        from transformers.trainer_pt_utils import LabelSmoother

        return LabelSmoother(float(factor))(output, batch["labels"], shift_labels=self._shifted)

    # -- parts

    def _compute_dtype(self, precision: str) -> torch.dtype:
        if precision in _PRECISIONS:
            return _PRECISIONS[precision]
        if self.settings.get("fp16"):
            return torch.float16
        return torch.bfloat16 if self.settings.get("bf16") else torch.float32

    def _torch_file(self, name: str, missed: str | None = None) -> Any:
        path = self.folder / name
        if not path.is_file():
            if missed is not None:
                self.notes.append(f"the folder has no {name}: {missed}")
            return None
        try:
            return load_torch_file(path)
        except UnreadableInput as error:
            self.notes.append(f"{error.message}; the replay starts without it")
            return None

    def _restore_rng(self) -> None:
        """The run's random state; a seed where the file is missing."""
        path = self.folder / ("rng_state.pth" if self.processes == 1 else "rng_state_0.pth")
        state: dict[str, Any] = {}
        if path.is_file():
            try:
                import numpy

                allowed: list[Any] = [numpy.empty(0).__reduce__()[0], numpy.ndarray, numpy.dtype, type(numpy.dtype(numpy.uint32))]
                with torch.serialization.safe_globals(allowed):
                    state = torch.load(path, map_location="cpu", weights_only=True)
            except Exception:  # an older layout, or one that needs more than NumPy's arrays
                self.notes.append(f"{path.name} was not restored: dropout is drawn anew")
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
        wanted = self.steps * self.micro_batches
        if self.data is None:
            self.notes.append("no data was given: batches are made up, and dirty data stays untested")
            return [self._collator.made_up(batch_size(self.settings), i) for i in range(wanted)], []
        if self.data.batches:
            return [self._collator.ready(b) for b in self.data.batches[:wanted]], []
        order = self._order.batches(self.first_step, wanted)
        return [self._batch(rows, self.data) for rows in order], order

    @cached_property
    def _order(self) -> RowOrder:
        data = self.data
        assert data is not None
        return RowOrder(
            len(data.rows), self.settings, self.processes, lambda: [self._collator.length(data, i) for i in range(len(data.rows))], self.notes
        )

    def _batch(self, rows: list[int], data: Data) -> dict[str, torch.Tensor]:
        try:
            return self._collator.batch(data, rows)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UnreadableInput(
                f"{data.place(rows[0])}: this row and the {len(rows) - 1} after it in its batch cannot be made tensors: {reason}",
                "Give rows in the form that the run read.",
            ) from error
