"""From paths to findings: read, recognise, group into runs, lift, judge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from mpdoctor.check import engine
from mpdoctor.check.dialect import Dialect, Role, dialects, recognise
from mpdoctor.check.grouping import grouped
from mpdoctor.check.merge import merged
from mpdoctor.check.reader import Reader
from mpdoctor.check.references import referenced
from mpdoctor.check.sources.load import load
from mpdoctor.check.sources.node import Document
from mpdoctor.check.subject import CheckSubject, ConfigFile
from mpdoctor.check.thresholds import Thresholds
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.errors import UsageError
from mpdoctor.core.finding import Finding
from mpdoctor.core.rule import Crash, Skipped
from mpdoctor.core.training import TrainingConfig

_ORDER = (Role.MODEL, Role.TRAINER, Role.LAUNCHER, Role.ENGINE, Role.HISTORY)
"""Lifted in this order, so that an engine's `auto` can take the trainer's value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """What a user can set.

    Attributes:
        dialect: take every trainer's file for this dialect.
        version: framework version, for defaults and spellings.
        gpus: the cards that the run is for.
        select: codes, prefixes or slugs of the rules to run; empty for all.
        ignore: those not to run.
        thresholds: where rules begin to speak.
    """

    dialect: str | None = None
    version: str | None = None
    gpus: tuple[GpuInfo, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)


@dataclass(slots=True, eq=False)
class CheckResult:
    """What checking gave. `configs` is one entry per run: its files, and the settings as understood."""

    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    configs: list[TrainingConfig] = field(default_factory=list)
    recognised: list[tuple[str, str]] = field(default_factory=list)
    """Path and dialect of each file that was judged."""
    unrecognised: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_files(paths: Sequence[str], options: Options, *, named: bool = True) -> CheckResult:
    """Judge files. Those that belong together (a trainer's config, its DeepSpeed and accelerate files) are one run.

    Args:
        paths: files; `-` is stdin.
        options: what the user set.
        named: whether the user named these files, so that what nobody recognises is worth a word.

    Raises UnreadableInput for a file that cannot be read or parsed.
    """
    result = CheckResult()
    found: list[tuple[Document, Dialect]] = []
    for path in paths:
        documents = load(path)
        if not documents and named:
            result.skipped.append(Skipped(what=path, why="it is empty"))
        for document in documents:
            dialect = _dialect_of(document, options, result)
            if dialect is None:
                result.unrecognised.append(path)
            else:
                found += [(document, dialect), *referenced(document, dialect, result.skipped)]
    for members in grouped(_once(found)):
        _judge(members, options, result)
    result.findings.sort(key=_place)
    return result


def _once(members: Sequence[tuple[Document, Dialect]]) -> list[tuple[Document, Dialect]]:
    """Each document once: a DeepSpeed file may be given and be named by the trainer's config as well."""
    seen: set[tuple[str, int, int, str]] = set()
    kept = []
    for document, dialect in members:
        place = (os.path.realpath(document.path), document.root.line, document.root.column, dialect.name)
        if place not in seen:
            seen.add(place)
            kept.append((document, dialect))
    return kept


def _dialect_of(document: Document, options: Options, result: CheckResult) -> Dialect | None:
    recognition = recognise(document)
    if options.dialect is not None:
        forced = dialects().get(options.dialect)
        if forced is None:
            raise UsageError(f"there is no dialect {options.dialect!r}", f"Dialects: {', '.join(sorted(dialects()))}.")
        # The option names the trainer's dialect; a DeepSpeed or accelerate file beside it stays what it is.
        if recognition.dialect is None or recognition.dialect.role is forced.role:
            return forced
    if recognition.dialect is not None and recognition.rival is not None:
        result.notes.append(
            f"{document.path} reads as {recognition.dialect.title}; nearly as likely: {recognition.rival.title} (--dialect {recognition.rival.name})"
        )
    return recognition.dialect


def _judge(members: Sequence[tuple[Document, Dialect]], options: Options, result: CheckResult) -> None:
    files: list[ConfigFile] = []
    for document, dialect in sorted(members, key=lambda member: _ORDER.index(member[1].role)):
        config = dialect.lift(Reader(document, siblings=[file.config for file in files], version=options.version))
        files.append(
            ConfigFile(
                document=document, dialect=dialect.name, role=dialect.role, config=config, plain_yaml=dialect.plain_yaml, keys=dialect.keys,
            )
        )  # fmt: skip
        result.recognised.append((document.path, dialect.name))
    config = merged(files)
    subject = CheckSubject(config=config, files=tuple(files), gpus=options.gpus, thresholds=options.thresholds)
    outcome = engine.run_rules(subject, select=options.select, ignore=options.ignore)
    result.configs.append(config)
    result.findings += outcome.findings
    result.skipped += [skipped for skipped in outcome.skipped if skipped not in result.skipped]
    result.crashes += outcome.crashes


def _place(finding: Finding) -> tuple[str, int, int, str]:
    at = finding.location
    return (getattr(at, "file", ""), getattr(at, "line", 0) or 0, -finding.severity.rank, finding.code)
