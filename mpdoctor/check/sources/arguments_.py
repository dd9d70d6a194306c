"""Launch lines and shell scripts: flags become keys (`--adam-eps 1e-6` is `adam_eps`), overrides become paths (`optimizer.lr=1e-4`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mpdoctor.check.launchers import LAUNCHERS
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.check.sources.shell_words import Word, commands
from mpdoctor.check.sources.source import Source
from mpdoctor.check.sources.yaml_ import resolve_plain

_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_MORE = re.compile(r"\$(?:[@*]|[A-Za-z_]\w*|\{[A-Za-z_]\w*(?:\[[@*]\])?\})")
"""A variable as a whole word: flags that the script does not show, unless it is a flag's value."""
_LIST = re.compile(r"\$(?:[@*]|\{[A-Za-z_]\w*\[[@*]\]\})")
"""One that is several words, and no flag's value."""
_NEGATIVE = re.compile(r"-\d|-\.\d")
_SCRIPT = re.compile(r".*\.(py|sh)|-m")


def parse(text: str, path: str) -> list[Document]:
    """One document per command that has flags, and one for its launcher's own flags."""
    return [document for words in commands(text, path) for document in _documents(words, path, text)]


def from_words(arguments: Sequence[str], name: str = "the launch line") -> list[Document]:
    """The documents of a launch line that is given as words. Columns count along the line as a shell would show it."""
    line, words = "", []
    for argument in arguments:
        words.append(Word(argument, 1, len(line) + 1))
        line += shlex.quote(argument) + " "
    return _documents(words, name, line.rstrip())


def _documents(words: list[Word], path: str, text: str) -> list[Document]:
    names = [word.text.rpartition("/")[2] for word in words]
    start = next((index for index, name in enumerate(names) if name in LAUNCHERS), None)
    if start is None:
        return []
    launcher = names[start]
    own, rest = _split(words[start + 1 :], launcher)
    found = []
    for part, constructor in ((own, launcher), (rest, "")):
        root, more = _tree(part, path)
        if root.mapping:
            incomplete = f"`{more}` may set it" if more else ""
            found.append(Document(path=path, syntax="arguments", root=root, text=text, constructor=constructor, incomplete=incomplete))
    return found


def _split(words: list[Word], launcher: str) -> tuple[list[Word], list[Word]]:
    """A launcher's own flags (up to the script's name), and the script's."""
    if launcher in ("torchrun", "accelerate", "deepspeed"):
        for index, word in enumerate(words):
            if _SCRIPT.fullmatch(word.text) and not word.text.endswith((".yaml", ".json")):
                if word.text == "-m" and launcher == "accelerate" and index == 0:
                    continue
                return words[:index], words[index + 1 :]
    return [], words


def _tree(words: list[Word], path: str) -> tuple[Node, str]:
    """The flags as a tree, and a word that may stand for more of them (empty without one)."""
    more = ""
    root = Node({}, path, words[0].line if words else 1, 1)
    index = 0
    while index < len(words):
        word = words[index]
        flag = _FLAG.fullmatch(word.text) if not _NEGATIVE.match(word.text) else None
        if flag is None:
            override = _OVERRIDE.fullmatch(word.text)
            if override:
                _put(root, override[1].replace("/", ".").split("."), _scalar(override[2], word, path, len(word.text) - len(override[2])))
            elif index and _MORE.fullmatch(word.text):
                more = word.text
            index += 1
            continue
        values: list[Node] = []
        first = index
        if flag[2] is not None:
            values.append(_scalar(flag[2], word, path, len(word.text) - len(flag[2])))
        else:
            while index + 1 < len(words) and (not _FLAG.fullmatch(words[index + 1].text) or _NEGATIVE.match(words[index + 1].text)):
                follower = words[index + 1].text
                if (values and (_OVERRIDE.fullmatch(follower) or _MORE.fullmatch(follower))) or _LIST.fullmatch(follower):
                    break
                index += 1
                values.append(_scalar(words[index].text, words[index], path, 0))
        value = Node(True, path, word.line, word.column, word.line, word.column, "true") if not values else values[0]
        if len(values) > 1:
            value = Node(values, path, word.line, word.column, word.line, word.column)
        value.line, value.column = word.line, word.column
        if any(part.conditional for part in words[first : index + 1]):
            value.pending = "set only where a test of the script says so"
        _put(root, flag[1].replace("-", "_").split("."), value)
        index += 1
    return root, more


def _put(root: Node, parts: list[str], value: Node) -> None:
    node = root
    for part in parts[:-1][:20]:
        child = node.mapping.get(part)
        if child is None or not child.is_mapping:
            child = node.mapping[part] = Node({}, value.source, value.line, value.column)
        node = child
    if parts[-1]:
        node.mapping[parts[-1]] = value


def _scalar(text: str, word: Word, path: str, offset: int) -> Node:
    """Flags are retyped by the program's own parser, so `1e-4` is a number here."""
    made = Node(resolve_plain(text), path, word.line, word.column, word.line, word.column + offset, text)
    if text.startswith("[") and text.endswith("]") and len(text) < 1000:
        items = [item.strip() for item in text[1:-1].split(",")]
        made.value = [Node(resolve_plain(item), path, word.line, word.column, word.line, word.column, item) for item in items if item]
        made.raw = None
    if "$" in text:
        made.pending = "a shell variable or substitution that this script does not set"
    return made


SOURCE = Source(suffixes=(".sh", ".bash", ".slurm", ".sbatch", ".args"), parse=parse, sniff=lambda text: text.startswith("#!/") and "sh" in text[:40])
