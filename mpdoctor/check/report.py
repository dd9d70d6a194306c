"""From findings to the report of `mpdoctor check`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mpdoctor.causes.checklist import headline, verdicts
from mpdoctor.check.pipeline import CheckResult, Options, check_files
from mpdoctor.check.settings_table import as_table
from mpdoctor.core.cause import Exclusion, Headline
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.report import InputFile, Report
from mpdoctor.core.rule import Skipped
from mpdoctor.core.training import TrainingConfig


def report_on(paths: Sequence[str], options: Options) -> Report:
    """Check paths and say what came of it."""
    return made_report(check_files(paths, options), options)


def made_report(result: CheckResult, options: Options) -> Report:
    """The report: findings, what they mean for the checklist, and what was not looked at."""
    serious = [finding for finding in result.findings if finding.severity is not Severity.INFO]
    entries = verdicts(serious, exclusions=tuple(_exclusions(result)), untested=_untested(result))
    if not result.recognised:
        outcome = Outcome.COULD_NOT_JUDGE
        head = Headline(cause=None, standing=None, text=_nothing_recognised(result))
    elif serious:
        outcome = Outcome.DIAGNOSED
        head = headline(entries) if any(f.cause for f in serious) else _plain_headline(serious)
    else:
        outcome = Outcome.HEALTHY
        head = Headline(cause=None, standing=None, text=f"no fault found in {_files(len({path for path, _ in result.recognised}))}")
    return Report(
        command="check",
        outcome=outcome,
        headline=head,
        verdicts=entries,
        findings=tuple(result.findings),
        skipped=(*result.skipped, *_not_run(result)),
        crashes=tuple(result.crashes),
        config=_configs(result),
        gpus=options.gpus,
        inputs=tuple(InputFile(path=path, role=dialect) for path, dialect in result.recognised),
        notes=tuple(_notes(result)),
    )


def _exclusions(result: CheckResult) -> Iterable[Exclusion]:
    """What cannot be the cause of a failure, because no run computes in fp16."""
    computed = [config.compute_dtype for config in result.configs]
    if not computed or any(not setting.known or setting.value == "fp16" for setting in computed):
        return
    where = computed[0].at
    names = " and ".join(dict.fromkeys(str(setting.value) for setting in computed))
    scaling = Evidence(text=f"computed in {names}: there is nothing to scale", kind=EvidenceKind.CONFIG, where=where)
    fp16_range = Evidence(text=f"computed in {names}, whose range is fp32's", kind=EvidenceKind.CONFIG, where=where)
    yield Exclusion(cause="loss-scaling", evidence=scaling)
    yield Exclusion(cause="fp16-range", evidence=fp16_range)


def _untested(result: CheckResult) -> dict[str, str]:
    """Why the fixed causes of the checklist stay open where no rule has anything against them and no fact excludes them."""
    configs = result.configs
    if not configs or not all(config.lr.known for config in configs):
        learning_rate = "no learning rate is known"
    elif all(_rate_was_judged(config) for config in configs):
        written = f" ({configs[0].lr.value:g})" if len(configs) == 1 and configs[0].lr.value is not None else ""
        learning_rate = f"the learning rate{written} is not above what recipes use; a config alone cannot tell more"
    else:
        learning_rate = "the learning rate was not judged: there is no yardstick for this task or optimizer"
    return {
        "learning-rate": learning_rate,
        "loss-scaling": "nothing here points to it; the gradients themselves were not seen",
        "fp16-range": "nothing here points to it; the activations were not seen",
        "dirty-data": "the data were not seen",
    }


def _rate_was_judged(config: TrainingConfig) -> bool:
    """Whether a rule compares the learning rate of such a run with recipes."""
    adam = str(config.optimizer_family.value).startswith("adam") and config.lr_is_peak.value is not False
    return adam and ((config.domain.value == "language" and config.method.known) or config.dialect == "hf_trainer")


def _not_run(result: CheckResult) -> Iterable[Skipped]:
    """Rules that could not run; over several runs with the number of those in which they could not."""
    runs = len(result.configs)
    for skipped, count in result.not_run.items():
        yield skipped if runs <= 1 else Skipped(what=skipped.what, why=f"{skipped.why} (in {count} of {runs} runs)")


def _plain_headline(findings: list[Finding]) -> Headline:
    worst = max(findings, key=lambda finding: finding.severity.rank)
    remedy = f" {worst.remedy.text}" if worst.remedy else ""
    return Headline(cause=None, standing=None, text=f"{worst.message}.{remedy}".replace("..", "."))


def _configs(result: CheckResult) -> dict[str, Any]:
    if len(result.configs) == 1:
        return as_table(result.configs[0])
    return {" + ".join(dict.fromkeys(config.files)): as_table(config) for config in result.configs}


def _notes(result: CheckResult) -> Iterable[str]:
    yield from result.notes
    if result.recognised and result.unrecognised:
        yield f"{_files(len(result.unrecognised))} not recognised as a training config, among them {result.unrecognised[0]}"


def _nothing_recognised(result: CheckResult) -> str:
    if not result.unrecognised:
        return "nothing to judge: no training config was found"
    named = ", ".join(result.unrecognised[:3]) + (f" and {len(result.unrecognised) - 3} more" if len(result.unrecognised) > 3 else "")
    return f"could not judge {named}: no dialect of a training framework was recognised; --dialect names one"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
