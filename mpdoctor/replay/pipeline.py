"""From a checkpoint, a log, a recipe or a recorded trace to a report.

Files are judged without torch; where a model can be built, its steps are replayed (`live`). torch is imported only then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.core.errors import MissingDependency, NothingToJudge, UnreadableInput, UsageError
from mpdoctor.core.finding import Finding
from mpdoctor.core.progress import SILENT, Progress
from mpdoctor.core.rule import RuleRun, Skipped, selected
from mpdoctor.replay.activation_range import judge_activations
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, judge_checkpoint
from mpdoctor.replay.checkpoints import Checkpoint, open_checkpoint
from mpdoctor.replay.data_evidence import judge_data
from mpdoctor.replay.diagnosis import Diagnosis, Selection, diagnose_recording
from mpdoctor.replay.history import History, read_history
from mpdoctor.replay.options import Options
from mpdoctor.replay.report import ReplayReport, report_on_files, report_on_replay
from mpdoctor.replay.trace_file import check_writable, read_trace, write_trace

if TYPE_CHECKING:
    from mpdoctor.replay.live.session import SessionSource

_NOTHING_JUDGED = RuleRun((), (), (), ())


def replay(options: Options, progress: Progress = SILENT) -> ReplayReport:
    """Judge what is there, replay what can be replayed, and report.

    With neither a checkpoint nor a recipe, `options.trace` is a recording to judge; else it is the file to write one to.

    Raises:
        UnreadableInput: an input is missing, damaged, or not what it should be.
        UsageError: the asked device is not there, or the trace cannot be written where it should be.
        MissingDependency: a model is to be replayed and torch (or transformers) is not installed.
    """
    if options.checkpoint is None and options.recipe is None and options.trace is not None:
        return _judge_recording(options.trace, options)
    if options.recipe is not None and (options.data is not None or options.precision != "auto"):
        option = "--data" if options.data is not None else "--precision"
        raise UsageError(f"{option} is for checkpoints; a recipe makes its own batches and sets its own precision", "change it in the recipe")
    if options.trace is not None:
        check_writable(options.trace)
    evidence, judged = _judge_files(options, progress)
    # What the user's own code prints must not get between the lines of the report.
    with redirect_stdout(sys.stderr):
        source, why_not = _session_source(options, evidence)
        evidence, judged = _with_source(evidence, judged, source, options)
        diagnosis = _diagnose(source, options, judged, progress) if source is not None else None
    if diagnosis is None:
        report = report_on_files(options, evidence, judged, why_not)
        unwritten = Skipped(what=f"--trace {options.trace}", why="nothing was replayed, so there is nothing to record")
        return report if options.trace is None else replace(report, skipped=(*report.skipped, unwritten))
    if options.trace is not None:
        write_trace(diagnosis, options.trace)
    return report_on_replay(options, evidence, judged, diagnosis)


def _judge_recording(trace: Path, options: Options) -> ReplayReport:
    """The report on a trace file: what its detectors and experiments say, without running anything."""
    recorded = read_trace(trace)
    diagnosis = diagnose_recording(recorded.recording, recorded.surroundings, recorded.experiments, _selection(options))
    return report_on_replay(options, CheckpointEvidence(), _NOTHING_JUDGED, diagnosis)


def _selection(options: Options) -> Selection:
    return lambda code, slug: selected(code, slug, select=options.select, ignore=options.ignore)


# -- files


def _judge_files(options: Options, progress: Progress) -> tuple[CheckpointEvidence, RuleRun]:
    """Autopsy and log of the checkpoint, without torch."""
    if options.checkpoint is None:
        return CheckpointEvidence(), _NOTHING_JUDGED
    history: History | None = None
    checkpoint: Checkpoint | None = None
    try:
        checkpoint = open_checkpoint(options.checkpoint)
        history = read_history(checkpoint)
    except UnreadableInput as no_checkpoint:
        if not options.checkpoint.is_file():
            raise
        try:
            history = read_history(options.checkpoint)
        except UnreadableInput:
            raise no_checkpoint from None
    result = autopsy(checkpoint, progress=_bytes_read(progress)) if checkpoint is not None else None
    asked = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}.get(options.precision)
    evidence = CheckpointEvidence(checkpoint=checkpoint, autopsy=result, history=history, asked=asked, progress=progress)
    judged = judge_checkpoint(evidence)
    keep = tuple(f for f in judged.findings if selected(f.code, f.slug, select=options.select, ignore=options.ignore))
    return evidence, replace_findings(judged, keep)


def _bytes_read(progress: Progress) -> Callable[[int, int, str], None]:
    """The autopsy's progress, in MiB."""
    started = False
    shown = 0

    def read(done: int, total: int, file: str) -> None:
        nonlocal started, shown
        if not started:
            progress.start("reading tensors (MiB)", max(1, total >> 20))
            started = True
        progress.advance((done >> 20) - shown)
        shown = done >> 20
        progress.note(file)

    return read


def replace_findings(judged: RuleRun, findings: tuple[Finding, ...]) -> RuleRun:
    """The same run of rules with other findings."""
    return RuleRun(findings, judged.exclusions, judged.skipped, judged.crashes)


def _with_source(evidence: CheckpointEvidence, judged: RuleRun, source: SessionSource | None, options: Options) -> tuple[CheckpointEvidence, RuleRun]:
    """With what the data and one forward pass say, where a source has them."""
    data = source.data_evidence() if source is not None else None
    activations = source.activations() if source is not None else None
    runs = [judge_data(data)] if data is not None else []
    runs += [judge_activations(activations)] if activations is not None else []
    for run in runs:
        kept = (f for f in run.findings if selected(f.code, f.slug, select=options.select, ignore=options.ignore))
        judged = RuleRun((*judged.findings, *kept), judged.exclusions, (*judged.skipped, *run.skipped), (*judged.crashes, *run.crashes))
    return replace(evidence, activations=activations), judged


def _session_source(options: Options, evidence: CheckpointEvidence) -> tuple[SessionSource | None, str]:
    """Where sessions come from, or why there is none."""
    checkpoint = evidence.checkpoint
    if options.recipe is None and checkpoint is None and evidence.history is not None:
        return None, "a log alone holds no model; a recipe (--recipe FILE.py) or the checkpoint would let mpdoctor replay the failing steps"
    if options.recipe is None and (checkpoint is None or not (checkpoint.config.get("architectures") or checkpoint.adapter_config)):
        return None, "the model cannot be built from these files; a recipe (--recipe FILE.py) would let mpdoctor replay the failing steps"
    if find_spec("torch") is None:
        if options.recipe is None:
            return None, "torch is not installed; with it (pip install 'mpdoctor[replay,hf]') mpdoctor would replay the next steps"
        raise MissingDependency("a replay needs torch, which is not installed", "pip install 'mpdoctor[replay]'")
    from mpdoctor.replay.live.device import chosen_device
    from mpdoctor.replay.live.recipe import RecipeSource
    from mpdoctor.replay.live.weights import load_states

    device = chosen_device(options.device)
    if options.recipe is not None:
        state = load_states(checkpoint) if checkpoint is not None else None
        return RecipeSource(options.recipe, steps=options.steps, state=state, device=device), ""
    assert checkpoint is not None
    if find_spec("transformers") is None:
        return None, "transformers is not installed; with it (pip install 'mpdoctor[hf]') mpdoctor would build the model and replay the next steps"
    from mpdoctor.replay.live.hf_adapter import adapter_obstacle, base_of
    from mpdoctor.replay.live.hf_checkpoint import HfCheckpointSource
    from mpdoctor.replay.live.hf_model import why_not

    trusted = options.trust_remote_code
    if options.base_model is not None and checkpoint.adapter_config is None:
        raise UsageError(f"--base-model is for adapters, and {checkpoint.name} is none (it has no adapter_config.json)")
    base, obstacle = None, None
    if checkpoint.adapter_config is not None:
        base, obstacle = base_of(checkpoint, options.base_model)
        if base is not None:
            obstacle = adapter_obstacle(checkpoint, base, trust_remote_code=trusted)
    else:
        obstacle = why_not(checkpoint, trust_remote_code=trusted)
    if obstacle:
        return None, obstacle
    try:
        source = HfCheckpointSource(
            checkpoint,
            base=base,
            data=options.data,
            steps=options.steps,
            precision=options.precision,
            device=device,
            trust_remote_code=trusted,
        )
    except NothingToJudge as unknown:
        return None, f"{unknown.message}; {unknown.hint}"
    return source, ""


def _diagnose(source: SessionSource, options: Options, judged: RuleRun, progress: Progress) -> Diagnosis:
    from mpdoctor.replay.live.diagnosis import diagnose
    from mpdoctor.replay.live.process_state import BudgetSpent

    try:
        return diagnose(
            source,
            steps=options.steps * source.micro_batches if options.steps is not None else None,
            experiments=options.experiments,
            budget=options.budget,
            progress=progress,
            findings=judged.findings,
            exclusions=judged.exclusions,
            select=_selection(options),
        )
    except BudgetSpent:
        raise UnreadableInput(
            f"{source.name}: building the run took longer than the budget of {options.budget:g} s", "Give more time (--budget) or a smaller run."
        ) from None
