"""From what the user names to documents with their dialect, and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.check.dialect import Dialect, Role, dialects, recognise
from mpdoctor.check.includes import with_bases
from mpdoctor.check.references import referenced
from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import Document
from mpdoctor.check.sources.text import read_text
from mpdoctor.core.errors import MpdoctorError, NothingToJudge, UnreadableInput, UsageError
from mpdoctor.core.rule import Skipped

if TYPE_CHECKING:
    from mpdoctor.check.checkpoint import CheckpointReader

Member = tuple[Document, Dialect]
SCRIPTS = (".py", ".ipynb")


class Intake:
    """What was read.

    Attributes:
        named: documents of files that the user named, and of the launch line.
        walked: documents of files met in folders.
        checkpoints: one entry per checkpoint folder: its documents.
        scripts: path and text of Python files to lint.
        unrecognised: paths that no dialect claims.
        skipped: what was not read, and why.
        notes: sentences for the reader.
    """

    def __init__(self, *, dialect: str | None = None, reader: CheckpointReader | None = None) -> None:
        self.dialect, self.reader = dialect, reader
        self.named: list[Member] = []
        self.walked: list[Member] = []
        self.checkpoints: list[list[Member]] = []
        self.scripts: list[tuple[str, str]] = []
        self.unrecognised: list[str] = []
        self.skipped: list[Skipped] = []
        self.notes: list[str] = []
        self.folders: list[str] = []
        self._unclaimed: list[Document] = []

    def take(self, paths: Sequence[str], *, ignore_unknown: bool = False) -> None:
        """Read files and folders; with `ignore_unknown` each file as if it had been met on a walk.

        Raises MpdoctorError for a file that the user named and that cannot be read (with `ignore_unknown`: that is not there).
        """
        if self.dialect is not None and self.dialect not in dialects():
            raise UsageError(f"there is no dialect {self.dialect!r}", f"Dialects: {', '.join(sorted(dialects()))}.")
        self.folders += [path for path in paths if path != "-" and Path(path).is_dir()]
        for path in paths:
            if path in self.folders:
                self._folder(Path(path))
            elif ignore_unknown and Path(path).is_file():
                self._quietly(path, is_folder=False)
            else:
                self._file(path, self.named, named=True)
        self._put_together()

    def launch_line(self, words: Sequence[str]) -> None:
        """Read the words of a launch line, and the configs that it names."""
        from mpdoctor.check.sources.arguments_ import from_words

        documents = from_words(words)
        for document in documents:
            self._recognised(document, self.named, named=True)
        for name in _configs_of(words):
            self._file(name, self.named, named=name.endswith(".yml"))
        self._put_together()
        if self.named:  # the line itself may hold nothing but the names of its configs
            self.unrecognised = [path for path in self.unrecognised if path not in {document.path for document in documents}]

    def _folder(self, folder: Path) -> None:
        from mpdoctor.check.walk import is_checkpoint, walked

        if is_checkpoint(folder):
            self._checkpoint(folder.as_posix())
            return
        for path in walked(folder):
            if path.is_dir():
                self._quietly(path.as_posix(), is_folder=True)
            else:
                self._quietly(path.as_posix(), is_folder=False)

    def _quietly(self, path: str, *, is_folder: bool) -> None:
        """A file met on a walk: what cannot be read is listed and the walk goes on."""
        try:
            if is_folder:
                self._checkpoint(path)
            else:
                self._file(path, self.walked, named=False)
        except NothingToJudge as error:
            self.skipped.append(Skipped(what=path, why=error.message))
        except UnreadableInput as error:
            self.skipped.append(Skipped(what=path, why=f"cannot be read: {error.message.removeprefix(path).lstrip(': ')}"))

    def _checkpoint(self, folder: str) -> None:
        from mpdoctor.check import checkpoint

        try:
            members = checkpoint.members(folder, self.reader)
        except MpdoctorError as error:
            if folder in self.folders:
                raise
            self.skipped.append(Skipped(what=folder, why=error.message))
            return
        if members:
            self.checkpoints.append(members)
        else:
            self.unrecognised.append(folder)

    def _file(self, path: str, into: list[Member], *, named: bool) -> None:
        text = read_text(path)
        if not text.strip():
            if named:
                self.skipped.append(Skipped(what=path, why="it is empty"))
            return
        if not named:
            from mpdoctor.check.walk import may_be_training

            if not may_be_training(text):
                self.unrecognised.append(path)
                return
        if path.endswith(SCRIPTS):
            self._python(path, text, into, named=named)
            return
        for document in load(path, text):
            self._recognised(with_bases(document, self.folders), into, named=named)

    def _python(self, path: str, text: str, into: list[Member], *, named: bool) -> None:
        """A Python file is a config when a dialect claims its assignments, else a script; a script's settings are judged too."""
        from mpdoctor.check.scripts import looks_like_training

        documents = load(path, text)
        module = next((document for document in documents if not document.constructor), None)
        if module is not None and (dialect := self._dialect_of(with_bases(module, self.folders))) is not None:
            self._add(with_bases(module, self.folders), dialect, into)
            if not looks_like_training(text):
                return
            judged = True  # a script that starts with its settings
        else:
            judged = False
        for document in documents:
            if document.constructor and (dialect := recognise(document).dialect) is not None:
                self._add(document, dialect, into)
                judged = True
        if named or looks_like_training(text):
            self.scripts.append((path, text))
        elif not judged:
            self.unrecognised.append(path)

    def _recognised(self, document: Document, into: list[Member], *, named: bool) -> None:
        dialect = self._dialect_of(document)
        if dialect is None:
            if document.constructor == "":
                self.unrecognised.append(document.path)
                self._unclaimed += [document] if named else []
            if {"class_name", "keras_version"} <= document.keys:
                self.skipped.append(Skipped(what=document.path, why="a Keras model; mpdoctor judges PyTorch runs"))
            return
        self._add(document, dialect, into)

    def _put_together(self) -> None:
        """Merge files that are parts of one config."""
        from mpdoctor.check.split_configs import put_together

        members, parts = put_together(self.named, self._unclaimed) if len(self.named) + len(self._unclaimed) > 1 else (self.named, [])
        if parts:
            self.named = members
            self.unrecognised = [path for path in self.unrecognised if path not in {part.path for part in parts}]
            self.notes.append(f"{' and '.join(part.path for part in parts)} are read as one config, as the framework merges them")

    def _add(self, document: Document, dialect: Dialect, into: list[Member]) -> None:
        into += [(document, dialect), *referenced(document, dialect, self.skipped)]
        self.skipped += [Skipped(what=str(at), why=why) for at, why in document.missing]

    def _dialect_of(self, document: Document) -> Dialect | None:
        recognition = recognise(document)
        if self.dialect is not None:
            forced = dialects()[self.dialect]
            # The option names the trainer's dialect; a DeepSpeed or accelerate file beside it stays what it is.
            if forced.role is not Role.PART and (recognition.dialect is None or recognition.dialect.role is forced.role):
                return forced
        if recognition.dialect is not None and recognition.rival is not None:
            mine, other = recognition.dialect, recognition.rival
            self.notes.append(f"{document.path} reads as {mine.title}; nearly as likely: {other.title} (--dialect {other.name})")
        return recognition.dialect


def _configs_of(words: Sequence[str]) -> list[str]:
    """Files that a launch line names. gpt-neox's `deepy.py` looks for them in the folder after `-d`, and adds `.yml`."""
    folder, names = "", list(words)
    deepy = any(word.endswith("deepy.py") for word in words)
    for index, word in enumerate(words[:-1]):
        if deepy and word in ("-d", "--conf_dir"):
            folder = f"{words[index + 1]}/"
            names = [f"{folder}{name}{'' if name.endswith(('.yml', '.json')) else '.yml'}" for name in words[index + 2 :]]
    return [name for name in names if name.endswith((".yaml", ".yml", ".toml", ".py")) and "=" not in name and Path(name).is_file()]
