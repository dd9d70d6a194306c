"""The command line in this process, and recipes as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mpdoctor.cli.app import run

CHECKPOINTS = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints"


@dataclass(frozen=True)
class Ran:
    """What `mpdoctor replay` returned and wrote."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.stdout)  # type: ignore[no-any-return]

    @property
    def skipped(self) -> list[tuple[str, str]]:
        return [(s["what"], s["why"]) for s in self.report["skipped"]]

    def entry(self, cause: str) -> dict[str, Any]:
        return next(e for e in self.report["checklist"] if e["cause"] == cause)

    def refused(self, *words: str, exit_code: int = 2) -> None:
        """Whether the input was refused by one message that holds all these words, and no traceback."""
        assert self.exit_code == exit_code, (self.stdout, self.stderr)
        assert self.stdout == ""
        assert "Traceback" not in self.stderr
        assert "mpdoctor has a bug" not in self.stderr
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        assert 1 <= len(lines) <= 4, self.stderr
        joined = " ".join(self.stderr.split())
        for word in words:
            assert word in joined, (word, self.stderr)


Replay = Callable[..., Ran]


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Replay:
    """`mpdoctor replay ARGUMENTS`, with the report as JSON."""
    monkeypatch.setenv("COLUMNS", "500")

    def ran(*arguments: object, output: str = "json") -> Ran:
        capsys.readouterr()
        code = run(["replay", *map(str, arguments), "--output-format", output])
        written = capsys.readouterr()
        return Ran(code, written.out, written.err)

    return ran


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the text of a recipe."""

    def written(text: str, name: str = "recipe.py") -> Path:
        path = tmp_path / name
        path.write_text("import time\nimport torch\nfrom torch import nn\n" + text, encoding="utf-8")
        return path

    return written
