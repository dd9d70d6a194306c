"""What `mpdoctor check` costs: one file against the import of its libraries, and a thousand files in one call. CPU time.

Run by hand for the numbers: `pytest tests/bench/test_check_cost.py -s`. In the suite it is a smoke with bounds that a busy machine keeps, too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "configs"
FILES = [path for path in sorted(FIXTURES.glob("*/*")) if path.suffix in (".yaml", ".yml", ".json", ".toml") and path.is_file()]
ROUNDS = 7
BASELINE = [sys.executable, "-c", "import typer, rich, yaml"]
ONE = [sys.executable, "-m", "mpdoctor", "check", str(FIXTURES / "hf_trainer" / "healthy.yaml")]


def cpu_seconds(command: list[str], cache: Path) -> float:
    """User and system time of a process, its bytecode cached as in an installed package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": str(cache)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.bench
def test_one_file(tmp_path):
    times: dict[str, list[float]] = {"import typer, rich, yaml": [], "check": [], "check, as JSON": []}
    for _ in range(ROUNDS + 1):  # interleaved: what else the machine does hits all alike; the first round fills the caches
        for name, command in zip(times, (BASELINE, ONE, [*ONE, "--output-format", "json"]), strict=True):
            times[name].append(cpu_seconds(command, tmp_path))
    baseline, *checks = (min(values[1:]) for values in times.values())
    for name, best in zip(times, (baseline, *checks), strict=True):
        print(f"\n{name}: {best * 1000:.0f} ms, {best / baseline:.2f} x", end="")
    assert max(checks) / baseline < 4, "by hand, on a quiet machine, it must be below 1.5"


@pytest.mark.bench
def test_a_thousand_files_in_one_call(tmp_path):
    for index in range(1000):
        source = FILES[index % len(FILES)]
        folder = tmp_path / "configs" / str(index)
        folder.mkdir(parents=True)
        (folder / source.name).write_bytes(source.read_bytes())
    command = [sys.executable, "-m", "mpdoctor", "check", str(tmp_path / "configs"), "--output-format", "json", "--fail-on", "never"]
    cost = cpu_seconds(command, tmp_path / "cache")
    print(f"\n1000 configs in one call: {cost:.2f} ms each")
    assert cost < 40, "by hand, on a quiet machine, it must be below 10 ms each"
