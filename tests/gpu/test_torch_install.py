"""torch, read from its files."""

import pytest

from mpdoctor.gpu.torch_install import TorchInstall, codes, installed, runs, wheels_for

VERSION = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda}
git_version = 'cf30153c'
hip: Optional[str] = {hip}
xpu: Optional[str] = None
"""

LIST = """
PYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {
    "12.6": {
        "x86_64": {50, 60, 70, 75, 80, 86, 90},
        "aarch64": {80, 90},
    },
    "13.0": {
        "x86_64": {75, 80, 86, 90, 100, 120},
        "aarch64": {80, 90, 100, 110, 120},
    },
}
"""


@pytest.fixture
def torch(tmp_path, monkeypatch):
    def make(version, cuda="None", hip="None", module=""):
        installed.cache_clear()
        monkeypatch.setattr("platform.machine", lambda: "x86_64")
        folder = tmp_path / f"torch-{version}"
        (folder / "cuda").mkdir(parents=True)
        (folder / "version.py").write_text(VERSION.format(version=version, cuda=cuda, hip=hip))
        (folder / "cuda/__init__.py").write_text(module)
        return installed(folder)

    return make


def test_a_cpu_build(torch):
    found = torch("2.13.0+cpu")
    assert found == TorchInstall(version="2.13.0+cpu")
    assert found.serves((8, 0)) is False


def test_a_release_of_the_table(torch):
    old, new = torch("2.10.0+cu128", cuda="'12.8'"), torch("2.11.0+cu128", cuda="'12.8'")
    assert old.serves((7, 0)) is True
    assert new.serves((7, 0)) is False, "2.11 dropped Volta from its CUDA 12.8 wheels"
    assert new.serves((8, 9)) is True, "8.9 runs code for 8.6"


def test_a_newer_release_tells_by_its_own_list(torch):
    found = torch("2.14.1+cu130", cuda="'13.0'", module=LIST)
    assert found.kernels == ((7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (12, 0))
    assert found.serves((6, 0)) is False
    assert found.serves((12, 1)) is True


@pytest.mark.parametrize("module", ["", "PYTORCH_RELEASES_CODE_CC = oops\n", "PYTORCH_RELEASES_CODE_CC = {'x'\n}\n", LIST.replace("13.0", "13.9")])
def test_an_unknown_list_is_unknown(module, torch):
    found = torch("2.99.0+cu130", cuda="'13.0'", module=module)
    assert found.kernels is None and found.serves((8, 0)) is None


def test_a_rocm_build(torch):
    assert torch("2.11.0+rocm6.4", hip="'6.4.43482'").hip == "6.4.43482"


def test_no_torch_and_broken_torch(tmp_path):
    installed.cache_clear()
    assert installed(tmp_path) is None
    (tmp_path / "version.py").write_bytes(b"\xff\xfe nothing")
    installed.cache_clear()
    assert installed(tmp_path) is None


@pytest.mark.parametrize(
    ("code", "device", "fits"),
    [
        ((8, 0), (8, 6), True),
        ((8, 6), (8, 0), False),
        ((8, 0), (9, 0), False),
        ((8, 0), (8, 7), False),  # Orin takes its own code only
        ((8, 7), (8, 7), True),
        ((5, 0), (5, 3), False),
        ((10, 1), (11, 0), True),  # Thor was 10.1 before CUDA 13
        ((12, 0), (12, 1), True),
    ],
)
def test_which_code_runs_where(code, device, fits):
    assert runs(code, device) is fits


def test_arch_lists_of_torch():
    assert codes(["sm_50", "sm_90a", "sm_120", "compute_120"]) == ((5, 0), (9, 0), (12, 0))


@pytest.mark.parametrize(
    ("capability", "words"),
    [
        ((3, 5), "no current torch wheel"),
        ((6, 1), "12.6"),
        ((7, 0), "12.8 up to 2.10"),
        ((7, 5), ""),
        ((9, 0), ""),
        ((12, 0), "12.8"),
        ((11, 0), "Arm"),
    ],
)
def test_wheels_that_still_serve_old_gpus(capability, words):
    assert words in wheels_for(capability) and bool(words) == bool(wheels_for(capability))
