"""`--torch`: what the installed torch says, in a Python of its own."""

import json
import sys

import pytest

from mpdoctor.gpu import torch_probe


@pytest.mark.torch
def test_the_real_torch_tells_its_version_and_flags():
    says = torch_probe.ask()
    assert "error" not in says
    assert says["version"] and isinstance(says["arch_list"], list)
    assert says["flags"]["matmul.allow_fp16_accumulation"] is False
    assert says["flags"]["float32_matmul_precision"] == "highest"
    assert all(device["bf16_claimed"] in (True, False) for device in says["devices"])


@pytest.mark.torch
def test_the_command_shows_flags_and_imports_no_torch_itself(command):
    run = command("b200", "--torch", "--output-format", "json", PYTHONPROFILEIMPORTTIME="")
    report = json.loads(run.stdout)
    assert report["measurements"]["torch"]["version"] == report["environment"]["torch"]
    assert any("matmul.allow_tf32 off" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart.so.12"),
        ("import os; os._exit(3)", "exit code 3"),
        ("print('noise'); raise RuntimeError('broken install')", "broken install"),
        ("import time; time.sleep(600)", "did not answer within 2 s"),
    ],
)
def test_a_torch_that_does_not_import_is_told(module, words, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert words in torch_probe.ask(2 if "sleep" in module else 60)["error"]


def test_a_python_that_cannot_start_is_told(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert "could not start Python" in torch_probe.ask()["error"]
