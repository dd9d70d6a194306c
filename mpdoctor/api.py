"""The public Python API, and the only place where the slices meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpdoctor.core.report import Report


def run_check(
    paths: Sequence[str],
    *,
    gpus: Sequence[str] = (),
    dialect: str | None = None,
    framework_version: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Report:
    """Judge configs, scripts and checkpoint folders before a run starts.

    Args:
        paths: files, folders, or `-` for stdin. Files of one run are judged together.
        gpus: the cards that the run is for: names (`v100`), compute capabilities (`7.5`) or `auto`; empty when unknown.
        dialect: take the trainer's config for this dialect instead of recognising it.
        framework_version: for defaults and spellings (`4`, `5.24`).
        select: codes, prefixes or slugs of the rules to run; empty for all.
        ignore: those not to run.

    Raises MpdoctorError for an input that cannot be read.
    """
    from mpdoctor.check.pipeline import Options
    from mpdoctor.check.report import report_on
    from mpdoctor.gpu.fleet import resolve_gpus

    cards = resolve_gpus(tuple(gpus)) if gpus else ()
    options = Options(dialect=dialect, version=framework_version, gpus=cards, select=tuple(select), ignore=tuple(ignore))
    return report_on(paths, options)
