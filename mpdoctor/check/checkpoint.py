"""A checkpoint folder as a config: what its metadata says about the run that wrote it.

Weights are not read. The reader is handed in by `api`, because reading checkpoints belongs to `replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mpdoctor.check.dialect import Dialect, dialects, recognise
from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import MAX_DEPTH, Document, Node
from mpdoctor.core.errors import UnreadableInput

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class CheckpointFacts(NamedTuple):
    """What a checkpoint's metadata tells.

    Attributes:
        settings: the training arguments by Hugging Face's names; empty when none were saved.
        settings_file: the file that they come from.
        log: entries of the run's log, as the Trainer writes them.
        weights: number of elements by torch's dtype name, from the files' headers.
        adapters: the same for adapter weights.
        scale: the loss scaler's scale when the checkpoint was written; None without a scaler.
        weights_file: a file that holds weights, for findings to point at.
        scaler_file: the file that holds the scaler.
    """

    settings: Mapping[str, Any] = _NOTHING
    settings_file: str = ""
    log: tuple[Mapping[str, Any], ...] = ()
    log_file: str = ""
    weights: Mapping[str, int] = _NOTHING
    adapters: Mapping[str, int] = _NOTHING
    scale: float | None = None
    weights_file: str = ""
    scaler_file: str = ""


CheckpointReader = Callable[[str], CheckpointFacts]
"""Reads a checkpoint folder's metadata. Raises MpdoctorError for one that cannot be read."""


def members(folder: str, read: CheckpointReader | None) -> list[tuple[Document, Dialect]]:
    """The documents of a checkpoint folder: model and adapter config, training arguments, log, and what the files hold."""
    known = dialects()
    found: list[tuple[Document, Dialect]] = []
    for name in ("config.json", "adapter_config.json"):
        path = Path(folder) / name
        if path.is_file():
            for document in load(path.as_posix()):
                dialect = recognise(document).dialect
                if dialect is not None:
                    found.append((document, dialect))
    facts = read(folder) if read is not None else CheckpointFacts()
    if facts.settings:
        source = facts.settings_file or folder
        root = plain_node(dict(facts.settings), source)
        found.append((Document(path=source, syntax="pickle", root=root, constructor="TrainingArguments"), known["hf_trainer"]))
    evidence = {
        "weights": dict(facts.weights), "adapters": dict(facts.adapters), "scale": facts.scale, "log_history": [dict(entry) for entry in facts.log],
        "weights_file": facts.weights_file, "scaler_file": facts.scaler_file,
    }  # fmt: skip
    if facts.weights or facts.adapters or facts.log or facts.scale is not None:
        root = plain_node(evidence, facts.log_file or folder)
        found.append((Document(path=facts.log_file or folder, syntax="checkpoint", root=root, constructor="checkpoint"), known["checkpoint_facts"]))
    return found


def plain_node(value: Any, source: str, depth: int = 1) -> Node:
    """Plain values as a tree without places."""
    if depth > MAX_DEPTH:
        raise UnreadableInput(f"{source}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return Node({str(key): plain_node(item, source, depth + 1) for key, item in value.items()}, source, 0, 0)
    if isinstance(value, (list, tuple)):
        return Node([plain_node(item, source, depth + 1) for item in value], source, 0, 0)
    scalar = value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
    raw = None if scalar is None else str(scalar).lower() if isinstance(scalar, bool) else str(scalar)
    return Node(scalar, source, 0, 0, raw=raw)
