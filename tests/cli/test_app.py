"""The process: exit codes, streams, and messages instead of tracebacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpdoctor import __version__
from mpdoctor.cli import app, failures
from mpdoctor.core.errors import NothingToJudge, UnreadableInput


def mpdoctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    scrubbed = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")}
    return subprocess.run(
        [sys.executable, "-m", "mpdoctor", *arguments], capture_output=True, text=True, env=scrubbed | environment, timeout=120, check=False
    )


def test_help_lists_every_command() -> None:
    result = mpdoctor("--help")
    assert result.returncode == 0
    for command in app.COMMANDS:
        assert f" {command} " in result.stdout


def test_without_a_command_it_shows_the_help_as_a_usage_error() -> None:
    result = mpdoctor()
    assert result.returncode == 2
    assert "Usage: mpdoctor" in result.stdout


def test_version() -> None:
    result = mpdoctor("--version")
    assert (result.returncode, result.stdout) == (0, f"mpdoctor {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["relpay"], "error: No such command 'relpay'. Did you mean 'replay'?\nhint: see mpdoctor --help\n"),
        (["replay", "--stpes", "3"], "error: No such option: --stpes (Possible options: --steps)\nhint: see mpdoctor replay --help\n"),
        (["replay"], "error: nothing to replay: neither a checkpoint nor a recipe nor a recorded trace is given\n"),
        (["explain", "loss-scalling"], "error: nothing is called 'loss-scalling'\nhint: did you mean loss-scaling"),
        (["rules", "XYZ"], "error: no rule's code starts with 'XYZ'\n"),
    ],
)
def test_wrong_usage_is_two_lines_on_stderr_and_code_2(arguments: list[str], message: str) -> None:
    result = mpdoctor(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 2


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    script = f"set -o pipefail; {sys.executable} -m mpdoctor explain 2>{tmp_path}/stderr | head -1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.splitlines()[-1] == "0"
    assert (tmp_path / "stderr").read_text() == ""


def test_light_commands_load_nothing_heavy(tmp_path: Path) -> None:
    config = tmp_path / "train.yaml"
    config.write_text("output_dir: out\nlearning_rate: 1.0e-4\nfp16: true\nper_device_train_batch_size: 8\n")
    commands = [["explain", "CFG101"], ["rules"], ["gpu"], ["gpu", "--gpu", "v100"], ["check", str(config), "--gpu", "v100"], ["demo"], ["recipe"]]
    heavy = {"torch", "pandas", "numpy", "transformers", "safetensors", "jinja2"}
    code = f"import sys; from mpdoctor.cli.app import run; codes = [run(c) for c in {commands!r}]"
    code += f"; print(codes, sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert result.stderr.splitlines()[-1].endswith(" []"), result.stderr
    assert "4" not in result.stderr.splitlines()[-1]


def test_a_stream_without_unicode_gets_ascii() -> None:
    result = mpdoctor("explain", "fp16", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert result.stdout.isascii()


@pytest.mark.parametrize(
    ("environment", "arguments", "colored"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
    ],
)
def test_colour_follows_the_option_then_the_environment(environment: dict[str, str], arguments: list[str], colored: bool) -> None:
    result = mpdoctor("explain", "fp16", *arguments, **environment)
    assert ("\x1b[" in result.stdout) is colored


def test_a_known_error_tells_message_and_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.tell(UnreadableInput("a.yaml:3: tab in indentation", "use spaces"), debug=False) == 2
    assert capsys.readouterr().err == "error: a.yaml:3: tab in indentation\nhint: use spaces\n"
    assert failures.tell(NothingToJudge("nothing here"), debug=False) == 3


def test_a_bug_is_code_4_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.tell(KeyError("lr"), debug=False) == 4
    message = capsys.readouterr().err
    assert message.startswith("error: mpdoctor has a bug: KeyError: 'lr'\nhint: run again with --debug")
    assert message.count("\n") == 2


def test_debug_shows_where_a_bug_is(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        {}["lr"]
    except KeyError as error:
        assert failures.tell(error, debug=True) == 4
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_is_code_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.tell(KeyboardInterrupt(), debug=False) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mpdoctor ", set(app.COMMANDS)),
        ("mpdoctor replay --exp", {"--experiments"}),
        ("mpdoctor check x --output-format ma", {"markdown"}),
        ("mpdoctor explain loss-sc", {"loss-scaling"}),
        ("mpdoctor demo fp16", {"fp16-overflow"}),
    ],
)
def test_the_shell_completes(line: str, expected: set[str]) -> None:
    words = line.split(" ")
    result = mpdoctor(_MPDOCTOR_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert expected <= set(result.stdout.split())
