"""What the rules over a checkpoint and its log judge, and how they are run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mpdoctor.core import rule
from mpdoctor.core.errors import NothingToJudge
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Severity
from mpdoctor.core.location import FileSpan
from mpdoctor.core.progress import SILENT, Progress
from mpdoctor.replay.activation_range import ActivationRange
from mpdoctor.replay.autopsy.result import AutopsyResult, TensorStats
from mpdoctor.replay.autopsy.series import SeriesResult, autopsy_series
from mpdoctor.replay.checkpoints import Checkpoint, settings_from
from mpdoctor.replay.checkpoints.series import members_of
from mpdoctor.replay.history import History


@dataclass(frozen=True, kw_only=True)
class CheckpointEvidence:
    """A checkpoint, what its numbers say, and its log.

    `needs` of the rules name `checkpoint`, `autopsy` and `history`: the last two are None where there
    is none (a log file alone, a checkpoint without a log).
    """

    checkpoint: Checkpoint | None = None
    autopsy: AutopsyResult | None = None
    history: History | None = None
    asked: str | None = None
    """The dtype that the user wants it judged for (`--precision`), by torch's name; None for the run's own."""
    activations: ActivationRange | None = None
    """What one forward pass made, where a model could be built for a run in fp16."""

    progress: Progress = SILENT
    """Told of the other checkpoints of the run, when they are read."""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The run's settings, as far as the checkpoint tells."""
        return settings_from(self.checkpoint) if self.checkpoint is not None else dict(self.history.settings) if self.history else {}

    @cached_property
    def series(self) -> SeriesResult | None:
        """The autopsy over the run's other checkpoints, when the user named the folder that holds them all; None otherwise.

        Reads all of them when it is first asked for.
        """
        members = self.checkpoint.extra.get("series") if self.checkpoint is not None else None
        if self.checkpoint is None or not isinstance(members, list) or len(members) < 2:
            return None
        members = members_of(self.checkpoint.path.parent)
        self.progress.start("reading the run's checkpoints", len(members))

        def reading(done: int, _total: int, name: str) -> None:
            self.progress.advance(1 if done else 0)
            self.progress.note(name)

        return autopsy_series(members, progress=reading)

    @property
    def compute(self) -> str | None:
        """The dtype that the run computes in: as asked, by its settings, else by its weights when all are 16 bits; None when unknown."""
        if self.autopsy is None:
            return None
        if self.asked is not None:
            return self.asked
        story = self.autopsy.dtypes
        if story.training not in (None, "float32"):
            return story.training
        # Weights that are 16 bits themselves compute in 16 bits, whatever the flags for autocast say.
        if story.main in ("float16", "bfloat16") and not story.adapter and not story.master:
            return story.main
        return story.training

    @property
    def empty(self) -> bool:
        """Whether no value, setting or log row of the checkpoint could be looked at."""
        values = sum(t.numel for t in self.autopsy.tensors) if self.autopsy is not None else 0
        told = self.checkpoint is not None and (self.checkpoint.training_args or self.checkpoint.scaler or self.checkpoint.param_groups)
        return values == 0 and not told and not self.history

    @property
    def no_fp16(self) -> bool:
        """Whether it is certain that nothing of the run is fp16: its settings say so, and it saved neither a scaler nor fp16 tensors."""
        if self.autopsy is None or self.checkpoint is None or self.checkpoint.scaler or self.asked == "float16":
            return False
        story = self.autopsy.dtypes
        stored = {*story.stored, *story.adapter, *story.moments}
        return story.training in ("bfloat16", "float32") and "float16" not in stored and not self.settings.get("deepspeed")


def known(evidence: CheckpointEvidence, name: str) -> bool:
    """Whether a part of the evidence is there (for `Rule.needs`)."""
    return bool(getattr(evidence, name)) if name == "history" else getattr(evidence, name) is not None


def judge_checkpoint(evidence: CheckpointEvidence) -> rule.RuleRun:
    """Run all rules over checkpoints and logs. Rules whose part is missing are listed as skipped.

    Raises NothingToJudge when there was no value, setting or log row to look at and nothing is wrong
    with the files either: that must not read as healthy.
    """
    rules = [*rule.load("mpdoctor.replay.detectors.checkpoint"), *rule.load("mpdoctor.replay.detectors.history")]
    run = rule.run(rules, evidence, known)
    if evidence.checkpoint is not None and evidence.empty and all(f.severity is Severity.INFO for f in run.findings):
        why = run.findings[0].message if run.findings else "its tensors have no values"
        raise NothingToJudge(
            f"{evidence.checkpoint.path}: nothing in it could be judged: {why}", "Pass a checkpoint with weights or optimizer state."
        )
    return run


def at(path: Path, key: str | None = None) -> FileSpan:
    """A place in a checkpoint: a file, and the tensor in it."""
    return FileSpan(file=str(path), key=key)


def saw(text: str, path: Path | None = None, key: str | None = None) -> Evidence:
    """A fact seen in the checkpoint's files."""
    return Evidence(text=text, kind=EvidenceKind.CHECKPOINT, where=at(path, key) if path is not None else None)


def logged(text: str) -> Evidence:
    """A fact seen in the log."""
    return Evidence(text=text, kind=EvidenceKind.HISTORY)


def named(tensors: Iterable[TensorStats], limit: int = 3) -> str:
    """Names of the first tensors, and how many more there are."""
    names = [t.name for t in tensors]
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def percent(share: float) -> str:
    """A share for people: whole percents, more digits where it is small."""
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}" if share >= 0.001 else f"{share:.2g}"
