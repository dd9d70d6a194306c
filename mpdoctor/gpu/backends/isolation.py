"""Questions put to a vendor's library in a child process with a time limit.

A sick GPU makes such libraries hang or crash. The child announces each question before it asks it, so the guilty one is known: it is left
out, the child is started again, and everything else is still answered.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SYSTEM = -1
"""The device number of questions to the whole system."""

MOST_INCIDENTS_PER_DEVICE = 2
"""After so many crashes or hangs the rest of a device is left alone."""

STARTING = (SYSTEM, "start")
ESSENTIAL = (STARTING, (SYSTEM, "library"), (SYSTEM, "bindings"), (SYSTEM, "init"), (SYSTEM, "count"))
"""Questions without which nothing else can be asked."""


class Answers:
    """What a child has told so far.

    Attributes:
        got: metrics of the answered questions, by device.
        reasons: why a question has no answer (an error code of the library, or text), by device and question.
        incidents: crashes and hangs, as `(device, question, what happened)`.
        complete: whether the child came to its end.
    """

    def __init__(self) -> None:
        self.got: dict[int, dict[str, Any]] = {}
        self.reasons: dict[tuple[int, str], int | str] = {}
        self.incidents: list[tuple[int, str, str]] = []
        self.complete = False


class Forked:
    """A copy of this process that answers and ends: half the cost of a new Python. Has what is used of `subprocess.Popen`."""

    def __init__(self, answer: Callable[[int], None]) -> None:
        """Fork; the copy runs `answer` with the file descriptor to write to."""
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nowhere, standard)
            try:
                answer(writing)
            finally:
                os._exit(1)  # an answer that comes to its end exits by itself
        os.close(writing)
        self.stdout = os.fdopen(reading, "rb", buffering=0)

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the negative number of the signal that ended it. Raises TimeoutExpired."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, 0 if end is None else os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired("", timeout or 0)
            time.sleep(0.001)


def may_fork() -> bool:
    """Whether a copy of this process is safe: one thread, and no torch (its CUDA and OpenMP state does not survive a fork)."""
    threading = sys.modules.get("threading")
    return (threading is None or threading.active_count() == 1) and "torch" not in sys.modules


class Interview:
    """One interview, possibly over several child processes. The first starts at once and works while the caller does something else."""

    def __init__(
        self, command: Callable[[str], list[str]], *, limit: float, patience: float, answer: Callable[[int, str], None] | None = None
    ) -> None:
        """Start.

        Args:
            command: the child's command line for a list of questions to leave out (`DEVICE:QUESTION`, comma-separated).
            limit: seconds for everything.
            patience: seconds for one question.
            answer: what the child does, for a copy of this process instead of a new Python: it gets a file descriptor and the questions to leave out.
        """
        self.command = command
        self.answer = answer
        self.deadline = time.monotonic() + limit
        self.patience = patience
        self.answers = Answers()
        self.left_out: list[str] = []
        self.child = self._start([])

    def _start(self, done: list[str]) -> subprocess.Popen[bytes] | Forked:
        left_out = ",".join([*self.left_out, *done])
        answer = self.answer
        if answer is not None and may_fork():
            return Forked(lambda fd: answer(fd, left_out))
        command = self.command(left_out)
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)

    def result(self) -> Answers:
        """Wait for the answers, within the limit."""
        while True:
            guilty, timeout = self._listen()
            code = self._end(kill=bool(timeout))
            if guilty is None:
                return self.answers
            device, question = guilty
            what = timeout or _death(code)
            self.answers.incidents.append((device, question, what))
            self.answers.reasons[guilty] = f"the driver's library {what}"
            if guilty in ESSENTIAL or time.monotonic() >= self.deadline:
                return self.answers
            times = sum(1 for incident in self.answers.incidents if incident[0] == device)
            self.left_out.append(f"{device}:{'*' if times >= MOST_INCIDENTS_PER_DEVICE and device != SYSTEM else question}")
            self.child = self._start([f"{done}:*" for done in range(device)])

    def _listen(self) -> tuple[tuple[int, str] | None, str]:
        """Read one child to its end. Gives the question that it was at (None: it came to its end), and what happened unless it died."""
        asked = STARTING
        try:
            for kind, *rest in self._records():
                match kind:
                    case "try":
                        asked = rest[0], rest[1]
                    case "got":
                        device, question, answer = rest
                        self.answers.got.setdefault(device, {}).update(answer)
                        self.answers.reasons.pop((device, question), None)
                    case "not":
                        device, question, reason = rest
                        self.answers.reasons[device, question] = reason
                    case "end":
                        self.answers.complete = True
                        return None, ""
        except TimeoutError as error:
            return asked, str(error)
        return asked, ""

    def _records(self) -> Iterator[tuple[Any, ...]]:
        assert self.child.stdout is not None
        fd = self.child.stdout.fileno()
        poller = select.poll()
        poller.register(fd, select.POLLIN | select.POLLHUP)
        data = b""
        while True:
            seconds = max(0.0, min(self.patience, self.deadline - time.monotonic()))
            if not poller.poll(seconds * 1000):
                raise TimeoutError(f"did not answer within {seconds:.2g} s")
            chunk = os.read(fd, 65536)
            if not chunk:
                return
            data += chunk
            while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:4], "little")):
                yield marshal.loads(data[4 : 4 + size])
                data = data[4 + size :]

    def _end(self, *, kill: bool) -> int:
        """End the child and give its exit code. One that came to its end has half a second to leave by itself."""
        if kill:
            self.child.kill()
        try:
            code = self.child.wait(0.5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            code = self.child.wait()
        if self.child.stdout:
            self.child.stdout.close()
        return code


def _death(code: int) -> str:
    if code >= 0:
        return f"ended the process early (exit code {code})"
    return f"crashed ({signal.Signals(-code).name})" if -code in signal.valid_signals() else f"crashed (signal {-code})"
