"""A recipe's text, investigated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpdoctor.core.report import ExperimentResult
from mpdoctor.core.rule import RuleRun
from mpdoctor.core.trace import Recording
from mpdoctor.replay.diagnosis import judge
from mpdoctor.replay.live.experiment import Lab, all_experiments, perform
from mpdoctor.replay.live.investigation import Investigation
from mpdoctor.replay.live.recipe import RecipeSource


@dataclass
class Case:
    """An investigated recipe."""

    investigation: Investigation
    judged: RuleRun

    @property
    def recording(self) -> Recording:
        return self.investigation.recording

    def lab(self) -> Lab:
        return Lab(self.investigation, self.judged.findings, frozenset(x.cause for x in self.judged.exclusions))

    def try_(self, slug: str) -> ExperimentResult:
        """Run one experiment alone."""
        experiment = next(e for e in all_experiments() if e.slug == slug)
        result, crash = perform(experiment, self.lab())
        assert crash is None, crash
        return result


@pytest.fixture
def investigate(tmp_path: Path) -> Callable[[str], Case]:
    """Investigates the text of a recipe."""

    def investigated(text: str) -> Case:
        path = tmp_path / "recipe.py"
        path.write_text("import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n" + text, encoding="utf-8")
        investigation = Investigation(RecipeSource(path))
        return Case(investigation, judge(investigation.recording, lambda _code, _slug: True))

    return investigated
