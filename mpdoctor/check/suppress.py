"""Findings that somebody has decided to live with: comments in the file, and a baseline of known ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpdoctor.check.sources.node import Document
from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.finding import Finding
from mpdoctor.core.location import FileSpan
from mpdoctor.core.rule import selected

SCHEMA = "mpdoctor.baseline/1"
_COMMENT = r"(?:#|//)\s*mpdoctor:\s*ignore(?P<whole>-file)?(?:\[(?P<codes>[^\]\n]*)\])?"


def without_ignored(findings: Sequence[Finding], documents: Iterable[Document]) -> tuple[list[Finding], int]:
    """Findings without those that a comment ignores, and how many those were.

    `# mpdoctor: ignore[CFG201] reason` counts for its own line and the line below; `ignore-file[...]` for the
    whole file. Entries are codes, prefixes or slugs; without brackets everything is ignored.
    """
    comments = {document.path: _comments(document.text) for document in documents if "mpdoctor:" in document.text}
    if not comments:
        return list(findings), 0
    kept = [finding for finding in findings if not _ignored(finding, comments)]
    return kept, len(findings) - len(kept)


def _comments(text: str) -> list[tuple[int | None, tuple[str, ...]]]:
    """Line (None for the whole file) and entries of each comment; no entries means all."""
    found: list[tuple[int | None, tuple[str, ...]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        for match in re.finditer(_COMMENT, line):
            codes = tuple(code.strip() for code in (match["codes"] or "").split(",") if code.strip())
            found.append((None if match["whole"] else number, codes))
    return found


def _ignored(finding: Finding, comments: dict[str, list[tuple[int | None, tuple[str, ...]]]]) -> bool:
    at = finding.location
    if not isinstance(at, FileSpan):
        return False
    for line, codes in comments.get(at.file, ()):
        here = line is None or (at.line is not None and at.line in (line, line + 1))
        if here and (not codes or selected(finding.code, finding.slug, select=codes)):
            return True
    return False


def read_baseline(path: str) -> frozenset[str]:
    """Fingerprints of the known findings. Raises UnreadableInput for a file that is no baseline."""
    import json

    hint = f"Write one with --baseline {path} --update-baseline."
    try:
        content = json.loads(Path(path).read_text("utf-8"))
        known = content["findings"] if content.get("schema") == SCHEMA else None
        fingerprints = [entry["fingerprint"] for entry in known] if isinstance(known, list) else None
    except FileNotFoundError:
        raise UnreadableInput(f"{path}: no such baseline", hint) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableInput(f"{path}: not a baseline of mpdoctor ({type(error).__name__}: {error})", hint) from None
    if fingerprints is None or not all(isinstance(fingerprint, str) for fingerprint in fingerprints):
        raise UnreadableInput(f"{path}: not a baseline of mpdoctor (its schema is not {SCHEMA})", hint)
    return frozenset(fingerprints)


def baseline_text(findings: Iterable[Finding]) -> str:
    """A baseline that knows these findings; sorted, so that it can be kept under version control."""
    from mpdoctor.core.jsonable import to_json

    entries = [
        {
            "fingerprint": finding.fingerprint,
            "code": finding.code,
            "file": getattr(finding.location, "file", None),
            "key": getattr(finding.location, "key", None),
            "message": finding.message,
        }
        for finding in findings
    ]
    entries.sort(key=lambda entry: (str(entry["file"]), str(entry["code"]), str(entry["key"]), str(entry["fingerprint"])))
    return to_json({"schema": SCHEMA, "findings": entries}) + "\n"
