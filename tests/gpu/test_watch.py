"""`--watch`: readings on stderr, the last report on stdout."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from mpdoctor.cli import watch
from mpdoctor.cli.options import ReportOptions
from mpdoctor.core.device import Reading
from mpdoctor.gpu.examine import examine
from tests.gpu.conftest import QUIET_LOG, SPECS


def test_each_reading_is_shown_and_the_last_is_the_report(command):
    run = command("b200", "--watch", "0.2", "--count", "3")
    assert run.returncode == 0
    assert run.stderr.count("NVIDIA B200") == 3
    assert run.stdout.count("What to set") == 1


def test_a_gate_still_decides_the_code(command):
    assert command("v100_retired", "--watch", "0.2", "--count", "1", "--require", "bf16").returncode == 1


def test_ctrl_c_is_the_usual_way_out(fake_nvml):
    env = os.environ | {"LD_LIBRARY_PATH": str(fake_nvml), "FAKE_NVML_SPEC": str(SPECS / "b200.spec")}
    arguments = [sys.executable, "-m", "mpdoctor", "gpu", "--watch", "0.2", "--kernel-log", str(QUIET_LOG)]
    run = subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    for line in run.stderr:
        if "B200" in line:
            break
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 0, err
    assert "Traceback" not in err
    assert "NVIDIA B200" in out


@pytest.fixture
def lines(read, monkeypatch):
    """What `--watch` shows when a metric takes these values one after the other."""

    def lines(**values) -> str:
        machine = read("b200")
        (gpu,) = machine.gpus
        reports = []
        for step in range(max(map(len, values.values()))):
            metrics = gpu.metrics | {name: Reading(series[min(step, len(series) - 1)]) for name, series in values.items()}
            reports.append(examine(replace(machine, gpus=(replace(gpu, metrics=metrics),))))
        told = io.StringIO()
        monkeypatch.setattr(sys, "stderr", told)
        remaining = iter(reports)
        last = watch.watched(lambda: next(remaining), every=0, count=len(reports), options=ReportOptions())
        assert last is reports[-1]
        return re.sub(r"\s+", " ", told.getvalue())

    return lines


def test_rising_counters_are_told(lines):
    told = lines(ecc_uncorrected_volatile=[0, 0, 2], ecc_corrected_volatile=[5, 6, 9])
    assert "uncorrected memory errors: 2 (+2 while watching)" in told
    assert "corrected memory errors: 6 (+1 while watching)" in told
    assert "corrected memory errors: 9 (+4 while watching)" in told


def test_steady_counters_are_told_as_steady(lines):
    assert "counters unchanged" in lines(ecc_corrected_volatile=[5, 5])


def test_a_new_xid_is_told(lines):
    old = {"xid": 63, "count": 1, "last": "old line"}
    told = lines(xids=[[old], [old, {"xid": 79, "count": 1, "last": "fallen"}]])
    assert "Xid 79 in the kernel log: fallen" in told and "old line" not in told


def test_a_gpu_that_gets_lost_is_told(lines):
    assert "NVIDIA B200 lost" in lines(state=["ok", "lost"])
