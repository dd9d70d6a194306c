"""Prints the matrix's table in pytest's summary."""

from __future__ import annotations

import pytest

TABLE = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def keep_table(request: pytest.FixtureRequest):
    """Keeps a table until the summary is written."""

    def keep(table: str) -> None:
        request.config.stash[TABLE] = table

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    table = terminalreporter.config.stash.get(TABLE, "")
    if table:
        terminalreporter.section("fault matrix")
        terminalreporter.write_line(table)
