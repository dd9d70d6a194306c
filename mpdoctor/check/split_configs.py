"""One config that is split over several files, which the framework merges before it reads them (`python deepy.py train.py a.yml b.yml`)."""

from __future__ import annotations

from collections.abc import Sequence

from mpdoctor.check.dialect import Dialect, dialects
from mpdoctor.check.sources.node import Document, Duplicate, Node

Member = tuple[Document, Dialect]
MOST_SHARED = 0.5
"""Files that share more than this part of the smaller one's keys are configs of different runs, not parts of one."""


def put_together(members: Sequence[Member], unclaimed: Sequence[Document]) -> tuple[list[Member], list[Document]]:
    """The members with the parts of a split config merged into one document, and the documents that went into it.

    Args:
        members: files named together, with their dialect.
        unclaimed: files named with them that no dialect claims alone (paths and logging, say).
    """
    for dialect in dialects().values():
        if not dialect.split:
            continue
        whole = [document for document, claimed in members if claimed is dialect]
        parts = [*whole, *(document for document in unclaimed if document.syntax == "yaml" and document.root.is_mapping)]
        if len(parts) < 2 or len({document.path for document in parts}) < len(parts) or _different_runs(whole):
            continue
        merged = _merged(parts)
        if dialect.claim(merged) > 0:
            kept = [member for member in members if member[1] is not dialect]
            return [*kept, (merged, dialect)], parts
    return list(members), []


def _different_runs(documents: Sequence[Document]) -> bool:
    names = [{_name(key) for key in document.keys} for document in documents]
    pairs = [(a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    return any(len(a & b) > MOST_SHARED * min(len(a), len(b)) for a, b in pairs)


def _merged(parts: Sequence[Document]) -> Document:
    """The top-level keys of all files, `-` and `_` alike; the last one counts where a key stands in several."""
    first, *others = parts
    keys: dict[str, tuple[str, Node]] = {}
    duplicates = [duplicate for part in parts for duplicate in part.duplicates]
    for part in parts:
        for key, node in part.root.mapping.items():
            name = _name(key)
            if name in keys:
                before, where = keys[name]
                duplicates.append(Duplicate(key, where.span(before), node.span(key), node.same_scalar(where)))
            keys[name] = key, node
    root = first.root.with_value(dict(keys.values()))
    merged = first.with_root(root)
    merged.duplicates, merged.parts = duplicates, others
    return merged


def _name(key: str) -> str:
    return key.replace("-", "_")
