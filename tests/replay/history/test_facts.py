"""What rows of a log say: breaks, filtered NaN, growth, collapse, scales; and what is normal."""

from __future__ import annotations

import math

import pytest

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.history import HistoryFacts, facts_of

NAN, INF = math.nan, math.inf


def rows(
    losses: list[float | None] | None = None,
    norms: list[float | None] | None = None,
    scales: list[float] | None = None,
    lr: float | None = None,
) -> list[StepRecord]:
    count = max(len(c) for c in (losses or [], norms or [], scales or []))

    def at(column: list[float | None] | list[float] | None, i: int) -> float | None:
        return column[i] if column else None

    return [StepRecord(step=i + 1, loss=at(losses, i), grad_norm=at(norms, i), scale=at(scales, i), lr=lr, source="history") for i in range(count)]


def facts(records: list[StepRecord], *, nan_filtered: bool | None = None, scaled: bool = False) -> HistoryFacts:
    return facts_of(records, nan_filtered=nan_filtered, scaled=scaled)[0]


FALLING: list[float | None] = [4.0, 3.7, 3.5, 3.3, 3.2, 3.1, 3.0, 2.95]


def test_a_healthy_log_says_nothing() -> None:
    found = facts(rows(FALLING, [1.2, 0.9, 1.1, 1.0, 0.8, 1.3, 0.9, 1.0], lr=1e-3))
    assert found == HistoryFacts(rows=8)


def test_no_rows_say_nothing() -> None:
    assert facts([]) == HistoryFacts()


def test_a_nan_to_the_end_is_a_break_with_its_last_good_step_and_rate() -> None:
    found = facts(rows([*FALLING, NAN, NAN], lr=2e-4))
    assert (found.broken_from, found.last_good, found.nonfinite_loss, found.lr_at_break) == (9, 8, 9, 2e-4)


def test_a_nan_that_came_back_is_no_break() -> None:
    found = facts(rows([4.0, NAN, 3.0, 2.0]))
    assert (found.broken_from, found.nonfinite_loss) == (None, 2)


@pytest.mark.parametrize(("filtered", "norms"), [(True, None), (None, [1.0] * 8 + [NAN, NAN]), (False, [1.0] * 8 + [NAN, NAN])])
def test_loss_exactly_zero_after_others_is_a_filtered_nan(filtered: bool | None, norms: list[float | None] | None) -> None:
    found = facts(rows([*FALLING, 0.0, 0.0], norms), nan_filtered=filtered)
    assert (found.zero_loss, found.broken_from, found.last_good, found.filtered) == (9, 9, 8, True)


def test_zero_loss_of_an_unknown_logger_is_only_likely_filtered() -> None:
    assert facts(rows([*FALLING, 0.0, 0.0])).filtered is False


def test_a_loss_that_went_down_to_zero_is_no_break() -> None:
    found = facts(rows([1.0, 0.1, 1e-3, 1e-5, 0.0, 0.0, 0.0]), nan_filtered=True)
    assert (found.zero_loss, found.broken_from) == (None, None)


def test_a_single_last_zero_needs_proof() -> None:
    assert facts(rows([*FALLING, 0.0]), nan_filtered=True).zero_loss is None
    assert facts(rows([*FALLING, 0.0], [1.0] * 8 + [NAN])).zero_loss == 9


def test_a_scaler_that_skips_is_normal_and_counted() -> None:
    found, judged = facts_of(rows(FALLING, [1.0, INF, 1.0, 1.0, 1.0, INF, 1.0, 1.0]), nan_filtered=True, scaled=True)
    assert (found.skipped, found.skip_rate, found.longest_skip, found.broken_from) == ((2, 6), 0.25, 1, None)
    assert [r.step for r in judged if r.skipped] == [2, 6]


def test_without_a_scaler_a_bad_norm_is_no_skip() -> None:
    found = facts(rows(FALLING, [1.0] * 7 + [INF]))
    assert (found.skipped, found.broken_from) == ((), 8)


def test_a_scaler_that_skips_to_the_end_is_broken() -> None:
    found = facts(rows(FALLING, [1.0, 1.0, 1.0, *[INF] * 5]), scaled=True)
    assert (found.broken_from, found.longest_skip) == (4, 5)
    assert facts(rows(FALLING, [1.0, 1.0, 1.0, 1.0, *[INF] * 4]), scaled=True).broken_from is None


def test_growth_row_by_row_up_to_the_break() -> None:
    found = facts(rows([4.0, 3.5, 3.2, 5.0, 11.0, 40.0, NAN, NAN]))
    assert found.growth is not None
    assert (found.growth.what, found.growth.from_step, found.growth.to_step, found.growth.before, found.growth.after) == ("loss", 3, 6, 3.2, 40.0)


def test_growth_of_the_norm_alone_counts_when_the_loss_does_not_fall() -> None:
    norms: list[float | None] = [1.0, 1.0, 1.0, 3.0, 9.0, 30.0, 90.0]
    assert facts(rows([4.0, 4.0, 4.0, 4.0, 4.0, 4.1, 4.3], norms)).growth is not None
    assert facts(rows([4.0, 3.5, 3.0, 2.5, 2.2, 2.0, 1.9], norms)).growth is None


@pytest.mark.parametrize(
    "losses",
    [
        [0.11, 0.33, 0.21, 0.33, 0.12, 0.2, 0.36],  # noise of small losses: such heights were there before
        [4.0 * 1.04**i for i in range(40)],  # a slow drift
        [4.0, 4.1, 4.2],
    ],
)
def test_what_is_no_growth(losses: list[float | None]) -> None:
    assert facts(rows(losses)).growth is None


def test_a_run_that_ends_above_its_start_diverged() -> None:
    found = facts(rows([4.0, 5.0, 7.0, 6.5, 7.1, 6.8, 7.2, 6.9]))
    assert found.diverged is not None and found.diverged.after > 6
    assert facts(rows([4.0, 5.0, 7.0, 6.5, 3.0, 2.8, 2.5, 2.2])).diverged is None


def test_spikes_that_came_back_are_listed() -> None:
    found = facts(rows([4.0, 3.9, 3.8, 3.7, 3.6, 3.5, 30.0, 3.4, 3.3]))
    assert [(s.what, s.to_step) for s in found.spikes] == [("loss", 7)]


def test_collapse_of_the_norm_needs_a_loss_that_stays() -> None:
    norms: list[float | None] = [1.0, 1.1, 0.9, 1.0, 1e-6, 1e-7, 1e-7]
    assert facts(rows([4.0, 3.9, 3.9, 3.8, 3.8, 3.8, 3.8], norms)).collapse is not None
    assert facts(rows([4.0, 2.0, 1.0, 0.5, 0.1, 0.01, 0.001], norms)).collapse is None


def test_gradients_that_were_zero_from_the_start() -> None:
    assert facts(rows([4.0, 4.0, 3.9], [0.0, 0.0, 0.0])).dead_from_start
    assert not facts(rows([4.0, 4.0, 3.9], [0.0, 0.1, 0.0])).dead_from_start


def test_a_scale_that_walks_down_to_the_end() -> None:
    found = facts(rows(scales=[65536.0, 65536.0, 32768.0, 16384.0, 8192.0, 4096.0], losses=[4.0] * 5 + [3.0]))
    assert found.scale_walk is not None
    assert (found.scale_walk.from_step, found.scale_walk.before, found.scale_walk.after) == (2, 65536.0, 4096.0)
    assert (found.scale_first, found.scale_last, found.scale_min, found.scale_drops) == (65536.0, 4096.0, 4096.0, 4)
    assert facts(rows(scales=[65536.0, 32768.0, 32768.0, 32768.0, 65536.0, 32768.0])).scale_walk is None


def test_the_same_loss_in_every_row() -> None:
    assert facts(rows([10.8249] * 6)).constant_loss == 10.8249
    assert facts(rows([10.8249] * 5 + [10.8248])).constant_loss is None
