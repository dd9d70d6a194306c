"""Rules that hold for the whole repository: types, style, layers, size of files, what start-up loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mpdoctor"
MAX_LINES = 400
HEAVY = ("torch", "pandas", "numpy", "transformers", "jinja2", "pydantic")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def test_types_are_strict() -> None:
    result = run(sys.executable, "-m", "mypy")
    assert result.returncode == 0, result.stdout + result.stderr


def test_style_is_kept() -> None:
    result = run(sys.executable, "-m", "ruff", "check", ".")
    assert result.returncode == 0, result.stdout + result.stderr


def test_layers_are_kept() -> None:
    result = run(tool("lint-imports"), "--no-cache")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_file_holds_one_concept() -> None:
    long = {str(p.relative_to(ROOT)): n for p in PACKAGE.rglob("*.py") if (n := len(p.read_text(encoding="utf-8").splitlines())) > MAX_LINES}
    assert not long, f"files over {MAX_LINES} lines: {long}"


@pytest.mark.parametrize(
    "command",
    [["gpu", "--gpu", "v100"], ["check", "fixtures/checkpoints/healthy-bf16"], ["explain", "bf16"], ["rules"], ["--help"]],
    ids=lambda c: c[0],
)
def test_start_up_is_light(command: list[str]) -> None:
    program = (
        "import sys\n"
        "from mpdoctor.cli.app import run\n"
        f"code = run({command!r})\n"
        f"print('loaded:', [m for m in {HEAVY!r} if m in sys.modules], 'code:', code, file=sys.stderr)\n"
    )
    result = run(sys.executable, "-c", program)
    assert "loaded: []" in result.stderr, result.stderr
    assert "code: 0" in result.stderr or "code: 1" in result.stderr, result.stdout + result.stderr
