"""Hostile checkpoints through the command line: refused or judged, within bounds, nothing run, nothing written."""

from __future__ import annotations

import importlib.util
import os
import resource
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

BUILDER = Path(__file__).parents[3] / "fixtures" / "hostile" / "build.py"
CPU_SECONDS = 30
"""Limit of processor time for one sample, by the kernel; the slowest needs six."""
RESIDENT = 1 << 30
"""Memory limit: resident bytes at the peak."""


def load_builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hostile_build", BUILDER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pytestmark = pytest.mark.slow
SAMPLES = sorted(load_builder().SAMPLES)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return load_builder().build_all(tmp_path_factory.mktemp("hostile"))  # type: ignore[no-any-return]


def inventory(path: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and change times of everything below a path."""
    places = [path, *path.rglob("*")] if path.is_dir() else [path]
    found = [(str(p), p.lstat()) for p in places]
    return [(name, s.st_size, 0 if stat.S_ISCHR(s.st_mode) else s.st_mtime_ns) for name, s in found]


@dataclass(frozen=True)
class Run:
    code: int
    output: str
    errors: str
    peak: int
    """Resident bytes at the peak."""


def replay(path: Path, folder: Path) -> Run:
    """Run the command in `folder` under limits of processor time and of bytes written."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    environment = {**os.environ, "MPDOCTOR_HOSTILE_MARK": str(folder / "mark"), "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "mpdoctor", "replay", str(path)], stdout=output, stderr=errors, env=environment, cwd=folder, preexec_fn=limit
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return Run(process.returncode, texts[0], texts[1], usage.ru_maxrss * 1024)


@pytest.mark.parametrize("name", SAMPLES)
def test_hostile_sample(built: dict[str, Path], name: str, tmp_path: Path) -> None:
    path = built[name]
    before = inventory(path)
    run = replay(path, tmp_path)
    assert run.code in (1, 2, 3), run.output + run.errors
    assert "Traceback" not in run.errors
    assert not list(tmp_path.iterdir()), "it ran something, or wrote a file"
    assert not Path("/tmp/mpdoctor-evil").exists()
    assert inventory(path) == before
    assert run.peak < RESIDENT
    assert "\x1b]0;owned" not in run.output + run.errors


@pytest.mark.parametrize("name", ["system_in_torch_zip", "nested_reduce", "training_args_that_run", "exec_in_legacy_torch"])
def test_what_a_file_would_run_is_named(built: dict[str, Path], name: str, tmp_path: Path) -> None:
    run = replay(built[name], tmp_path)
    assert run.code == 1
    text = " ".join(run.output.split())
    assert any(function in text for function in ("os.system", "builtins.getattr", "subprocess.check_output", "builtins.exec"))
