"""`mpdoctor gpu` as a process: exit codes, time limits, and no traceback whatever NVML does."""

import json
import time

import pytest

from tests.gpu.conftest import FIXTURES, HANGS, MACHINES, spec_names

CODES = {
    # errors at the gate; everything else is clean, warnings and remarks included
    "a100_sick": 1,
    "broken": 1,
    "count_fails": 1,
    "crash_init": 1,
    "eight_one_lost": 1,
    "hang_init": 1,
    "init_unknown": 1,
    "mismatch": 1,
    "one_lost": 1,
    "remap_pending": 1,
    "reset_required": 1,
    "sram_threshold": 1,
    "v100_retired": 0,
    "worn_k80": 1,
}


@pytest.mark.parametrize("spec", spec_names())
def test_no_machine_makes_it_fail_or_hang(spec, command):
    limit = 3.0 if spec in HANGS else 30.0
    began = time.monotonic()
    run = command(spec, "--timeout", str(limit), "--output-format", "json")
    assert run.returncode == CODES.get(spec, 0), run.stderr
    assert "Traceback" not in run.stderr + run.stdout
    assert time.monotonic() - began < limit + 15, "starting Python is part of it, on a busy machine too"
    report = json.loads(run.stdout)
    assert report["crashes"] == []
    assert report["gpus"], "a machine without a readable GPU still has a CPU"


@pytest.mark.parametrize("machine", ["hostile", "mi250_sick", "mac_m1"])
def test_recorded_machines_never_make_it_fail(machine, command):
    run = command(None, "--sysroot", str(MACHINES / machine))
    assert run.returncode in (0, 1), run.stderr
    assert "Traceback" not in run.stderr + run.stdout


def test_without_the_library_it_reports_the_cpu(command):
    run = command(None, LD_LIBRARY_PATH="/nonexistent")
    assert run.returncode == 0
    assert "CPU" in run.stdout


def test_it_loads_no_torch_numpy_or_pandas(command):
    run = command("a100_ok", PYTHONVERBOSE="", PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
    assert "mpdoctor.gpu.examine" in imported
    assert not imported & {"torch", "numpy", "pandas", "transformers", "pynvml"}, "pynvml belongs to the child"


@pytest.mark.parametrize(
    ("spec", "requirement", "code"),
    [
        ("a100_ok", "bf16", 0),
        ("a100_ok", "bf16:tensor-cores,tf32", 0),
        ("a100_ok", "fp8", 1),
        ("v100_retired", "bf16", 1),
        ("v100_retired", "bf16:emulated", 0),
        ("gtx1660", "fp16", 1),
        ("two_5090", "fp4", 0),
        ("mixed_fleet", "fp16", 1),
        ("everything_fails", "bf16:emulated", 1),
    ],
)
def test_a_requirement_is_a_gate(spec, requirement, code, command):
    run = command(spec, "--require", requirement)
    assert run.returncode == code
    assert ("GPU202" in run.stdout) == bool(code)


def test_the_fp8_question_is_answered_for_a_card_that_is_not_here(command):
    assert command(None, "--gpu", "h100", "--require", "fp8").returncode == 0
    refused = command(None, "--gpu", "a100,h100", "--require", "fp8")
    assert refused.returncode == 1
    assert "fp8 is required (native), and A100 has it not at all" in " ".join(refused.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu", "rtx 9090"], "no GPU is called 'rtx 9090'"),
        (["--gpu", "rtx 9090"], "did you mean RTX 5090"),
        (["--gpu", "rtx 6000"], "can be several GPUs"),
        (["--gpu", " , "], "--gpu is empty"),
        (["--require", "int8"], "unknown format 'int8'"),
        (["--require", "bf16:fast"], "unknown level 'fast'"),
        (["--sysroot", "/no/such/folder"], "no such folder"),
        (["--kernel-log", "/no/such/file"], "no such file"),
        (["--watch", "x"], "watch"),
        (["--gpu", "v100", "--sysroot", "/"], "need not be here"),
        (["--timeout", "0"], "timeout"),
    ],
)
def test_wrong_usage_is_told_in_a_line_and_exits_2(arguments, words, command):
    run = command("a100_ok", *arguments)
    assert run.returncode == 2
    assert words in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_the_environment_decides_what_is_recommended(command):
    everything = json.loads(command("mixed_fleet", "--output-format", "json").stdout)
    one = command("mixed_fleet", "--output-format", "json", CUDA_VISIBLE_DEVICES="GPU-40904090")
    assert everything["recommendation"]["precision"] == "fp32"
    assert json.loads(one.stdout)["recommendation"]["precision"] == "bf16"
    assert json.loads(one.stdout)["measurements"]["visible"] == [
        {"ordinal": 0, "index": 0, "name": "NVIDIA GeForce RTX 4090", "uuid": "GPU-40904090-0000-0000-0000-000000000001"}
    ]


def test_xids_of_the_named_log_reach_the_gpu_they_belong_to(command):
    run = command("a100_sick", "--kernel-log", str(FIXTURES / "kernel_log" / "xids.log"), "--output-format", "json")
    xids = next(gpu["metrics"]["xids"]["value"] for gpu in json.loads(run.stdout)["gpus"])
    assert [(event["xid"], event["count"]) for event in xids] == [(63, 1), (94, 2)]


def test_a_gpu_of_this_machine_is_judged_with_its_health(command):
    run = command("a100_sick", "--gpu", "01:00.0", "--output-format", "json")
    report = json.loads(run.stdout)
    assert run.returncode == 1
    assert "GPU301" in {finding["code"] for finding in report["findings"]}
    assert report["environment"]["nvidia_driver"] == "580.82.07"
