"""What a checkpoint's files hold: dtypes of the stored tensors, the loss scaler's state, the run's log. Also a bare `trainer_state.json`."""

from __future__ import annotations

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.dtypes import dtype_name
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.location import FileSpan
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig


def claim(document: Document) -> float:
    """The facts read from a folder, or a log of the HF Trainer."""
    if document.constructor == "checkpoint":
        return 100
    return 90 if {"log_history", "global_step"} <= document.keys else 0


def lift(reader: Reader) -> TrainingConfig:
    """Evidence about the run; few settings."""
    stored = _main_dtype(reader.document.get("weights"), str(reader.text("weights_file").value or reader.path))
    adapters = _main_dtype(reader.document.get("adapters"), str(reader.text("weights_file").value or reader.path))
    scale = reader.number("scale")
    if scale.known:
        scale = Setting(scale.value, Origin.EXPLICIT, FileSpan(file=str(reader.text("scaler_file").value or reader.path), key="scale"), scale.raw)
    return TrainingConfig(
        dialect="checkpoint_facts",
        files=(reader.path,),
        stored_dtype=stored,
        adapter_dtype=adapters,
        total_steps=_positive(reader.integer("max_steps")),
        log_every=reader.integer("logging_steps"),
        extra={"checkpoint.scale": scale},
    )


def _main_dtype(node: Node | None, file: str) -> Setting[str]:
    """The dtype that most stored elements have, among those that weights can have."""
    counts = {name: child.value for name, child in node.mapping.items() if isinstance(child.value, int)} if node is not None else {}
    known = {dtype: count for name, count in counts.items() if (dtype := dtype_name(name)) is not None}
    if not known:
        return UNKNOWN
    dtype = max(known, key=lambda name: known[name])
    return Setting(dtype, Origin.EXPLICIT, FileSpan(file=file, key="dtype"), dtype)


def _positive(setting: Setting[int]) -> Setting[int]:
    return setting if setting.value is not None and setting.value > 0 else UNKNOWN


DIALECT = Dialect(title="a checkpoint's contents", role=Role.HISTORY, version="transformers 5.24", claim=claim, lift=lift)
