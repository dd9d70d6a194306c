"""Errors that a user can act on. Everything else that escapes is a bug of mpdoctor (exit code 4)."""

from __future__ import annotations

from mpdoctor.core.gate import ExitCode


class MpdoctorError(Exception):
    """A problem to tell the user in one message: what (naming file and line), and the way out.

    Attributes:
        message: what is wrong, one sentence.
        hint: what to do about it.
        exit_code: the process's exit code, `ExitCode.USAGE` or `ExitCode.NOT_JUDGED`.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MpdoctorError):
    """Wrong arguments, or options that exclude each other."""


class UnreadableInput(MpdoctorError):
    """An input that is missing, truncated, hostile, or not what it should be."""


class MissingDependency(MpdoctorError):
    """An optional package that this command needs is not installed."""


class NothingToJudge(MpdoctorError):
    """The input is fine but holds nothing that mpdoctor can judge."""

    exit_code = ExitCode.NOT_JUDGED
