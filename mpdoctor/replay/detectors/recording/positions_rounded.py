"""Positions kept in 16 bits fall on each other.

What it looks for
A buffer that counts up and holds fewer different values than positions.

Why training breaks
bf16 holds whole numbers up to 256 exactly, fp16 up to 2048; above, neighbours get the same value, and the model cannot tell them apart.

When it is fine
Buffers that hold no counts.

How to confirm
Keep the buffer in fp32 (register it as integers, or restore it after the cast).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import rounded_positions


def check(recording: Recording) -> Iterator[Hit]:
    """Each such buffer."""
    for name, dtype, distinct, total in rounded_positions(recording):
        yield Hit(message=f"buffer {name} counts up in {dtype}: {total} positions share {distinct} different values")


RULE = Rule(code="RUN406", severity=Severity.ERROR, cause="low-precision-state", check=check)
