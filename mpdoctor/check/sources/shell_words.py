"""Words of a shell script with their places; simple variables and arrays expanded. Nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mpdoctor.check.sources.node import MAX_NODES
from mpdoctor.check.sources.shell_branches import branches
from mpdoctor.core.errors import UnreadableInput

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[@*]\])?(?::?[-=]([^}]*))?\}|\$([A-Za-z_]\w*)")
_WHOLE = re.compile(r"\$\{?([A-Za-z_]\w*)(\[[@*]\])?\}?")
_CLOSERS = {"(": ")", "{": "}"}
_HEREDOC = re.compile(r"<<-?[ \t]*[\"']?([A-Za-z_]\w*)[\"']?")
_MAX_EXPANSIONS = 10_000
_NOT_TAKEN = -1
"""Stands in a word's branch for "when the branch is not taken"."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word: text without quotes, where it starts, whether any of it was quoted."""

    text: str
    line: int
    column: int
    quoted: bool = False
    branch: tuple[int, ...] = ()
    """The `if` and `case` branches and `&&` lists, from the outermost, in which a variable got this word."""
    conditional: bool = False
    """Whether it depends on a test whether this word is there."""


def commands(text: str, path: str) -> list[list[Word]]:
    """The script's commands as lists of words, assignments taken out and their values put in where they are used."""
    found: list[list[Word]] = []
    values: dict[str, list[Word]] = {}
    spent = 0
    for statement, branch in branches(_statements(text, path)):
        words: list[Word] = []
        for index, word in enumerate(statement):
            assigned = _ASSIGNMENT.fullmatch(word.text) if not words else None
            if assigned and not word.quoted_name:
                values[assigned[1]] = _assigned(assigned[1], word.parts, values, branch, adds=bool(assigned[2]))
            elif index == 0 and word.text == "export":
                continue
            else:
                words += [w for part in word.parts for w in _expanded(part, values, branch)]
            spent += len(words) + 1
            if spent > MAX_NODES or sum(map(len, values.values())) > _MAX_EXPANSIONS:
                raise UnreadableInput(f"{path}:{word.line}: more words than any launch script has")
        if words:
            found.append(words)
    return found


def _assigned(name: str, parts: list[Word], values: dict[str, list[Word]], branch: tuple[int, ...], *, adds: bool) -> list[Word]:
    """What a variable may hold after an assignment. `ARGS=("${ARGS[@]}" --fp16)` adds to it as `ARGS+=(--fp16)` does."""
    before, kept = values.get(name, []), adds
    words: list[Word] = []
    for part in parts:
        whole = _WHOLE.fullmatch(part.text)
        if whole and whole[1] == name:
            kept = True
        else:
            words += [replace(word, branch=branch) for word in _expanded(part, values, branch)]
    return [*before, *words] if kept else [*_surviving(before, branch), *words]


def _surviving(words: list[Word], branch: tuple[int, ...]) -> list[Word]:
    """What a variable may still hold after an assignment in a branch: its earlier value, where the branch may not be taken."""
    return [replace(word, branch=(*branch, _NOT_TAKEN)) for word in words if word.branch[: len(branch)] != branch]


def _expanded(word: Word, values: dict[str, list[Word]], branch: tuple[int, ...]) -> list[Word]:
    """A word with its variables replaced; a whole-word variable gives the words of its value, at their own places."""
    if "$" not in word.text:
        return [word]
    whole = _WHOLE.fullmatch(word.text)
    if whole and whole[1] in values and (not word.quoted or whole[2]):
        return [replace(value, conditional=value.conditional or _uncertain(value, branch)) for value in values[whole[1]]]

    def put(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        if name in values:
            uncertain = any(value.conditional or _uncertain(value, branch) for value in values[name])
            return match[0] if uncertain else " ".join(value.text for value in values[name])
        return match[2].strip("\"'") if match[2] else match[0]

    text = _VARIABLE.sub(put, word.text)
    if len(text) > 100_000:
        return [word]
    return [replace(word, text=text)]


def _uncertain(word: Word, branch: tuple[int, ...]) -> bool:
    """Whether a variable got a word in a branch that need not be taken where it is used."""
    return word.branch != branch[: len(word.branch)]


@dataclass(slots=True)
class _Raw:
    """A word as scanned. For an assignment `parts` are the words of its value (several for an array or a quoted list of flags)."""

    text: str
    line: int
    column: int
    parts: list[Word]
    quoted_name: bool = False


def _statements(text: str, path: str) -> list[tuple[list[_Raw], str]]:
    """The statements, each with the operator before it (`&&`, `||`, `;;`; empty for any other)."""
    found: list[tuple[list[_Raw], str]] = []
    current: list[_Raw] = []
    operator = ""
    at, line, start_of_line = 0, 1, 0
    size = len(text)
    heredocs: list[str] = []
    while at < size:
        char = text[at]
        if char == "\\" and text[at + 1 : at + 2] == "\n":
            at, line, start_of_line = at + 2, line + 1, at + 2
        elif char == "\n" or char in ";&|)":  # a bracket closes a subshell or a pattern of `case`
            if current:
                found.append((current, operator))
                current, operator = [], ""
            double = text[at : at + 2] in ("&&", "||", ";;")
            operator = text[at : at + 2] if double else operator if char == "\n" else ""
            at += 2 if double else 1
            if char == "\n":
                for delimiter in heredocs:
                    end = _after_heredoc(text, at, delimiter)
                    if found and found[-1][0][0].text == "read":  # `read -r -d '' NAME <<EOF`: the text is the variable's value
                        last = found[-1][0][-1]
                        body = _inside(text, at, text.rfind("\n", at, end - 1) + 1, line + 1, at, path)
                        found.append(([_Raw(f"{last.text}=", last.line, last.column, body)], ""))
                    line, at = line + text.count("\n", at, end), end
                heredocs = []
                line, start_of_line = line + 1, at
        elif char in " \t":
            at += 1
        elif char == "#":
            end = text.find("\n", at)
            at = size if end < 0 else end
        elif match := _HEREDOC.match(text, at):
            heredocs.append(match[1])
            at = match.end()
        elif char in "({}<>" and not text.startswith("${", at):
            at += 1
        else:
            word, at, line, start_of_line = _word(text, at, line, start_of_line, path)
            current.append(word)
    if current:
        found.append((current, operator))
    return found


def _after_heredoc(text: str, at: int, delimiter: str) -> int:
    """The start of the line after the one that ends a here-document; the text's end without such a line."""
    for match in re.compile(rf"^[ \t]*{re.escape(delimiter)}[ \t]*$", re.MULTILINE).finditer(text, at):
        return min(match.end() + 1, len(text))
    return len(text)


def _word(text: str, at: int, line: int, start_of_line: int, path: str) -> tuple[_Raw, int, int, int]:
    """One word from `at` on; an array `NAME=( ... )` is one word whose parts are its elements."""
    begin, first_line, first_column = at, line, at - start_of_line + 1
    pieces: list[str] = []
    quoted = quoted_value = False
    size = len(text)
    while at < size:
        char = text[at]
        if char in "\"'`":
            end = _closing(text, at)
            if end < 0:
                raise UnreadableInput(f"{path}:{line}:{at - start_of_line + 1}: not a valid shell script: expected the closing {char}")
            inner = text[at + 1 : end]
            pieces.append(inner.replace("\\\n", " ").replace('\\"', '"') if char == '"' else inner)
            newlines = text.count("\n", at, end)
            if newlines:
                line, start_of_line = line + newlines, text.rfind("\n", at, end) + 1
            quoted_value, quoted = True, quoted or at == begin
            at = end + 1
        elif char == "\\" and at + 1 < size:
            if text[at + 1] == "\n":
                break
            pieces.append(text[at + 1])
            at += 2
        elif char == "$" and text[at + 1 : at + 2] == "{":
            end = _paren(text, at + 1)
            pieces.append(text[at : end + 1])
            at = end + 1
        elif char == "$" and text[at + 1 : at + 2] == "(":
            end = _paren(text, at + 1)
            pieces.append(text[at : end + 1])
            newlines = text.count("\n", at, end)
            if newlines:
                line, start_of_line = line + newlines, text.rfind("\n", at, end) + 1
            at = end + 1
        elif char == "(" and pieces and "".join(pieces).endswith("="):
            end = _paren(text, at)
            elements = _inside(text, at + 1, end, line, start_of_line, path)
            newlines = text.count("\n", at, end)
            if newlines:
                line, start_of_line = line + newlines, text.rfind("\n", at, end) + 1
            return _Raw("".join(pieces), first_line, first_column, elements), end + 1, line, start_of_line
        elif char in " \t\n;&|<>()":
            break
        else:
            pieces.append(char)
            at += 1
    joined = "".join(pieces)
    assignment = _ASSIGNMENT.fullmatch(joined)
    if assignment and not quoted:
        value, column = assignment[3], first_column + assignment.start(3)
        # A quoted value with spaces is a list of flags, split where it is used, as the shell does for $ARGS.
        words = value.split() if quoted_value else [value]
        parts = [Word(item, first_line + _line_of(text, begin, at, item), column, False) for item in words]
        return _Raw(joined, first_line, first_column, parts), at, line, start_of_line
    return _Raw(joined, first_line, first_column, [Word(joined, first_line, first_column, quoted_value)], quoted), at, line, start_of_line


def _line_of(text: str, begin: int, end: int, item: str) -> int:
    """How many lines below the word's start an item of a quoted list stands."""
    found = text.find(item, begin, end)
    return text.count("\n", begin, found) if found > 0 else 0


def _inside(text: str, begin: int, end: int, line: int, start_of_line: int, path: str) -> list[Word]:
    """The elements of an array."""
    found: list[Word] = []
    at = begin
    while at < end:
        char = text[at]
        if char == "\n":
            at, line, start_of_line = at + 1, line + 1, at + 1
        elif char in " \t" or (char == "\\" and text[at + 1 : at + 2] == "\n"):
            at += 1
        elif char == "#":
            stop = text.find("\n", at)
            at = end if stop < 0 else stop
        else:
            before = at
            word, at, line, start_of_line = _word(text, at, line, start_of_line, path)
            found += word.parts
            at = max(at, before + 1)
    return found


def _closing(text: str, at: int) -> int:
    """The end of what opens at `at`: a quote, or the bracket of `$(...)` and `${...}`; -1 without one. What is quoted inside is stepped over."""
    expected = [_CLOSERS.get(text[at], text[at])]
    position = at + 1
    while position < len(text):
        char, within = text[position], expected[-1]
        if char == "\\" and within != "'":
            position += 2
            continue
        if char == within:
            expected.pop()
            if not expected:
                return position
        elif within in ('"', ")", "}") and text.startswith(("$(", "${"), position):
            expected.append(")" if text[position + 1] == "(" else "}")
            position += 1
        elif within in (")", "}") and char in "(\"'" and not (char == "(" and within == "}") and not (char == "'" and '"' in expected):
            expected.append(_CLOSERS.get(char, char))
        position += 1
    return -1


def _paren(text: str, at: int) -> int:
    """The bracket that closes the one at `at`; the last character when there is none."""
    end = _closing(text, at)
    return end if end >= 0 else len(text) - 1
