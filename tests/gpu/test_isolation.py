"""Questions in a child process: crashes and hangs cost one answer, not the report."""

import os
import signal
import sys
import time

import pytest

from mpdoctor.gpu.backends import isolation
from mpdoctor.gpu.backends.isolation import Interview
from mpdoctor.gpu.backends.nvml_child import Wire

QUESTIONS = ("a", "b", "c")


def answering(behaviour):
    """A child that asks three questions to two devices; `behaviour[(device, question)]` says what goes wrong there."""

    def answer(fd: int, left_out: str) -> None:
        wire = Wire(fd, set(left_out.split(",")))
        for device in (0, 1):
            for question in QUESTIONS:
                wire.ask(device, question, lambda d=device, q=question: behaviour.get((d, q), lambda: {q: d})())
        wire.record("end")
        wire.flush()
        os._exit(0)

    return answer


def interview(behaviour, monkeypatch, *, limit=20.0, patience=10.0):
    monkeypatch.setattr(isolation, "may_fork", lambda: True)
    return Interview(
        lambda left_out: [sys.executable, "-c", "raise SystemExit(7)"], limit=limit, patience=patience, answer=answering(behaviour)
    ).result()


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def fail():
    raise RuntimeError("no such sensor")


def test_everything_is_answered(monkeypatch):
    answers = interview({}, monkeypatch)
    assert answers.complete
    assert answers.got == {0: {"a": 0, "b": 0, "c": 0}, 1: {"a": 1, "b": 1, "c": 1}}
    assert answers.incidents == []


def test_an_error_is_an_answer_too(monkeypatch):
    answers = interview({(0, "b"): fail}, monkeypatch)
    assert answers.reasons == {(0, "b"): "RuntimeError: no such sensor"}
    assert answers.got[0] == {"a": 0, "c": 0}


def test_a_crash_costs_one_question(monkeypatch):
    answers = interview({(0, "b"): crash}, monkeypatch)
    assert answers.incidents == [(0, "b", "crashed (SIGSEGV)")]
    assert answers.got == {0: {"a": 0, "c": 0}, 1: {"a": 1, "b": 1, "c": 1}}
    assert answers.reasons == {(0, "b"): "the driver's library crashed (SIGSEGV)"}


def test_a_hang_costs_one_question_and_its_patience(monkeypatch):
    answers = interview({(1, "a"): lambda: time.sleep(600)}, monkeypatch, patience=0.5)
    assert answers.incidents == [(1, "a", "did not answer within 0.5 s")]
    assert answers.got == {0: {"a": 0, "b": 0, "c": 0}, 1: {"b": 1, "c": 1}}


def test_a_device_that_keeps_crashing_is_left_alone(monkeypatch):
    answers = interview({(0, "a"): crash, (0, "b"): crash, (0, "c"): crash}, monkeypatch)
    assert [incident[:2] for incident in answers.incidents] == [(0, "a"), (0, "b")]
    assert answers.got == {1: {"a": 1, "b": 1, "c": 1}}


def test_the_limit_holds_whatever_hangs(monkeypatch):
    behaviour = {(device, question): lambda: time.sleep(600) for device in (0, 1) for question in QUESTIONS}
    began = time.monotonic()
    answers = interview(behaviour, monkeypatch, limit=1.0, patience=0.4)
    assert time.monotonic() - began < 5
    assert not answers.complete
    assert answers.got == {}


def test_a_child_that_cannot_start_is_an_incident():
    answers = Interview(lambda left_out: [sys.executable, "-c", "raise SystemExit(7)"], limit=20, patience=10).result()
    assert answers.incidents == [(isolation.SYSTEM, "start", "ended the process early (exit code 7)")]


def test_a_process_with_threads_or_torch_is_not_copied(monkeypatch):
    import threading

    assert isolation.may_fork() == (threading.active_count() == 1 and "torch" not in sys.modules)
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert not isolation.may_fork()
    monkeypatch.delitem(sys.modules, "torch")
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not isolation.may_fork()
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("size", [10, 100_000, 3_000_000])
def test_answers_of_any_size_arrive_whole(size, monkeypatch):
    answers = interview({(0, "a"): lambda: {"a": "x" * size}}, monkeypatch)
    assert len(answers.got[0]["a"]) == size
