"""From what the user names to runs: grouping, folders, launch lines, inheritance, references, checkpoints, scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor import api
from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.core.errors import UnreadableInput, UsageError
from mpdoctor.core.gate import Outcome

TRAIN = "learning_rate: 2.0e-5\noutput_dir: out\nbf16: true\nper_device_train_batch_size: 4\n"
DS = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}'
CHECKPOINTS = Path(__file__).parents[2] / "fixtures" / "checkpoints"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**named):
        for name, text in named.items():
            path = tmp_path / name.replace("__", ".").replace("_in_", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def check(*paths, **options):
    return check_files([str(path) for path in paths], Options(**options))


def test_auto_takes_the_trainers_value_and_place(files):
    files(train__yaml=TRAIN, ds__json=DS)
    result = check("train.yaml", "ds.json")
    assert len(result.configs) == 1
    config = result.configs[0]
    assert (config.precision_mode.value, config.master_dtype.value, config.distributed.value) == ("master_weights", "fp32", "zero2")
    assert (config.param_dtype.at.file, config.param_dtype.at.line) == ("train.yaml", 3)


def test_a_named_deepspeed_config_is_followed_and_not_read_twice(files):
    files(train__yaml=TRAIN + "deepspeed: ds.json\n", ds__json=DS)
    assert check("train.yaml").configs[0].distributed.value == "zero2"
    assert [path for path, _ in check("train.yaml", "ds.json").recognised] == ["train.yaml", "ds.json"]


def test_a_named_deepspeed_config_that_is_not_there_is_told(files):
    files(train__yaml=TRAIN + "deepspeed: missing.json\n")
    assert [skipped.what for skipped in check("train.yaml").skipped] == ["missing.json"]


def test_an_embedded_deepspeed_config_is_judged(files):
    files(train__yaml=TRAIN + "deepspeed:\n  zero_optimization: {stage: 2}\n  train_micro_batch_size_per_gpu: 8\n")
    finding = next(finding for finding in check("train.yaml").findings if finding.code == "CFG803")
    assert (finding.location.file, finding.location.line) == ("train.yaml", 7)


def test_several_trainers_are_several_runs(files):
    files(a__yaml=TRAIN, b__yaml=TRAIN, ds__json=DS)
    result = check("a.yaml", "b.yaml", "ds.json")
    assert len(result.configs) == 3


def test_files_of_one_folder_are_one_run_on_a_walk(files):
    files(one_in_train__yaml=TRAIN, one_in_ds__json=DS, two_in_train__yaml=TRAIN)
    result = check(".")
    assert sorted(len(config.files) for config in result.configs) == [1, 2]


def test_a_walk_skips_what_git_ignores_and_counts_what_it_does_not_know(files):
    folder = files(
        train__yaml=TRAIN, __gitignore="ignored/\n*.local.yaml\n", ignored_in_train__yaml=TRAIN, x__local__yaml=TRAIN,
        node_modules_in_a__yaml=TRAIN, notes__yaml="title: learning_rate\n", broken__yaml="learning_rate: [\n", plain__json='{"a": 1}',
    )  # fmt: skip
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "train.yaml").write_text(TRAIN)
    result = check(".")
    assert [path for path, _ in result.recognised] == ["train.yaml"]
    assert sorted(result.unrecognised) == ["notes.yaml", "plain.json"]
    assert [(skipped.what, "not valid YAML" in skipped.why) for skipped in result.skipped] == [("broken.yaml", True)]


def test_a_broken_file_that_is_named_is_refused(files):
    files(broken__yaml="learning_rate: [\n")
    with pytest.raises(UnreadableInput, match=r"broken\.yaml:2:1: not valid YAML"):
        check("broken.yaml")


def test_nothing_recognised_is_not_clean(files):
    files(notes__yaml="title: hello\n")
    report = api.run_check(["notes.yaml"])
    assert report.outcome is Outcome.COULD_NOT_JUDGE
    assert "notes.yaml" in report.headline.text


def test_keras_is_named_and_not_judged(files):
    files(model__json='{"class_name": "Functional", "keras_version": "3.0", "config": {"learning_rate": 1}}')
    report = api.run_check(["model.json"])
    assert report.outcome is Outcome.COULD_NOT_JUDGE
    assert "Keras" in report.skipped[0].why


def test_a_dialect_can_be_named(files):
    files(own__yaml="learning_rate: 0.05\n")
    assert check("own.yaml", dialect="hf_trainer").findings[0].code == "CFG306"
    with pytest.raises(UsageError, match="no dialect"):
        check("own.yaml", dialect="hf")


def test_a_launch_line_is_a_config():
    words = ["torchrun", "--nproc_per_node", "8", "--nnodes=4", "train.py", "--fp16", "--learning_rate", "3e-2", "--output_dir", "x"]
    result = check(launch=tuple(words))
    config = result.configs[0]
    assert (config.compute_dtype.value, config.lr.value, config.world_size.value) == ("fp16", 0.03, 32)
    finding = next(finding for finding in result.findings if finding.code == "CFG306")
    assert "torchrun --nproc_per_node 8 --nnodes=4 train.py --fp16 --learning_rate 3e-2"[finding.location.column - 1 :].startswith("--learning_rate")


def test_shell_variables_and_arrays_are_followed(files):
    files(run__sh='LR=1e-9\nARGS=(\n  --fp16\n)\nMORE="--learning_rate $LR --output_dir out"\npython train.py "${ARGS[@]}" $MORE\n')
    result = check("run.sh")
    assert (result.configs[0].compute_dtype.value, result.configs[0].lr.value) == ("fp16", 1e-9)
    assert result.configs[0].compute_dtype.at.line == 3


def test_bases_are_merged_and_keep_their_places(files):
    files(
        configs_in__base__yaml="MODEL: {META_ARCHITECTURE: X}\nSOLVER:\n  BASE_LR: 0.02\n  AMP: {ENABLED: true}\n",
        configs_in_coco_in_run__yaml="_BASE_: ../_base.yaml\nSOLVER:\n  MAX_ITER: 90000\n",
    )
    Path("configs/_base.yaml").write_text("MODEL: {META_ARCHITECTURE: X}\nSOLVER:\n  BASE_LR: 0.02\n  AMP: {ENABLED: true}\n")
    config = check("configs/coco/run.yaml").configs[0]
    assert (config.lr.value, config.total_steps.value, config.compute_dtype.value) == (0.02, 90000, "fp16")
    assert config.lr.at.file.endswith("_base.yaml")
    assert config.lr.at.line == 3


def test_hydra_groups_go_under_their_package(files):
    files(
        conf_in_config__yaml="exp_manager: {name: a}\n"
        "defaults:\n  - _self_\n  - trainer: fast\n  - optim@model.optim: adam\n  - override hydra/launcher: x\n",
        conf_in_trainer_in_fast__yaml="precision: 16\nmax_steps: 10\ndevices: 1\n",
        conf_in_optim_in_adam__yaml="name: adam\nlr: 0.1\n",
    )
    config = check("conf/config.yaml").configs[0]
    assert (config.dialect, config.compute_dtype.value, config.lr.value) == ("nemo", "fp16", 0.1)
    assert config.lr.at.file == "conf/optim/adam.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("_BASE_: missing.yaml\nSOLVER: {}\n", r"run\.yaml:1:1: the base config missing\.yaml is not there"),
        ("_BASE_: run.yaml\nSOLVER: {}\n", "includes itself"),
    ],
)
def test_bases_that_cannot_be_read_are_refused(files, text, said):
    files(run__yaml=text)
    with pytest.raises(UnreadableInput, match=said):
        check("run.yaml")


def test_bases_outside_are_not_read(files):
    files(run__yaml="_BASE_: /etc/passwd\nSOLVER: {BASE_LR: 0.02}\nMODEL: {}\n")
    result = check("run.yaml")
    assert "outside" in result.skipped[0].why
    assert result.configs[0].lr.value == 0.02


def test_interpolation_points_to_where_the_value_stands(files):
    files(
        run__yaml="variables:\n  lr: 0.5\nmax_duration: 10ba\nglobal_train_batch_size: 8\n"
        "train_loader: {name: text}\nprecision: amp_bf16\noptimizer: {name: adamw, lr: '${variables.lr}'}\n"
    )
    lr = check("run.yaml").configs[0].lr
    assert (lr.value, lr.at.line) == (0.5, 2)


def test_settings_inside_a_script_are_judged(files):
    files(
        train__py="import torch\nfrom transformers import TrainingArguments\n\nLR = 5e-2\n"
        "args = TrainingArguments(\n    output_dir='out',\n    fp16=True,\n    learning_rate=LR,\n)\n"
    )
    result = check("train.py")
    finding = next(finding for finding in result.findings if finding.code == "CFG306")
    assert (finding.location.line, result.configs[0].compute_dtype.value) == (8, "fp16")
    assert [dialect for _, dialect in result.recognised] == ["hf_trainer", "script"]


@pytest.mark.parametrize("name", ["healthy-bf16", "fixed-loss-scale"])
def test_a_checkpoint_folder_is_judged_by_its_metadata(name):
    report = api.run_check([str(CHECKPOINTS / name)])
    assert {item.role for item in report.inputs} == {"hf_model_config", "hf_trainer", "checkpoint_facts"}
    assert report.config["compute_dtype"]["value"] in ("bf16", "fp16")
    assert not report.crashes


def test_gpus_by_name_decide_hardware_rules(files):
    files(train__yaml=TRAIN)
    severities = [[f.severity.value for f in api.run_check(["train.yaml"], gpus=[gpu]).findings if f.code == "CFG101"] for gpu in ("v100", "a100")]
    assert severities == [["warning"], []]


def test_multi_document_yaml_is_two_runs(files):
    files(two__yaml=TRAIN + "---\n" + TRAIN.replace("2.0e-5", "0.5"))
    assert [config.lr.value for config in check("two.yaml").configs] == [2e-5, 0.5]


def test_a_python_file_that_trains_nothing_is_not_clean(files):
    files(tool__py="import json\nprint(json.dumps({'learning_rate': 1}))\n")
    report = api.run_check(["tool.py"])
    assert report.outcome is Outcome.COULD_NOT_JUDGE
    assert "neither torch" in report.skipped[0].why


def test_a_dialect_that_crashes_is_a_bug_and_not_a_clean_file(files, monkeypatch):
    from mpdoctor.check import dialect

    files(train__yaml=TRAIN)
    broken = dialect.dialects()["hf_trainer"]._replace(lift=lambda reader: 1 / 0)
    monkeypatch.setitem(dialect.dialects(), "hf_trainer", broken)
    result = check("train.yaml")
    assert "ZeroDivisionError" in result.crashes[0].error
    assert result.configs == []


def test_a_scripts_own_variables_make_it_no_config(files):
    names = "max_seq_length = 2048\ntorch_dtype = 'float16'\nload_in_4bit = True\nlora_rank = 16\nlora_alpha = 32\nlearning_rate = 2e-4\n"
    files(train__py=f"import torch\n{names}torch.autograd.set_detect_anomaly(True)\nargs = TrainingArguments(output_dir='x', learning_rate=0.9)\n")
    assert {finding.code for finding in check("train.py").findings} >= {"CFG021", "CFG306"}


def test_a_file_is_counted_once_however_much_is_read_from_it(files):
    files(train__py="import torch\nfrom transformers import AutoModelForCausalLM, TrainingArguments\nm = AutoModelForCausalLM.from_pretrained('x')\n"
          "args = TrainingArguments(output_dir='x', bf16=True)\n")  # fmt: skip
    assert api.run_check(["train.py"]).headline.text == "no fault found in 1 file"
