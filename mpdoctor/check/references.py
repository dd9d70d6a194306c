"""Configs inside configs: a DeepSpeed config that a trainer's file holds or names."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.check.dialect import Dialect, dialects
from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.rule import Skipped

KEYS = ("deepspeed", "deepspeed_config.deepspeed_config_file", "deepspeed_config", "dist_config.config_file")
"""Where trainers' and launchers' files hold or name one."""


def referenced(document: Document, dialect: Dialect, skipped: list[Skipped]) -> list[tuple[Document, Dialect]]:
    """The DeepSpeed config that a document holds or names.

    A name is looked for from the document's own folder upwards to the repository's root (where such names usually start), and from the
    current folder.
    """
    engine = dialects().get("deepspeed")
    if engine is None or dialect.name in ("deepspeed", "gpt_neox"):
        return []
    for key in KEYS:
        node = document.get(key)
        if node is None or node.value is None:
            continue
        if node.is_mapping and key == "deepspeed":
            return [(Document(path=document.path, syntax=document.syntax, root=node, text=document.text), engine)]
        if isinstance(node.value, str) and node.value.endswith(".json"):
            return _named(document, node, key, engine, skipped)
    return []


def _named(document: Document, node: Node, key: str, engine: Dialect, skipped: list[Skipped]) -> list[tuple[Document, Dialect]]:
    name = str(node.value)
    for folder in _starts(document.path):
        path = folder / name
        try:
            inside = path.resolve().is_relative_to(folder.resolve())
            if inside and path.is_file():
                return [(found, engine) for found in load(path.as_posix())]
        except UnreadableInput:
            raise
        except (OSError, ValueError):
            break
    where = document.path if node.line == 0 else f"{document.path}:{node.line}"
    skipped.append(Skipped(what=name, why=f"`{key}` at {where} names this DeepSpeed config, which is not there: its precision is unknown"))
    return []


def _starts(path: str) -> list[Path]:
    """Folders that a relative name may start from, nearest first."""
    parent = Path(path).parent
    found = [parent]
    for folder in list(parent.absolute().parents)[:6]:
        if (found[-1] / ".git").exists() or folder == folder.parent:
            break
        found.append(folder)
    return [*found, Path()]
