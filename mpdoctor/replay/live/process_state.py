"""State of the process that a run must find the same each time, and leave as it was: random numbers, autocast, the clock."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from mpdoctor.core.errors import MpdoctorError
from mpdoctor.core.gate import ExitCode

SEED = 0
"""Seed of torch, NumPy and random before a session is built; a recipe that seeds itself overrides it."""


class BudgetSpent(BaseException):
    """The time that a run may take is over. No `Exception`: a user's own `except Exception` must not swallow it."""


class OutOfMemory(MpdoctorError):
    """The replay itself needs more memory than there is; that says nothing about the run."""

    exit_code = ExitCode.NOT_JUDGED

    def __init__(self, error: BaseException) -> None:
        reason = " ".join(str(error).split()[:24]) or type(error).__name__
        super().__init__(
            f"out of memory while replaying: {reason}",
            "lower the batch size or the length of the sequences, replay fewer --steps, or use --device cpu, where there is more memory",
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on whichever device."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "DefaultCPUAllocator" in str(error)


def seed(value: int) -> None:
    """Seed torch, NumPy (where installed) and random."""
    torch.manual_seed(value)
    random.seed(value)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(value)


@contextmanager
def rng_restored() -> Iterator[None]:
    """Give the process its own random state back afterwards."""
    torch_state, python_state, numpy_state = torch.get_rng_state(), random.getstate(), None
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    with suppress(ImportError):
        import numpy

        numpy_state = numpy.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if cuda_states:
            torch.cuda.set_rng_state_all(cuda_states)
        if numpy_state is not None:
            numpy.random.set_state(numpy_state)


def close_autocast() -> None:
    """Close autocast regions that a loop left open: the next run must not inherit them, nor their weight cache."""
    torch.set_autocast_enabled("cpu", False)
    if torch.cuda.is_available():
        torch.set_autocast_enabled("cuda", False)
    for _ in range(torch.autocast_increment_nesting()):
        torch.autocast_decrement_nesting()
    torch.clear_autocast_cache()
    torch.set_autocast_cache_enabled(True)


@contextmanager
def eager() -> Iterator[None]:
    """Run `torch.compile`d code eagerly: the tracer sees eager ops, and both must be the same run."""
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def alarm(deadline: float | None) -> Iterator[None]:
    """Raise BudgetSpent at the deadline, inside hanging Python code too (main thread of a POSIX system)."""
    if deadline is None:
        yield
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise BudgetSpent
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(_signal: int, _frame: Any) -> None:
        raise BudgetSpent

    previous = signal.signal(signal.SIGALRM, ring)
    # It rings again each second: a bare `except:` in the user's code may swallow the first.
    signal.setitimer(signal.ITIMER_REAL, left, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
