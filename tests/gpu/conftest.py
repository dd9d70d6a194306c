"""The fake NVML library, built once, and ways to read machines that are not here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpdoctor.gpu.backends import isolation
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.probe import probe

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures" / "gpu"
SPECS = FIXTURES / "nvml"
MACHINES = FIXTURES / "machines"
QUIET_LOG = FIXTURES / "kernel_log" / "quiet.log"

HANGS = ("hang", "hang_init", "hang_everywhere")


def spec_names() -> list[str]:
    return sorted(path.stem for path in SPECS.glob("*.spec"))


def machine_names() -> list[str]:
    return sorted(path.name for path in MACHINES.iterdir())


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory) -> Path:
    """A folder with a freshly built libnvidia-ml.so.1."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not sys.platform.startswith("linux") or not compiler:
        pytest.skip("the fake NVML library needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    command = [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*command, "-o", str(folder / "libnvidia-ml.so.1"), str(HERE / "fake_nvml" / "fake_nvml.c"), "-lpthread"], check=True)
    return folder


@pytest.fixture
def read(fake_nvml, monkeypatch):
    """Reads the machine of a spec in this process (NVML itself in a new Python, which alone sees the library path)."""

    def read(spec: str | Path, *, root: str = "old_xeon", limit: float = 30.0, log: Path = QUIET_LOG, environ=None) -> Machine:
        monkeypatch.setattr(isolation, "may_fork", lambda: False)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml))
        monkeypatch.setenv("FAKE_NVML_SPEC", str(spec if isinstance(spec, Path) else SPECS / f"{spec}.spec"))
        return probe(limit=limit, root=MACHINES / root, log=log, environ=environ or {}, ask_nvml=True)

    return read


@pytest.fixture
def command(fake_nvml):
    """Runs `mpdoctor gpu` as a user does, on the machine of a spec."""

    def command(spec: str | Path | None, *arguments: str, timeout: float = 60, **environment: str) -> subprocess.CompletedProcess:
        env = {
            name: value
            for name, value in os.environ.items()
            if name not in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "COLUMNS", "LD_LIBRARY_PATH")
        }
        if spec is not None:
            env |= {"LD_LIBRARY_PATH": str(fake_nvml), "FAKE_NVML_SPEC": str(spec if isinstance(spec, Path) else SPECS / f"{spec}.spec")}
        if not {"--kernel-log", "--gpu"} & set(arguments):
            arguments = (*arguments, "--kernel-log", str(QUIET_LOG))
        return subprocess.run(
            [sys.executable, "-m", "mpdoctor", "gpu", *arguments], capture_output=True, text=True, timeout=timeout, check=False, env=env | environment
        )

    return command
