"""gpt-neox takes several files for one config; here they are merged as deepy.py merges them."""

from __future__ import annotations

import pytest

from mpdoctor.check.pipeline import CheckResult, Options, check_files

MODEL = '{"num-layers": 12, "hidden-size": 768, "num-attention-heads": 12, "seq-length": 2048, "pos-emb": "rotary"}\n'
TRAIN = '{"train_iters": 1000,\n "optimizer": {"type": "Adam", "params": {"lr": 0.0006}},\n "precision": "bfloat16"}\n'
PATHS = '{"data_path": "data/x", "save": "checkpoints"}\n'


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(launch: tuple[str, ...] = (), **files: str) -> CheckResult:
        for name, text in files.items():
            (tmp_path / f"{name}.yml").write_text(text)
        return check_files([] if launch else [f"{name}.yml" for name in files], Options(launch=launch))

    return run


def test_the_parts_of_a_config_are_one_run_even_when_none_says_enough_alone(check):
    result = check(model=MODEL, train=TRAIN, paths=PATHS)
    (config,) = result.configs
    assert (config.lr.value, config.lr.at.file, config.lr.at.line) == (0.0006, "train.yml", 2)
    assert config.n_params.known and config.compute_dtype.value == "bf16"
    assert config.files == ("model.yml", "train.yml", "paths.yml")
    assert {path for path, _ in result.recognised} == {"model.yml", "train.yml", "paths.yml"}
    assert result.unrecognised == []


def test_parts_that_no_framework_takes_stay_unrecognised(check):
    assert check(train=TRAIN, paths=PATHS).unrecognised == ["train.yml", "paths.yml"]


def test_a_key_in_two_files_is_refused_as_deepy_refuses_it(check):
    (finding,) = [f for f in check(model=MODEL, paths=PATHS, more='{"save": "elsewhere"}').findings if f.code == "CFG902"]
    assert finding.severity == "error"
    assert (finding.location.file, finding.related[0].file) == ("more.yml", "paths.yml")
    assert "refuses to start" in finding.message


def test_a_key_with_a_hyphen_slips_through_and_the_last_file_wins(check):
    result = check(model=MODEL, train=TRAIN, more='{"train-iters": 5}')
    (finding,) = [f for f in result.findings if f.code == "CFG902"]
    assert finding.severity == "warning"
    assert result.configs[0].total_steps.value == 5


def test_whole_configs_named_together_are_runs_of_their_own(check):
    whole = MODEL[:-2] + ", " + TRAIN[1:]
    result = check(a=whole, b=whole.replace("0.0006", "0.0003"))
    assert [config.lr.value for config in result.configs] == [0.0006, 0.0003]
    assert not [f for f in result.findings if f.code == "CFG902"]


def test_a_launch_line_names_the_parts_from_their_folder(check, tmp_path):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "model.yml").write_text(MODEL[:-2] + ", " + TRAIN[1:])
    (tmp_path / "configs" / "paths.yml").write_text(PATHS)
    result = check(launch=("python", "./deepy.py", "train.py", "-d", "configs", "model", "paths.yml"))
    assert [config.files for config in result.configs] == [("configs/model.yml", "configs/paths.yml")]
    assert result.unrecognised == []
