"""Inheritance: `_base_` (mmengine), `_BASE_` (detectron2), `defaults` (Hydra), merged into one document.

Only relative paths are followed, and only below the current folder, the folders that were named, and the
folder above the file's own (where shared bases usually lie). Nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.errors import UnreadableInput

MAX_INCLUDES = 50
"""Most files that one config may pull in."""
_KEYS = ("_base_", "_BASE_")


def with_bases(document: Document, folders: Sequence[str] = (), *, above: tuple[str, ...] = ()) -> Document:
    """The document over the documents that it names as its base. Raises UnreadableInput for one that is missing or includes itself."""
    if not document.root.is_mapping or document.constructor or document.path == "-":
        return document
    names = list(_bases(document))
    if not names:
        return document
    here = str(Path(document.path).resolve())
    merged: dict[str, Node] = {}
    missing = list(document.missing)
    for node, name, required, package in names:
        path = _inside(document.path, name, folders)
        if path is None:
            missing.append((node.span(), f"{name} lies outside the given files, and was not read"))
            continue
        if not path.is_file():
            if not required:
                missing.append((node.span(), f"{name} is not there"))
                continue
            raise UnreadableInput(f"{node.source}:{node.line}:{node.column}: the base config {name} is not there", f"Looked for {path.as_posix()}.")
        if str(path.resolve()) in (*above, here):
            raise UnreadableInput(f"{node.source}:{node.line}:{node.column}: the config includes itself through {name}")
        if len(above) >= MAX_INCLUDES:
            raise UnreadableInput(f"{node.source}:{node.line}: more than {MAX_INCLUDES} files include each other")
        for base in load(path.as_posix())[:1]:
            full = with_bases(base, folders, above=(*above, here))
            missing += full.missing
            merged = _over(_placed(full, package), merged, 1)
    own = {key: child for key, child in document.root.mapping.items() if key not in _KEYS}
    return document.with_root(document.root.with_value(_over(own, merged, 1)), missing)


def _bases(document: Document) -> Iterable[tuple[Node, str, bool, str]]:
    """For each base that is named: node, path, whether the file must be there, and the key that its content goes under (empty for the top)."""
    for key in _KEYS:
        node = document.get(key)
        if node is None:
            continue
        for item in node.items or [node]:
            if isinstance(item.value, str) and item.pending is None:
                yield item, item.value, True, ""
    defaults = document.get("defaults")
    if defaults is not None and document.syntax == "yaml":
        for item in defaults.items:
            if isinstance(item.value, str) and item.value != "_self_" and not item.value.startswith("/"):
                # `- base` is base.yaml beside the file, merged at the top; `- base@model` under `model`.
                name, _, package = item.value.partition("@")
                yield item, f"{name.removesuffix('.yaml')}.yaml", False, package
            for group, choice in item.mapping.items():
                if isinstance(choice.value, str) and not group.startswith(("override ", "optional ", "/", "hydra")):
                    # Hydra: `optimizer: adam` is optimizer/adam.yaml under `optimizer`; `data@train.data: x` is data/x.yaml under `train.data`.
                    folder, _, package = group.partition("@")
                    yield choice, f"{folder}/{choice.value.removesuffix('.yaml')}.yaml", False, package or folder.replace("/", ".")


def _placed(document: Document, package: str) -> dict[str, Node]:
    """The document's content under its package; `# @package _global_` puts it at the top."""
    root = document.root
    if not package or "@package _global_" in document.text[:200]:
        return root.mapping
    for part in reversed(package.split(".")[:20]):
        root = Node({part: root}, root.source, root.line, root.column)
    return root.mapping


def _inside(source: str, name: str, folders: Sequence[str]) -> Path | None:
    """The base's path when it may be read; None for what is absolute, a URL, a package's, or outside."""
    if "://" in name or "::" in name or name.startswith(("/", "~")) or "${" in name or "{{" in name:
        return None
    parent = Path(source).parent
    path = Path(os.path.normpath(parent / name))
    try:
        resolved = path.resolve()
        allowed = [Path.cwd(), parent.resolve(), parent.resolve().parent, *(Path(folder).resolve() for folder in folders)]
    except (OSError, ValueError):
        return None
    return path if any(resolved.is_relative_to(folder) for folder in allowed) else None


def _over(child: dict[str, Node], base: dict[str, Node], depth: int) -> dict[str, Node]:
    """The child's values over the base's, mappings merged; `_delete_=True` drops the base's."""
    result = dict(base)
    for key, node in child.items():
        below = result.get(key)
        dropped = node.mapping.get("_delete_")
        if below is not None and below.is_mapping and node.is_mapping and not (dropped and dropped.value) and depth < 50:
            result[key] = node.with_value(_over(node.mapping, below.mapping, depth + 1))
        else:
            result[key] = node
    return result
