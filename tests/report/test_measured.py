"""Measurements with a form of their own."""

from __future__ import annotations

import math

import pytest

from mpdoctor.core.cause import Headline
from mpdoctor.core.gate import Outcome
from mpdoctor.core.report import Report
from mpdoctor.report.html.heat_map import MOST_ROWS, heat_map
from mpdoctor.report.measured import ModuleAmax, exponents, flops, in_words, module_amax, others, window


def measured(**measurements: object) -> Report:
    return Report(command="replay", outcome=Outcome.HEALTHY, headline=Headline(cause=None, standing=None, text=""), measurements=measurements)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"low": 16.0, "high": 32768.0, "used": 65536.0}, "2^4 (16) to 2^15 (32768); in use: 2^16 (65536), too high"),
        ({"low": 16.0, "high": 32768.0, "used": 1.0}, "2^4 (16) to 2^15 (32768); in use: 2^0, too low"),
        ({"low": 16.0, "high": 32768.0, "used": 3000.0}, "2^4 (16) to 2^15 (32768); in use: 3000"),
        ({"low": 2.0**-3, "high": 2.0**30, "used": None}, "2^-3 to 2^30"),
        ({"low": 64.0, "high": 2.0, "used": 8.0}, "empty: fp16 cannot hold these gradients at any loss scale"),
    ],
)
def test_the_window_in_words(values: dict[str, object], sentence: str) -> None:
    found = window(measured(loss_scale_window=values))
    assert found is not None
    assert found.sentence == sentence


def test_flops_become_shares_largest_first() -> None:
    assert flops(measured(flops_share_by_dtype={"float32": 1.0, "float16": 3.0, "int8": 0.0})) == {"float16": 0.75, "float32": 0.25}


def test_exponents_tell_what_is_below() -> None:
    (layer,) = exponents(measured(gradient_exponents=[{"name": "all", "zeros": 5, "counts": {"-30": 10, "-10": 5}}]))
    assert (layer.elements, layer.below(-24)) == (20, 0.5)


@pytest.mark.parametrize("name", ["loss_scale_window", "gradient_exponents", "module_amax", "flops_share_by_dtype", "gradients"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "text",
        [1],
        [{"naem": "x"}],
        [{"name": "x", "counts": {"a": "b"}, "grad_norm": "x"}],
        {"low": "x", "high": 1},
        [{"module": 1, "amax": {}}],
        math.nan,
    ],
)
def test_another_form_is_shown_as_it_is(name: str, value: object) -> None:
    report = measured(**{name: value})
    assert others(report) == {name: value}
    assert in_words(report)[0][0] == name.replace("_", " ")


def amax(module: str, value: float, *, step: int = 0, phase: str = "forward", nonfinite: int = 0) -> ModuleAmax:
    return ModuleAmax(step=step, phase=phase, module=module, dtype="float16", amax=value, nonfinite=nonfinite)


def test_a_heat_map_has_a_row_per_module_and_a_column_per_step_and_phase() -> None:
    found = heat_map([amax("a", 8.0), amax("a", 2.0, phase="backward"), amax("b", math.inf, nonfinite=2), amax("a", 0.0, step=1)])
    assert found is not None
    assert found.columns == ("0 forward", "0 backward", "1 forward")
    assert [(name, [cell.text if cell else None for cell in cells]) for name, cells in found.rows] == [
        ("a", ["3", "1", "0"]),
        ("b", ["inf", None, None]),
    ]
    assert found.rows[1][1][0].bad


def test_one_step_needs_no_number() -> None:
    found = heat_map([amax("a", 8.0), amax("a", 2.0, phase="backward")])
    assert found is not None
    assert found.columns == ("forward", "backward")


def test_a_large_model_keeps_bad_and_large_modules() -> None:
    found = heat_map([*(amax(f"m{i}", float(i + 1)) for i in range(MOST_ROWS + 5)), amax("broken", math.nan)])
    assert found is not None
    names = [name for name, _ in found.rows]
    assert found.left_out == 6
    assert "broken" in names
    assert "m0" not in names


def test_module_amax_reads_what_the_json_holds() -> None:
    (value,) = module_amax(measured(module_amax=[{"step": 3, "phase": "forward", "module": "a", "dtype": "float16", "amax": "inf", "nonfinite": 4}]))
    assert value == amax("a", math.inf, step=3, nonfinite=4)
