"""Repairs: the edits that findings propose, made in the user's own text, comments and formatting kept.

An edit is made only where the file still holds what the finding saw. A config is changed only if the
changed text parses and differs from the old one in the edited settings alone; a script only if it parses.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.check.sources.python_ import syntax_tree
from mpdoctor.check.sources.text import decode
from mpdoctor.check.splice import splice
from mpdoctor.core.errors import MpdoctorError, UnreadableInput
from mpdoctor.core.finding import Edit, Finding

_SYNTAXES = ("yaml", "json", "toml")
"""Where settings are edited. Those in scripts and launch lines are reported only."""


class Repair(NamedTuple):
    """A changed file: its path, text before and after (line ends as in the file), the codes of the findings that it repairs, and the edits."""

    path: str
    before: str
    after: str
    codes: tuple[str, ...]
    edits: tuple[Edit, ...]

    def diff(self) -> str:
        """The change as a unified diff."""
        name = self.path if self.path.isprintable() else ascii(self.path)[1:-1]
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def write(self) -> None:
        """Put the new text in place, whole or not at all. Raises UnreadableInput when the file cannot be written."""
        target = Path(os.path.realpath(self.path))
        try:
            data = target.read_bytes()
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_encoded(self.after, data))
                Path(temporary).chmod(target.stat().st_mode & 0o7777)
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise UnreadableInput(f"{self.path}: cannot be written: {error.strerror or error}") from None


def repairs(findings: Sequence[Finding], documents: Iterable[Document]) -> list[Repair]:
    """One repair per file that can be repaired, by path. A finding's edits are all made, over all files, or none of them."""
    paths = _by_path(documents)
    proposing = [finding for finding in findings if finding.remedy and finding.remedy.edits]
    while True:
        planned = [repair for path, parts in paths.items() if (repair := _planned(path, parts, proposing)) is not None]
        made = {edit for repair in planned for edit in repair.edits}
        whole = [finding for finding in proposing if finding.remedy and made.issuperset(finding.remedy.edits)]
        if len(whole) == len(proposing):
            return sorted(planned, key=lambda repair: repair.path)
        proposing = whole


def _planned(path: str, parts: list[Document], proposing: Sequence[Finding]) -> Repair | None:
    proposed = [(edit, finding.code) for finding in proposing if finding.remedy for edit in finding.remedy.edits if edit.at.file == path]
    if not proposed or path == "-":
        return None
    if parts[0].syntax in _SYNTAXES:
        return _repaired(path, parts, proposed)
    return _script_repaired(path, parts, [(edit, code) for edit, code in proposed if edit.at.key is None])


def _by_path(documents: Iterable[Document]) -> dict[str, list[Document]]:
    paths: dict[str, list[Document]] = {}
    for document in documents:
        paths.setdefault(document.path, []).append(document)
    return paths


def _repaired(path: str, parts: list[Document], proposed: list[tuple[Edit, str]]) -> Repair | None:
    try:
        before = _original(path)
    except (OSError, MpdoctorError):
        return None
    lines = _lines(before)
    done: dict[str, str | None] = {}
    made: list[Edit] = []
    removed: set[int] = set()
    # From the end of the file to its start, so that places stay right while lines change.
    for edit, _ in sorted(proposed, key=lambda item: (-(item[0].at.line or 0), -(item[0].at.column or 0))):
        key = edit.at.key or ""
        if key in done or not (_deleted(lines, removed, parts, edit) if edit.new is None else _changed(lines, parts, edit)):
            continue
        done[key] = edit.new
        if edit.key:
            done[f"{key.rpartition('.')[0]}.{edit.key}".lstrip(".")] = edit.new
        made.append(edit)
    after = "".join(line for index, line in enumerate(lines) if index not in removed)
    if not done or after == before or not _only(done, parts, path, after):
        return None
    return Repair(path, before, after, tuple(sorted({code for edit, code in proposed if edit in made})), tuple(made))


def _script_repaired(path: str, parts: list[Document], proposed: list[tuple[Edit, str]]) -> Repair | None:
    """A script with the edits made: nothing else in it changes, and it still parses."""
    text = parts[0].text
    try:
        before = _original(path)
    except (OSError, MpdoctorError):
        return None
    body = before.removeprefix("\ufeff")
    end = "\r\n" if "\r\n" in body else "\n"
    if parts[0].syntax != "python" or body != text.replace("\n", end):
        return None  # it has changed since it was judged, or mixes line ends
    after, made = splice(text, [edit for edit, _ in proposed])
    if not made:
        return None
    try:
        syntax_tree(after, path)
    except UnreadableInput:
        return None
    mark = before[: len(before) - len(body)]
    return Repair(path, before, mark + after.replace("\n", end), tuple(sorted({code for edit, code in proposed if edit in made})), tuple(made))


def _changed(lines: list[str], parts: list[Document], edit: Edit) -> bool:
    """Replace the value at the edit's place, when it still reads as the finding saw it."""
    node = _node(parts, edit)
    if edit.key:
        return node is not None and _renamed(lines, edit, edit.key)
    line = node.value_line or edit.at.line if node is not None else edit.at.line
    if node is None or line is None or not 0 < line <= len(lines):
        return False
    text = lines[line - 1]
    start = text.find(edit.old, _after_key(text, edit, node, line))
    between = text[_after_key(text, edit, node, line) : start] if start >= 0 else "x"
    if start < 0 or between.strip(" \t\"'"):
        return False
    end = start + len(edit.old)
    new = edit.new or ""
    if new[:1] in "\"'" and text[start - 1 : start] in ("'", '"') and text[end : end + 1] == text[start - 1 : start]:
        start, end = start - 1, end + 1
    lines[line - 1] = text[:start] + new + text[end:]
    return True


def _renamed(lines: list[str], edit: Edit, to: str) -> bool:
    """Give the key at the edit's place another name, quotes around it kept."""
    number, column, name = edit.at.line or 0, edit.at.column or 0, (edit.at.key or "").rpartition(".")[2]
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    start = column - 1 + (text[column - 1 : column] in ("'", '"'))
    rest = text[start + len(name) :].lstrip("\"' \t")
    if column < 1 or not name or text[start : start + len(name)] != name or not rest.startswith((":", "=")):
        return False
    lines[number - 1] = text[:start] + to + text[start + len(name) :]
    return True


def _after_key(text: str, edit: Edit, node: Node, line: int) -> int:
    """Where the value may begin: its own column, or after the colon or equals sign that follows the key."""
    if node.value_line == line and node.value_column > 1 and (node.value_line, node.value_column) != (node.line, node.column):
        return node.value_column - 1
    name = (edit.at.key or "").rpartition(".")[2]
    at = text.find(name, max((edit.at.column or 1) - 1, 0)) + len(name)
    while at < len(text) and text[at] in " \t\"':=":
        at += 1
    return min(at, len(text)) if at < len(text) else len(text)


def _deleted(lines: list[str], removed: set[int], parts: list[Document], edit: Edit) -> bool:
    """Take a line out that holds the setting and nothing else."""
    node, number = _node(parts, edit), edit.at.line
    if node is None or number is None or not 0 < number <= len(lines) or parts[0].syntax == "json":
        return False
    text = lines[number - 1].split("#")[0].strip()
    name = (edit.at.key or "").rpartition(".")[2]
    alone = text.startswith((f"{name}:", f"{name} :", f"{name}=", f"{name} =")) and text.rstrip("\"'").endswith(edit.old.strip("\"'"))
    if not alone or node.is_mapping or node.is_sequence:
        return False
    removed.add(number - 1)
    return True


def _only(done: dict[str, str | None], parts: list[Document], path: str, after: str) -> bool:
    """Whether the new text parses, and only the edited settings differ."""
    try:
        again = load(path, after.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"))
    except MpdoctorError:
        return False
    old = [_flat(document.root) for document in load(path, parts[0].text)]
    new = [_flat(document.root) for document in again]
    if len(old) != len(new):
        return False
    for was, now in zip(old, new, strict=True):
        different = {key for key in was.keys() | now.keys() if was.get(key, _ABSENT) != now.get(key, _ABSENT)}
        if any(not any(key == edited or key.endswith(f".{edited}") for edited in done) for key in different):
            return False
    return True


_ABSENT = object()


def _flat(root: Node) -> dict[str, object]:
    return {key: (node.value, node.raw) for key, node in root.walk() if not node.is_mapping and not node.is_sequence}


def _node(parts: list[Document], edit: Edit) -> Node | None:
    for document in parts:
        node = document.get(edit.at.key or "")
        if node is not None and node.line == edit.at.line and node.source == document.path:
            return node
    return None


def _original(path: str) -> str:
    """The file's text with its own line ends and byte order mark."""
    data = Path(path).read_bytes()
    decode(data, path)
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")


def _encoded(text: str, data: bytes) -> bytes:
    return text.encode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")


def _lines(text: str) -> list[str]:
    """Lines with their ends, split where YAML, JSON and TOML split them (not at form feeds)."""
    parts = text.replace("\r\n", "\n\0").split("\n")
    lines = []
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        crlf = not last and parts[index + 1].startswith("\0")
        line = part.removeprefix("\0") + ("" if last else "\r\n" if crlf else "\n")
        if line:
            lines.append(line)
    return lines
