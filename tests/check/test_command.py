"""`mpdoctor check` as a user runs it: options, exit codes, what goes where."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from mpdoctor.cli.app import run

TRAIN = "model_name_or_path: meta-llama/Llama-3.1-8B\nuse_peft: true\noutput_dir: out\nbf16: true\nlearning_rate: 2.0e-4\n"


@pytest.fixture
def mpdoctor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["mpdoctor", *words])
        code = run(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    call.folder = tmp_path
    (tmp_path / "train.yaml").write_text(TRAIN)
    return call


def test_exit_codes(mpdoctor):
    (mpdoctor.folder / "bad.yaml").write_text(TRAIN + "fp16: true\n")
    (mpdoctor.folder / "notes.yaml").write_text("title: x\n")
    (mpdoctor.folder / "broken.yaml").write_text("a: [\n")
    assert mpdoctor("check", "train.yaml")[0] == 0
    assert mpdoctor("check", "bad.yaml")[0] == 1
    assert mpdoctor("check", "bad.yaml", "--exit-zero")[0] == 0
    assert mpdoctor("check", "broken.yaml")[0] == 2
    assert mpdoctor("check", "missing.yaml")[0] == 2
    assert mpdoctor("check", "notes.yaml")[0] == 3
    assert mpdoctor("check", "train.yaml", "--fail-on", "info")[0] == 1


def test_the_format_changes_no_exit_code(mpdoctor):
    (mpdoctor.folder / "bad.yaml").write_text(TRAIN + "fp16: true\n")
    for name in ("json", "sarif", "junit", "github", "markdown"):
        assert mpdoctor("check", "bad.yaml", "--output-format", name)[0] == 1


def test_json_has_the_settings_with_their_places(mpdoctor):
    report = json.loads(mpdoctor("check", "train.yaml", "--output-format", "json")[1])
    assert report["config"]["lr"] == {
        "value": 2e-4, "origin": "explicit", "file": "train.yaml", "line": 5, "key": "learning_rate", "raw": "2.0e-4", "note": None,
    }  # fmt: skip
    assert [entry["cause"] for entry in report["checklist"][:4]] == ["learning-rate", "loss-scaling", "fp16-range", "dirty-data"]


def test_show_prints_what_the_files_come_to(mpdoctor):
    code, out, _ = mpdoctor("check", "train.yaml", "--show")
    assert code == 0
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:] if line.strip()}
    assert (rows["compute_dtype"], rows["lr"], rows["method"], rows["scaler"]) == ("bf16", "0.0002", "lora", "none")
    assert "train.yaml:5" in out


def test_diff_changes_nothing_and_fix_does(mpdoctor):
    path = mpdoctor.folder / "train.yaml"
    path.write_text(TRAIN.replace("2.0e-4", "2e-4"))
    code, out, _ = mpdoctor("check", "train.yaml", "--diff")
    assert (code, "+learning_rate: 2.0e-4" in out, "2e-4" in path.read_text()) == (0, True, True)
    code, out, err = mpdoctor("check", "train.yaml", "--fix")
    assert "repaired train.yaml (CFG901)" in err
    assert path.read_text() == TRAIN
    assert "nothing here can be repaired" in mpdoctor("check", "train.yaml", "--fix")[2]


def test_a_launch_line_after_two_dashes(mpdoctor):
    code, out, _ = mpdoctor("check", "--fail-on", "warning", "--", "torchrun", "train.py", "--fp16", "--learning_rate", "3e-2", "--output_dir", "x")
    assert code == 1
    assert "CFG306" in out


def test_with_judges_another_file_with_the_first(mpdoctor):
    (mpdoctor.folder / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 3, "bf16": {"enabled": true}}')
    assert "CFG803" in mpdoctor("check", "train.yaml", "--with", "ds.json")[1]


def test_a_baseline_is_written_and_compared(mpdoctor):
    (mpdoctor.folder / "train.yaml").write_text(TRAIN + "fp16: true\n")
    assert "wrote base.json" in mpdoctor("check", "train.yaml", "--baseline", "base.json", "--update-baseline")[2]
    assert mpdoctor("check", "train.yaml", "--baseline", "base.json")[0] == 0
    assert mpdoctor("check", "train.yaml", "--update-baseline")[0] == 2


def test_settings_choose_the_gate(mpdoctor):
    (mpdoctor.folder / "mpdoctor.toml").write_text("fail-on = 'info'\n")
    assert mpdoctor("check", "train.yaml")[0] == 1
    assert mpdoctor("check", "train.yaml", "--fail-on", "error")[0] == 0


def test_stdin(mpdoctor):
    done = subprocess.run([sys.executable, "-m", "mpdoctor", "check", "-"], input=TRAIN.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_heavy_modules_stay_out(mpdoctor):
    program = (
        "import sys, mpdoctor.cli.app as app\n"
        "code = app.run(['check', 'train.yaml', '--gpu', 'v100', '--output-format', 'json=out.json', '--output-format', 'text=out.txt'])\n"
        "heavy = [m for m in ('torch', 'pandas', 'numpy', 'transformers', 'pynvml', 'jinja2', 'pydantic') if m in sys.modules]\n"
        "sys.exit(f'{code} {heavy}')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "0 []"
