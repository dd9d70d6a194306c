"""From findings to the report of `mpdoctor check`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mpdoctor.causes.checklist import headline, verdicts
from mpdoctor.check.pipeline import CheckResult, Options, check_files
from mpdoctor.check.settings_table import as_table
from mpdoctor.core.cause import Headline
from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.report import InputFile, Report
from mpdoctor.core.rule import Skipped

UNTESTED = {
    "learning-rate": "the learning rate is within what recipes use; a config alone cannot tell more",
    "loss-scaling": "nothing in the config points to it; the gradients themselves were not seen",
    "fp16-range": "nothing in the config points to it; the activations were not seen",
    "dirty-data": "a config says nothing about the data",
}
"""Why the fixed causes of the checklist stay open where no rule has anything against them."""


def report_on(paths: Sequence[str], options: Options) -> Report:
    """Check paths and say what came of it."""
    return made_report(check_files(paths, options), options)


def made_report(result: CheckResult, options: Options) -> Report:
    """The report: findings, what they mean for the checklist, and what was not looked at."""
    serious = [finding for finding in result.findings if finding.severity is not Severity.INFO]
    entries = verdicts(serious, untested=UNTESTED)
    if not result.recognised:
        outcome = Outcome.COULD_NOT_JUDGE
        head = Headline(cause=None, standing=None, text=_nothing_recognised(result))
    elif serious:
        outcome = Outcome.DIAGNOSED
        head = headline(entries) if any(f.cause for f in serious) else _plain_headline(serious)
    else:
        outcome = Outcome.HEALTHY
        head = Headline(cause=None, standing=None, text=f"no fault found in {_files(len(result.recognised))}")
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
