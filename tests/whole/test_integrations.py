"""What other projects call: the pre-commit hook, the GitHub Action, and the snippets for GitLab and Slurm."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONFIGS = ROOT / "fixtures" / "configs"
FAULTY = CONFIGS / "deepspeed" / "faulty.CFG103.json"
HEALTHY = CONFIGS / "hf_trainer" / "healthy.yaml"


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


ACTION = load("action.yml")
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}


# --- pre-commit ---------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hook() -> dict[str, Any]:
    (only,) = load(".pre-commit-hooks.yaml")
    assert only["id"] == "mpdoctor-check"
    return dict(only)


def run_hook(hook: dict[str, Any], *files: Path | str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command, *arguments = shlex.split(hook["entry"])
    return subprocess.run([str(BIN / command), *arguments, *map(str, files)], cwd=cwd, capture_output=True, text=True, check=False)


def test_the_hook_passes_sound_configs_and_fails_on_a_broken_one(hook: dict[str, Any]) -> None:
    assert run_hook(hook, HEALTHY, ROOT / "pyproject.toml").returncode == 0
    failed = run_hook(hook, HEALTHY, FAULTY)
    assert failed.returncode == 1
    assert "exclude each other" in failed.stdout


def test_a_commit_without_training_configs_passes(hook: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "chart.yaml").write_text("image: {{ .Values.image }}\n", encoding="utf-8")
    (tmp_path / "empty.json").write_text("", encoding="utf-8")
    (tmp_path / "setup.py").write_text("import setuptools\nsetuptools.setup()\n", encoding="utf-8")
    result = run_hook(hook, "chart.yaml", "empty.json", "setup.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_configs_of_different_runs_in_one_commit_are_not_merged(hook: dict[str, Any], tmp_path: Path) -> None:
    """Together they would be one run that asks for bf16 and for fp16."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    shared = "output_dir: out\nlearning_rate: 2.0e-5\nper_device_train_batch_size: 4\nwarmup_ratio: 0.03\n"
    (tmp_path / "a" / "train.yaml").write_text(shared + "bf16: true\n", encoding="utf-8")
    (tmp_path / "b" / "train.yaml").write_text(shared + "fp16: true\n", encoding="utf-8")
    result = run_hook(hook, "a/train.yaml", "b/train.yaml", cwd=tmp_path)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("name", "matches"), [("train.yaml", True), ("ds/config.json", True), ("run.ipynb", True), ("README.md", False), ("a.pyc", False)]
)
def test_the_hook_is_given_what_could_be_a_config(hook: dict[str, Any], name: str, matches: bool) -> None:
    assert bool(re.search(hook["files"], name)) is matches


# --- GitHub -------------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A runner's folder with mpdoctor where the first step would have installed it."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "mpdoctor").symlink_to(BIN / "mpdoctor")
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(FAULTY, work / "ds_config.json")
    shutil.copy(HEALTHY, work / "train.yaml")
    return tmp_path


def check(runner: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step as the runner starts it: inputs in the environment, bash told to stop at errors."""
    step = STEPS["Check"]
    environment = dict.fromkeys(step["env"], "") | {"MPDOCTOR_FAIL_ON": "error", "MPDOCTOR_VENV": str(runner / "venv")}
    environment |= {f"MPDOCTOR_{name.upper()}": value for name, value in inputs.items()}
    environment |= {"PATH": os.environ["PATH"], "GITHUB_STEP_SUMMARY": str(runner / "summary.md")}
    assert set(environment) - {"PATH", "GITHUB_STEP_SUMMARY"} == set(step["env"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", step["run"]],
        cwd=runner / "work", env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_action_annotates_summarises_and_fails(runner: Path) -> None:
    result = check(runner, paths="ds_config.json\ntrain.yaml\n", gpu="a100, RTX 4090", sarif="mpdoctor.sarif")
    assert result.returncode == 1, result.stderr
    assert "::error file=ds_config.json,line=4" in result.stdout
    assert "exclude each other" in (runner / "summary.md").read_text(encoding="utf-8")
    assert json.loads((runner / "work" / "mpdoctor.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


def test_the_action_passes_a_sound_config(runner: Path) -> None:
    result = check(runner, paths="train.yaml")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_gate_can_be_set(runner: Path) -> None:
    assert check(runner, paths="ds_config.json", fail_on="never").returncode == 0
    assert check(runner, paths="ds_config.json", fail_on="nonsense").returncode == 2


@pytest.mark.parametrize("evil", ["--fix", "$(touch owned)", "`touch owned`", "x; touch owned", "'; touch owned; '", "--output=owned"])
@pytest.mark.parametrize("field", ["paths", "gpu", "fail_on", "baseline"])
def test_no_input_is_read_by_the_shell_or_as_an_option(runner: Path, field: str, evil: str) -> None:
    before = (runner / "work" / "ds_config.json").read_bytes()
    result = check(runner, **({"paths": "ds_config.json"} | {field: evil}))
    assert result.returncode == 2
    assert not (runner / "work" / "owned").exists()
    assert (runner / "work" / "ds_config.json").read_bytes() == before


@pytest.mark.parametrize("version", ["1.0 --index-url=http://example.invalid", "1.0; touch owned", "../wheel", "latest", "-r x", "1.0\n1.1", "*"])
def test_a_version_that_is_none_is_refused_before_anything_is_installed(runner: Path, version: str) -> None:
    environment = {
        "MPDOCTOR_VERSION": version, "MPDOCTOR_PYTHON": "false", "MPDOCTOR_SOURCE": str(ROOT), "MPDOCTOR_VENV": str(runner / "new"),
        "PATH": os.environ["PATH"],
    }  # fmt: skip
    assert set(environment) - {"PATH"} == set(STEPS["Install mpdoctor"]["env"])
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", STEPS["Install mpdoctor"]["run"]], cwd=runner, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "::error::version" in result.stdout
    assert not (runner / "new").exists() and not (runner / "owned").exists()


@pytest.mark.parametrize("version", ["", "1", "0.1.0", "1.2.3rc1"])
def test_a_version_is_installed_and_nothing_else_is_asked_for(runner: Path, version: str) -> None:
    """The step with a Python that records what it is asked to do."""
    fake = runner / "python"
    fake.write_text('#!/bin/sh\necho "$@" >> "$LOG"\n[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"\nexit 0\n', encoding="utf-8")
    fake.chmod(0o755)
    log = runner / "log"
    environment = {
        "MPDOCTOR_VERSION": version, "MPDOCTOR_PYTHON": str(fake), "MPDOCTOR_SOURCE": "/action", "MPDOCTOR_VENV": str(runner / "new"),
        "PATH": os.environ["PATH"], "LOG": str(log),
    }  # fmt: skip
    install = ["bash", "-c", STEPS["Install mpdoctor"]["run"]]
    result = subprocess.run(install, cwd=runner, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    wanted = f"mpdoctor=={version}" if version else "-- /action"
    assert log.read_text(encoding="utf-8").splitlines() == [f"-m venv {runner / 'new'}", f"-m pip install --quiet {wanted}"]


def test_inputs_reach_the_shell_by_the_environment_alone() -> None:
    used = set()
    for step in STEPS.values():
        assert "${{" not in step["run"], "an expression in a script is code injection"
        used |= {name for value in step["env"].values() for name in re.findall(r"inputs\.([\w-]+)", value)}
    assert used == set(ACTION["inputs"])
    assert all({"description", "default"} <= set(given) for given in ACTION["inputs"].values())
