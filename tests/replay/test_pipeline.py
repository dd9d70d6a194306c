"""`mpdoctor replay` of recipes and of recorded traces: outcomes, exit codes, limits, tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import mpdoctor
from mpdoctor.core.gate import Outcome
from mpdoctor.replay.trace_file import read_trace

pytestmark = pytest.mark.torch

HEALTHY = """
def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)
def batches():
    torch.manual_seed(1)
    return [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(6)]
def loss(model, batch):
    return (model(batch[0]) - batch[1]).square().mean()
"""
NAN_ROW = HEALTHY.replace(
    "    return [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(6)]",
    "    found = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(6)]\n    found[2][0][5, 1] = float('nan')\n    return found",
)
SCALED = (
    HEALTHY.replace("    return (model", "    with torch.autocast('cuda', dtype=torch.float16):\n        return (model")
    + "CONFIG = dict(scaler=True)\n"
)
OWN_STEP = """
def step(model, optimizer, batch, scaler):
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    optimizer.step()
"""

Recipe = Callable[..., Path]


def test_a_healthy_run_exits_with_0(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(HEALTHY))
    assert (ran.exit_code, ran.report["outcome"], ran.report["symptoms"]) == (0, "healthy", [])
    assert "6 steps replayed" in ran.report["headline"]["text"]
    assert ran.report["environment"]["device"] == "cpu"
    assert ran.report["environment"]["bitwise_reproducible"] is True


def test_a_failing_run_is_diagnosed_and_names_the_row(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(NAN_ROW))
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert (ran.report["headline"]["cause"], ran.report["headline"]["standing"]) == ("dirty-data", "confirmed")
    assert ran.report["measurements"]["failing_rows"] == [5]
    first = ran.report["first_nonfinite"]
    assert (first["step"], first["phase"], first["tensor"]) == (2, "input", "batch[0][5, 1]")


def test_experiments_can_be_left_out(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(NAN_ROW), "--experiments", "none")
    assert ran.report["experiments"] == []
    assert ran.report["headline"]["cause"] == "dirty-data"
    assert ran.report["headline"]["standing"] == "likely"


def test_steps_limits_the_run(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(NAN_ROW), "--steps", 2)
    assert (ran.exit_code, len(ran.report["steps"])) == (0, 2)


def test_a_step_that_raises_is_a_symptom_with_its_place(replay: Any, recipe: Recipe) -> None:
    path = recipe(HEALTHY.replace("return (model(batch[0])", "return (model(batch[0][:, :3])"))
    ran = replay("--recipe", path)
    assert ran.exit_code == 1
    (symptom,) = ran.report["symptoms"]
    assert symptom["id"] == "exception"
    assert symptom["detail"].startswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    site = symptom["site"]
    assert (site["step"], site["phase"], site["module"], site["op"]) == (0, "forward", "", "aten.addmm")
    assert site["location"] == f"{path}:{path.read_text().splitlines().index(next(x for x in path.read_text().splitlines() if ':3]' in x)) + 1}"
    assert ran.report["first_nonfinite"] is None
    assert ran.report["crashes"] == []


def test_a_run_that_differs_when_repeated_is_told(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(HEALTHY.replace("    torch.manual_seed(1)", "    torch.manual_seed(time.time_ns() % 2**31)")))
    assert ran.report["environment"]["bitwise_reproducible"] is False


def test_a_failure_that_does_not_come_back_is_not_confirmed(replay: Any, recipe: Recipe) -> None:
    once = """
    import pathlib
    marker = pathlib.Path(__file__).with_suffix('.ran')
    if marker.exists():
        return found
    marker.touch()
"""
    once = NAN_ROW.replace("    found[2]", once.lstrip("\n") + "    found[2]")
    ran = replay("--recipe", recipe(once))
    assert "not-reproducible" in [s["id"] for s in ran.report["symptoms"]]
    assert all(entry["standing"] != "confirmed" for entry in ran.report["checklist"])


# -- limits


def test_a_step_that_never_ends_is_stopped_by_the_budget(replay: Any, recipe: Recipe) -> None:
    started = time.monotonic()
    ran = replay("--recipe", recipe(HEALTHY + OWN_STEP.replace("    value.backward()", "    time.sleep(1e6)")), "--budget", 2)
    assert time.monotonic() - started < 10
    assert (ran.exit_code, ran.report["outcome"]) == (3, "could-not-judge")
    assert ("the steps", "the time of --budget was over") in ran.skipped


def test_steps_before_one_that_hangs_are_reported(replay: Any, recipe: Recipe) -> None:
    hangs = "    if batch[0] is taken[3][0]:\n        time.sleep(1e6)\n"
    text = HEALTHY + "taken = []\n_batches = batches\ndef batches():\n    taken.extend(_batches())\n    return taken\n" + OWN_STEP + hangs
    ran = replay("--recipe", recipe(text), "--budget", 3)
    assert len(ran.report["steps"]) == 3
    assert ("the steps after 2", "the time of --budget was over") in ran.skipped


def test_a_build_that_never_ends_is_stopped_by_the_budget(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(HEALTHY.replace("    torch.manual_seed(0)", "    time.sleep(1e6)")), "--budget", 1)
    ran.refused("recipe.py", "longer than the budget of 1 s", "--budget")


def interrupt_when(condition: Callable[[], bool]) -> threading.Thread:
    """Sends Ctrl-C to this process as soon as the condition holds."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_ctrl_c_in_the_experiments_reports_what_is_known(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    marker = tmp_path / "experiments"
    # The third run of the recipe is the first experiment's: the run itself and its repeat come first.
    count = "import pathlib\nruns = pathlib.Path(__file__).with_name('runs')\nwith runs.open('a') as f: f.write('.')\n"
    slow = f"    if runs.stat().st_size > 2:\n        pathlib.Path({str(marker)!r}).touch()\n        time.sleep(60)\n"
    text = count + NAN_ROW + OWN_STEP.replace("    optimizer.zero_grad()", slow + "    optimizer.zero_grad()")
    thread = interrupt_when(marker.exists)
    ran = replay("--recipe", recipe(text))
    thread.join()
    assert (ran.exit_code, ran.report["outcome"]) == (1, "diagnosed")
    assert ran.report["headline"]["cause"] == "dirty-data"
    assert any("Ctrl-C" in note for note in ran.report["notes"])
    assert "interrupted by Ctrl-C" in [why for _, why in ran.skipped]


def test_ctrl_c_in_the_run_reports_the_steps_so_far(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    marker = tmp_path / "hangs"
    slow = f"""
    if batch[0] is taken[3][0]:
        import pathlib
        pathlib.Path({str(marker)!r}).touch()
        time.sleep(60)
"""
    text = HEALTHY + "taken = []\n_batches = batches\ndef batches():\n    taken.extend(_batches())\n    return taken\n" + OWN_STEP.rstrip() + slow
    thread = interrupt_when(marker.exists)
    ran = replay("--recipe", recipe(text))
    thread.join()
    assert (ran.exit_code, ran.report["outcome"]) == (3, "could-not-judge")
    assert ran.report["headline"]["text"] == "interrupted after 3 steps, in which nothing failed"
    assert len(ran.report["steps"]) == 3


# -- devices


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_cannot_be_asked_for(replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe(HEALTHY), "--device", "cuda").refused("--device cuda", "no GPU", "--device cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_without_a_gpu_cuda_autocast_is_emulated_and_said(device: str, replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(SCALED), "--device", device)
    assert ran.report["environment"]["device"] == "cpu"
    assert any("CUDA's op lists" in text for text in ran.report["environment"]["emulated"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_with_a_gpu_nothing_is_emulated(replay: Any, recipe: Recipe) -> None:
    on_gpu = SCALED.replace("model = nn.Linear(4, 1)", "model = nn.Linear(4, 1).cuda()").replace("(8, 4)", "(8, 4, device='cuda')")
    ran = replay("--recipe", recipe(on_gpu.replace("(8, 1)", "(8, 1, device='cuda')")), "--device", "cuda")
    assert (ran.exit_code, ran.report["environment"]["device"]) == (0, "cuda:0")
    assert not any("CUDA" in text for text in ran.report["environment"]["emulated"])


# -- recorded traces


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_recorded_trace_gives_the_same_diagnosis(ending: str, replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    trace = tmp_path / f"trace{ending}"
    live = replay("--recipe", recipe(NAN_ROW), "--trace", trace).report
    ran = replay("--trace", trace)
    recorded = ran.report
    assert ran.exit_code == 1
    for key in ("outcome", "headline", "first_nonfinite", "checklist", "symptoms", "timeline", "experiments", "steps", "measurements", "findings"):
        assert recorded[key] == live[key], key
    assert recorded["environment"]["torch"] == live["environment"]["torch"]
    assert recorded["inputs"] == [{"path": str(trace), "role": "trace"}]
    assert any(s["what"] == "checkpoint and log" for s in recorded["skipped"])


def test_a_trace_without_experiments_says_so(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    replay("--recipe", recipe(NAN_ROW), "--trace", trace, "--experiments", "none")
    report = replay("--trace", trace).report
    assert (report["headline"]["cause"], report["headline"]["standing"]) == ("dirty-data", "likely")
    assert any(s["what"] == "experiments" and "cannot be run again" in s["why"] for s in report["skipped"])


def test_a_healthy_trace_exits_with_0(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    replay("--recipe", recipe(SCALED), "--trace", trace)
    assert replay("--trace", trace).exit_code == 0


def test_a_trace_is_strict_json_and_comes_back_equal(recipe: Recipe, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    report = mpdoctor.run_replay(recipe=recipe(NAN_ROW), trace=trace)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    lines = [json.loads(line, parse_constant=refuse) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines][:7] == ["run", *["step"] * 6]
    recorded = read_trace(trace)
    # NaN is unequal to itself, so the texts are compared.
    assert repr(recorded.recording) == repr(report.recording)
    assert recorded.experiments == report.experiments


def test_a_trace_is_judged_without_torch(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    replay("--recipe", recipe(NAN_ROW), "--trace", trace)
    code = (
        "import sys\n"
        "from mpdoctor.cli.app import run\n"
        f"code = run(['replay', '--trace', {str(trace)!r}, '--output', {str(tmp_path / 'out.txt')!r}])\n"
        "heavy = {'torch', 'numpy', 'pandas', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "dirty-data" in (tmp_path / "out.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("path", "words"), [("missing/trace.jsonl", "no folder"), (".", "is a folder")], ids=["no such folder", "a folder"])
def test_a_trace_that_cannot_be_written_is_told_before_the_run(path: str, words: str, replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    replay("--recipe", recipe(HEALTHY + "raise SystemError('was run')\n"), "--trace", tmp_path / path).refused("cannot write the trace", words)


# -- tables


def test_a_report_is_also_tables(recipe: Recipe) -> None:
    report = mpdoctor.run_replay(recipe=recipe(NAN_ROW))
    assert report.outcome is Outcome.DIAGNOSED
    steps = report.to_frame("steps")
    assert steps["step"].tolist() == [0, 1, 2, 3, 4, 5]
    assert steps["loss"].isna().tolist() == [False, False, True, True, True, True]
    assert str(steps["skipped"].dtype) == "boolean"
    events = report.to_frame("events")
    assert events.loc[events["marker"] == "origin", "phase"].tolist() == ["input"]
    tensors = report.to_frame("tensors")
    assert tensors["name"].tolist() == ["weight", "bias"]
    assert "backward" in report.to_frame("modules")["phase"].tolist()
    experiments = report.to_frame("experiments")
    assert experiments.set_index("slug").loc["failing-rows-out", "outcome"] == "failure-gone"
    with pytest.raises(ValueError, match="there are steps, events, tensors, modules, experiments"):
        report.to_frame("everything")


def test_tables_of_a_healthy_run_have_their_columns(recipe: Recipe) -> None:
    report = mpdoctor.run_replay(recipe=recipe(HEALTHY))
    assert report.to_frame("events").empty
    assert "outcome" in report.to_frame("experiments").columns
    assert len(report.to_frame("tensors")) == 2
