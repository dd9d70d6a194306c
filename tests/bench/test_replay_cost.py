"""The bench of the replay's cost, as a smoke: tiny sizes, to see that it measures. For the numbers run `python tests/bench/replay_cost.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import replay_cost
from decoder import DTYPES, TINY, Training

pytestmark = [pytest.mark.bench, pytest.mark.torch]


@pytest.mark.parametrize("precision", DTYPES)
def test_every_variant_takes_the_steps_that_it_is_timed_for(precision: str) -> None:
    for name, variant in replay_cost.VARIANTS.items():
        training, alone = Training(precision, TINY), Training(precision, TINY)
        seconds = variant(training, 3)
        replay_cost.plain(alone, 3)
        assert len(seconds) == 3, name
        assert min(seconds) > 0, name
        steps = {float(state["step"]) for state in training.optimizer.state.values()}
        assert steps == {float(state["step"]) for state in alone.optimizer.state.values()}, name


def test_the_table_has_a_row_per_variant() -> None:
    names = ("plain, against itself", "mpdoctor guard", "mpdoctor op-level trace")
    variants = {name: replay_cost.VARIANTS[name] for name in names}
    found, seconds = replay_cost.ratios(Training("fp32", TINY), variants, 2)
    assert {name: len(values) for name, values in found.items()} == dict.fromkeys(names, 2)
    text = replay_cost.table("fp32", found, seconds, {names[0]: 100.0, names[1]: 101.0})
    assert [line.split("|")[1].strip() for line in text.splitlines()[4:]] == list(names)
    assert "101 MB (+1)" in text


def test_peak_memory_is_that_of_a_process_of_its_own() -> None:
    assert replay_cost.peak_megabytes("fp32", "mpdoctor op-level trace", TINY) > 50
