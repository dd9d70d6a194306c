"""The fault matrix: mpdoctor on faults, their repaired twins and healthy runs, held to the numbers that the project promises."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import matrix

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, keep_table: Callable[[str], None]) -> list[matrix.Run]:
    planned = matrix.plan(tmp_path_factory.mktemp("twins"))
    matrix.run_all(planned)
    keep_table(matrix.table(planned))
    return planned


def test_nothing_crashes_or_hangs(runs: list[matrix.Run]) -> None:
    broken = [matrix.miss(run) for run in runs if run.cause == "crash"]
    assert not broken, "\n".join(broken)


def test_every_origin_is_right(runs: list[matrix.Run]) -> None:
    placed = [run for run in runs if run.has_origin]
    wrong = [matrix.miss(run) for run in placed if not run.origin_right]
    assert len(wrong) <= (1 - matrix.ORIGIN_SHARE) * len(placed), "\n".join(wrong)


def test_no_silent_fault_is_given_an_origin(runs: list[matrix.Run]) -> None:
    wrong = [matrix.miss(run) for run in runs if run.truth and not run.has_origin and not run.origin_right]
    assert not wrong, "\n".join(wrong)


def test_the_top_cause_is_acceptable(runs: list[matrix.Run]) -> None:
    faults = [run for run in runs if run.truth]
    wrong = [matrix.miss(run) for run in faults if not run.cause_right]
    assert len(wrong) <= (1 - matrix.CAUSE_SHARE) * len(faults), "\n".join(wrong)


def test_no_healthy_run_and_no_twin_is_reported(runs: list[matrix.Run]) -> None:
    alarms = [matrix.miss(run) for run in runs if run.false_alarm]
    assert len(alarms) <= matrix.FALSE_ALARMS, "\n".join(alarms)
