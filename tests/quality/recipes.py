"""Where the recipes stand, and how their literals are read without running them.

A fault (`faults/*.py`) has `TRUTH` (causes: the first is the best answer; where the first harmful non-finite value comes from, or where
the step raises; the symptom) and `REPAIR`, textual edits that give its twin, which trains well. A healthy run (`healthy/*.py`) looks
suspicious and is not.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FAULTS = HERE / "faults"
HEALTHY = HERE / "healthy"


def literal(path: Path, name: str) -> Any:
    """The literal that a recipe assigns to `name`, read without running the recipe; None where there is none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return ast.literal_eval(node.value)
    return None


def repaired(path: Path, edits: list[tuple[str, str]] | None = None) -> str:
    """The source of a fault's twin: its own `REPAIR`, each edit exactly once, or `edits` from elsewhere, wherever they apply.

    Raises:
        ValueError: an edit does not apply.
    """
    text = path.read_text(encoding="utf-8")
    for old, new in literal(path, "REPAIR") if edits is None else edits:
        head, mark, tail = text.partition("\nREPAIR =")
        if not head.count(old) or (edits is None and head.count(old) > 1):
            raise ValueError(f"{path.name}: the repair {old!r} applies {head.count(old)} times")
        text = head.replace(old, new) + mark + tail
    return text
