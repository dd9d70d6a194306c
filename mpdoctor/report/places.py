"""Findings and places in words, and in the form that machine formats need."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from urllib.parse import quote

from mpdoctor.core.finding import Finding
from mpdoctor.core.location import DeviceRef, FileSpan, Phase, TensorSite
from mpdoctor.core.report import Report


def worst_first(report: Report) -> list[Finding]:
    """All findings, the worst first, then by place and code."""
    return sorted(report.findings, key=lambda f: (-f.severity.rank, *place_key(f), f.code))


def place_key(finding: Finding) -> tuple[str, int]:
    """Sorts findings by file and line."""
    span = span_of(finding)
    return (span.file, span.line or 0) if span else ("", 0)


def span_of(finding: Finding) -> FileSpan | None:
    """The place in a file that a finding is about, also when that is the code of an op in a training step."""
    match finding.location:
        case FileSpan() as span:
            return span
        case TensorSite(source=source):
            return source
    return None


def logical_place(finding: Finding) -> str | None:
    """Config key, module or device of a finding."""
    match finding.location:
        case FileSpan(key=key):
            return key
        case TensorSite(module=module, tensor=tensor, op=op, phase=phase):
            return ".".join(part for part in (module, tensor or op) if part) or phase.value
        case DeviceRef() as device:
            return str(device)
        case None:
            return None


def relative(path: str) -> str:
    """A path as repositories write it: forward slashes, no leading `./`."""
    return PurePath(path).as_posix()


def uri(path: str) -> str:
    """A path as a URI reference: relative when the path is."""
    pure = PurePath(path)
    quoted = quote(pure.as_posix(), errors="backslashreplace")
    return f"file://{quoted}" if pure.is_absolute() else quoted


_PACKAGES = re.compile(r".*[/\\\\](?:site|dist)-packages[/\\\\]")


def shown_path(path: str) -> str:
    """A path as a reader wants it: library files from their package on, files below the current folder relative to it."""
    path = _PACKAGES.sub("", path)
    here = f"{Path.cwd()}{os.sep}"
    return path[len(here) :] if path.startswith(here) else path


def source(span: FileSpan | None) -> str:
    """A place in a file as a reader wants it: `file:line`, see `shown_path`."""
    if span is None:
        return ""
    file = shown_path(span.file)
    return f"{file}:{span.line}" if span.line else file


def place(site: TensorSite) -> str:
    """A site of a training step in a few words: tensor, or op in module."""
    what = site.tensor or (site.op or "").removeprefix("aten.")
    if site.module:
        return f"{site.module} ({what})" if what else site.module
    outside = "loss code" if site.phase == Phase.LOSS else "the root module" if site.phase == Phase.FORWARD else ""
    return f"{outside} ({what})" if outside and what else what or outside or site.phase.value


def ranges(rows: Iterable[int]) -> str:
    """Row numbers, neighbours joined: `0-2, 7`."""
    groups: list[list[int]] = []
    for row in sorted(set(rows)):
        if groups and row == groups[-1][-1] + 1:
            groups[-1].append(row)
        else:
            groups.append([row])
    texts = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups]
    return ", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")
