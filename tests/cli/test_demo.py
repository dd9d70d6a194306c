"""The bundled runs: each ends as its description says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mpdoctor.cli.demo import demos

EXPECTED = {
    "broken-row": "dirty-data",
    "fp16-overflow": "fp16-range",
    "gradients-flushed": "loss-scaling",
    "healthy": None,
    "hidden-root": "model-numerics",
    "learning-rate-too-high": "learning-rate",
    "lost-updates": "low-precision-state",
}


def test_every_demo_says_what_happens_and_what_to_notice() -> None:
    found = list(demos())
    assert [demo.name for demo in found] == sorted(EXPECTED)
    for demo in found:
        assert demo.title.endswith(".")
        assert len(demo.notice) > 80


def test_the_list_loads_no_torch() -> None:
    code = "import sys; from mpdoctor.cli.app import run; assert run(['demo']) == 0; sys.exit('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0
    assert all(name in result.stdout for name in EXPECTED)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_demo_gets_the_cause_that_it_shows(name: str) -> None:
    from mpdoctor.api import run_replay

    demo = next(demo for demo in demos() if demo.name == name)
    report = run_replay(recipe=demo.path)
    assert report.headline.cause == EXPECTED[name]
    assert report.healthy is (EXPECTED[name] is None)
    if report.first_nonfinite and report.first_nonfinite.site.source:
        assert report.first_nonfinite.site.source.file == str(demo.path)
