"""Hits of the script rules: the place, what they rest on, and an identity that survives edits elsewhere."""

from __future__ import annotations

import ast

from mpdoctor.check.scripts.model import Script
from mpdoctor.check.scripts.patch import Edits, diff
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit

_LONGEST = 160
"""Characters of a line of code that are shown."""


def hit(
    script: Script,
    node: ast.expr | ast.stmt,
    message: str,
    *,
    remedy: str,
    edits: Edits = (),
    suggestion: Edits = (),
    because: tuple[tuple[ast.expr | ast.stmt, str], ...] = (),
    severity: Severity | None = None,
    confidence: Confidence | None = None,
    cause: str | None = None,
) -> Hit:
    """A hit at a node.

    Args:
        script: the script.
        node: what is wrong.
        message: what it does and what follows, in a sentence or two.
        remedy: what to change.
        edits: the changes that do it, where they are safe to be made unseen.
        suggestion: changes that are only shown.
        because: other places that the statement rests on, each with what is seen there.
        severity: overrides the rule's.
        confidence: overrides the rule's.
        cause: overrides the rule's.
    """
    at = script.source.span(node)
    # A script's finding stands at its line; in a notebook the line of the file says nothing to who reads it in Jupyter.
    told = [(node, shown(script, node))] if script.source.place is not None else []
    evidence = [
        Evidence(text=f"{_row(script, other)}: {text}", kind=EvidenceKind.CONFIG, where=script.source.span(other))
        for other, text in (*told, *because)
    ]
    shown_change = Remedy(text=remedy, patch=diff(script.source, edits or suggestion), edits=edits)
    return Hit(
        message=message, at=at, evidence=tuple(evidence), remedy=shown_change, severity=severity, confidence=confidence,
        cause=cause, related=tuple(script.source.span(other) for other, _ in because),
        identity=f"{script.context(node).scope.name}: {script.source.segment(node)}",
    )  # fmt: skip


def shown(script: Script, node: ast.expr | ast.stmt) -> str:
    """A node's code, shortened for messages."""
    text = script.source.segment(node)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _row(script: Script, node: ast.expr | ast.stmt) -> str:
    place = script.source.place
    return f"line {node.lineno}" if place is None else place.row(node.lineno)
