"""The shared options, as a command receives them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from mpdoctor.cli.console import Color
from mpdoctor.cli.options import ReportOptions, with_report_options
from mpdoctor.core.errors import UsageError
from mpdoctor.core.gate import FailOn

received: list[tuple[object, ReportOptions]] = []


@with_report_options
def look(paths: Annotated[list[str], typer.Argument()], depth: Annotated[int, typer.Option()] = 3, *, options: ReportOptions) -> int:
    """Look at paths."""
    received.append(((paths, depth), options))
    return 0


app = typer.Typer(add_completion=False)
app.command()(look)


def options_of(*arguments: str) -> ReportOptions:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return received.pop()[1]


def test_own_parameters_keep_their_names_and_defaults() -> None:
    CliRunner().invoke(app, ["a", "b"], catch_exceptions=False)
    assert received.pop()[0] == (["a", "b"], 3)


def test_defaults() -> None:
    assert options_of("a") == ReportOptions()


def test_every_option_arrives() -> None:
    options = options_of(
        *("a", "--output-format", "json=x.json", "--output-format", "text", "--fail-on", "warning", "--exit-zero"),
        *("--gpu", "v100", "--gpu", "7.5", "--color", "never", "--ascii", "--quiet", "--debug"),
    )
    assert options.output_format == ["json=x.json", "text"]
    assert options.fail_on is FailOn.WARNING
    assert options.gpu == ["v100", "7.5"]
    assert options.color is Color.NEVER
    assert options.exit_zero
    assert options.ascii
    assert options.quiet
    assert options.debug


def test_output_is_a_path(tmp_path: Path) -> None:
    assert options_of("a", "--output", str(tmp_path / "r.txt")).output == tmp_path / "r.txt"


def test_codes_are_separated_by_commas_and_upper_case() -> None:
    options = ReportOptions(select=["cfg2, learning-rate-high", "RUN101"], ignore=[","])
    assert options.selected == ("CFG2", "learning-rate-high", "RUN101")
    assert options.ignored == ()


def test_wrong_options_are_told_before_the_command_starts() -> None:
    with pytest.raises(UsageError, match="unknown output format 'yaml'"):
        CliRunner().invoke(app, ["a", "--output-format", "yaml"], catch_exceptions=False)
    assert received == []
