"""From paths to findings: read, recognise, group into runs, lift, judge."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mpdoctor.check import engine
from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.grouping import grouped
from mpdoctor.check.intake import Intake
from mpdoctor.check.merge import merged
from mpdoctor.check.reader import Reader
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.check.subject import CheckSubject, ConfigFile
from mpdoctor.check.suppress import without_ignored
from mpdoctor.check.thresholds import DEFAULTS, Thresholds
from mpdoctor.core.device import GpuInfo
from mpdoctor.core.errors import NothingToJudge
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.location import FileSpan
from mpdoctor.core.rule import Crash, RuleRun, Skipped
from mpdoctor.core.training import TrainingConfig

if TYPE_CHECKING:
    from mpdoctor.check.checkpoint import CheckpointReader

_ORDER = (Role.MODEL, Role.PART, Role.TRAINER, Role.LAUNCHER, Role.ENGINE, Role.HISTORY)
"""Lifted in this order, so that an engine's `auto` can take the trainer's value."""


class Options(NamedTuple):
    """What a user can set.

    Attributes:
        dialect: take every trainer's file for this dialect.
        version: framework version, for defaults and spellings.
        gpus: the cards that the run is for.
        select: codes, prefixes or slugs of the rules to run; empty for all.
        ignore: those not to run.
        thresholds: where rules begin to speak.
        launch: the words of a launch line (`torchrun train.py --fp16`), judged with the files.
        severity: code, prefix or slug -> severity, or None for "off".
        baseline: fingerprints of findings that are known.
        checkpoint_reader: reads a checkpoint folder's metadata; without one only its JSON files are judged.
        ignore_unknown: files that are no training config, or cannot be read, are passed over, and the others are not taken for one run.
    """

    dialect: str | None = None
    version: str | None = None
    gpus: tuple[GpuInfo, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    thresholds: Thresholds = DEFAULTS
    launch: tuple[str, ...] = ()
    severity: Mapping[str, Severity | None] = {}
    baseline: frozenset[str] = frozenset()
    checkpoint_reader: CheckpointReader | None = None
    ignore_unknown: bool = False


class CheckResult:
    """What checking gave.

    Attributes:
        findings: by file and line.
        skipped: what was not looked at.
        crashes: rules that raised.
        configs: one entry per run: its settings as understood.
        recognised: path and dialect of each file that was judged.
        unrecognised: paths of those that no dialect claims.
        notes: sentences for the reader.
        documents: what was read, for ignore comments and repairs.
        not_run: rules and families that lacked something, and in how many runs.
    """

    def __init__(self, *, unrecognised: list[str], skipped: list[Skipped], notes: list[str]) -> None:
        self.findings: list[Finding] = []
        self.skipped, self.unrecognised, self.notes = skipped, unrecognised, notes
        self.crashes: list[Crash] = []
        self.configs: list[TrainingConfig] = []
        self.recognised: list[tuple[str, str]] = []
        self.documents: list[Document] = []
        self.not_run: dict[Skipped, int] = {}
        self._seen: set[tuple[object, ...]] = set()

    def add(self, outcome: RuleRun) -> None:
        """Take over what a set of rules gave."""
        for finding in outcome.findings:
            at = finding.location
            place = (finding.code, getattr(at, "file", ""), getattr(at, "line", None), getattr(at, "key", None), finding.message)
            if place not in self._seen:
                self._seen.add(place)
                self.findings.append(finding)
        for skipped in outcome.skipped:
            self.not_run[skipped] = self.not_run.get(skipped, 0) + 1
        self.crashes += outcome.crashes


def check_files(paths: Sequence[str], options: Options) -> CheckResult:
    """Judge files, folders and a launch line. Those that belong together (a trainer's config, its DeepSpeed and accelerate files) are one run.

    Raises MpdoctorError for a named file that cannot be read or parsed.
    """
    intake = Intake(dialect=options.dialect, reader=options.checkpoint_reader)
    intake.take(paths, ignore_unknown=options.ignore_unknown)
    if options.launch:
        intake.launch_line(options.launch)
    result = CheckResult(unrecognised=intake.unrecognised, skipped=intake.skipped, notes=intake.notes)
    for members in (*grouped(_once(intake.named)), *grouped(_once(intake.walked), together=False), *intake.checkpoints):
        _judge(members, options, result)
    for path, text in intake.scripts:
        _lint(path, text, options, result, named=path in paths and not options.ignore_unknown)
    _settle(result, options)
    return result


def _settle(result: CheckResult, options: Options) -> None:
    """Severities as the user wants them; without what comments and the baseline let pass; in order."""
    findings = [_with_severity(finding, options.severity) for finding in result.findings] if options.severity else result.findings
    kept, ignored = without_ignored([finding for finding in findings if finding is not None], result.documents)
    if ignored:
        result.notes.append(f"{ignored} {'finding is' if ignored == 1 else 'findings are'} ignored by comments in the files")
    new = [finding for finding in kept if finding.fingerprint not in options.baseline] if options.baseline else kept
    if len(new) < len(kept):
        result.notes.append(f"{len(kept) - len(new)} known findings of the baseline are not shown")
    result.findings = sorted(new, key=_place)


def _with_severity(finding: Finding, wanted: Mapping[str, Severity | None]) -> Finding | None:
    """The finding at the severity that the longest matching entry names; None for "off"."""
    matching = [entry for entry in wanted if finding.code.startswith(entry) or finding.slug == entry]
    if not matching:
        return finding
    severity = wanted[max(matching, key=lambda entry: (entry == finding.slug, len(entry)))]
    return None if severity is None else replace(finding, severity=severity)


def _judge(members: Sequence[tuple[Document, Dialect]], options: Options, result: CheckResult) -> None:
    files: list[ConfigFile] = []
    for document, dialect in sorted(members, key=lambda member: _ORDER.index(member[1].role)):
        try:
            config = dialect.lift(Reader(document, siblings=[file.config for file in files], version=options.version))
        except Exception as error:
            result.crashes.append(
                Crash(what=f"dialect {dialect.name} on {document.path}", error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
            )
            continue
        files.append(ConfigFile(document=document, dialect=dialect.name, role=dialect.role, config=config, plain_yaml=dialect.plain_yaml))
        result.recognised += [(part.path, dialect.name) for part in (document, *document.parts)]
        result.documents += [document, *document.parts]
    if not files:
        return
    config = merged(files)
    subject = CheckSubject(config=config, files=tuple(files), gpus=options.gpus, thresholds=options.thresholds)
    result.configs.append(config)
    outcome = engine.run_rules(subject, select=options.select, ignore=options.ignore)
    result.add(replace(outcome, findings=tuple(_with_cell(finding, members) for finding in outcome.findings)))


def _with_cell(finding: Finding, members: Sequence[tuple[Document, Dialect]]) -> Finding:
    """The finding with the cell and line as a notebook's reader knows them: the line of the file says nothing in Jupyter."""
    at = finding.location
    for document, _ in members:
        if isinstance(at, FileSpan) and document.path == at.file and (row := document.rows.get((at.line or 0, at.column or 0))):
            told = Evidence(text=f"{row}: {at.key or document.constructor}", kind=EvidenceKind.CONFIG, where=at)
            return replace(finding, evidence=(told, *finding.evidence))
    return finding


def _lint(path: str, text: str, options: Options, result: CheckResult, *, named: bool) -> None:
    from mpdoctor.check.scripts import lint_script

    try:
        outcome = lint_script(path, text, select=options.select, ignore=options.ignore)
    except NothingToJudge as error:
        result.skipped.append(Skipped(what=path, why=error.message))
        return
    passed_over = [skipped for skipped in outcome.skipped if skipped.what == path]
    judged = any(judged == path for judged, _ in result.recognised)
    if passed_over and not outcome.findings and not judged:
        # Not a training script: said so when it was named, counted when it was met on a walk.
        result.skipped += passed_over if named else []
        result.unrecognised.append(path)
        return
    result.recognised.append((path, "script"))
    result.documents.append(Document(path=path, syntax="python", root=Node({}, path, 1, 1), text=text))
    result.add(outcome)


def _once(members: Sequence[tuple[Document, Dialect]]) -> list[tuple[Document, Dialect]]:
    """Each document once: a DeepSpeed file may be given and be named by the trainer's config as well."""
    seen: set[tuple[str, int, int, str, str]] = set()
    kept = []
    for document, dialect in members:
        place = (os.path.realpath(document.path), document.root.line, document.root.column, dialect.name, document.constructor)
        if place not in seen:
            seen.add(place)
            kept.append((document, dialect))
    return kept


def _place(finding: Finding) -> tuple[str, int, int, str]:
    at = finding.location
    return (getattr(at, "file", ""), getattr(at, "line", 0) or 0, -finding.severity.rank, finding.code)
