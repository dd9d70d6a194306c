"""The pickle machine: runs opcodes of protocols 0 to 5 into inert records, within a budget.

Nothing named in the file is imported and nothing is called. The budget bounds time and memory
whatever the file claims: sizes are checked against the bytes that are there before anything is made
of them, the memo is a dictionary (an index of 2^32 costs one entry), and only keys that hash in
constant time become dictionary keys.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from mpdoctor.replay.checkpoints.names import printable
from mpdoctor.replay.checkpoints.pickles.constructors import reduce_call
from mpdoctor.replay.checkpoints.pickles.faults import PickleFault
from mpdoctor.replay.checkpoints.pickles.opcodes import HANDLERS
from mpdoctor.replay.checkpoints.pickles.records import Global, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What reading one pickle may cost.

    Attributes:
        opcodes: opcodes run; a state dict takes about 40 for each tensor.
        objects: calls recorded; a state dict takes two for each tensor.
        globals: different classes and functions named.
        integer_bytes: bytes of one integer.
    """

    opcodes: int = 10_000_000
    objects: int = 1_500_000
    globals: int = 10_000
    integer_bytes: int = 256


@dataclass(frozen=True, slots=True)
class Pickled:
    """A pickle's value, the byte after its STOP, and everything that a real unpickler would import, in order."""

    value: Any
    end: int
    imports: tuple[Global, ...]


_STOP = 0x2E
_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Modules that protocols 0 to 2 write under their Python 2 names."""


def read_pickle(data: bytes, start: int = 0, budget: Budget | None = None) -> Pickled:
    """Read the pickle that begins at `start`. Raises PickleFault."""
    return Machine(data, start, budget or Budget()).run()


class Machine:
    """One run: a stack, a memo, and what the opcodes do with them."""

    def __init__(self, data: bytes, start: int, budget: Budget) -> None:
        self.data = data
        self.position = start
        self.budget = budget
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.globals: dict[tuple[str, str], Global] = {}
        self.made = 0
        self.calls = 0

    def run(self) -> Pickled:
        """Run to STOP. Raises PickleFault."""
        data, handlers, end, started = self.data, HANDLERS, len(self.data), self.position
        try:
            for _ in range(self.budget.opcodes):
                opcode = data[self.position]
                self.position += 1
                if opcode == _STOP:
                    break
                handlers[opcode](self)
            else:
                raise PickleFault(f"more than {self.budget.opcodes:,} opcodes", over_budget=True)
        except PickleFault:
            raise
        except KeyError:
            raise PickleFault(f"unknown opcode 0x{data[self.position - 1]:02x} at byte {self.position - 1 - started}") from None
        except (IndexError, ValueError, TypeError, AttributeError, OverflowError, struct.error, UnicodeError, RecursionError) as error:
            if self.position >= end:
                raise PickleFault("the pickle ends too early", truncated=True) from None
            raise PickleFault(f"malformed at byte {self.position - 1 - started} ({type(error).__name__})") from None
        if not self.stack:
            raise PickleFault("the pickle holds nothing")
        return Pickled(self.stack[-1], self.position, tuple(self.globals.values()))

    # reading arguments

    def take(self, count: int) -> bytes:
        """The next `count` bytes, which must be there."""
        stop = self.position + count
        if stop > len(self.data):
            raise PickleFault(f"claims {count:,} bytes at byte {self.position}, and {len(self.data) - self.position:,} are left", truncated=True)
        piece = self.data[self.position : stop]
        self.position = stop
        return piece

    def byte(self) -> int:
        """The next byte."""
        value = self.data[self.position]
        self.position += 1
        return value

    def unsigned(self, size: int) -> int:
        """The next unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def line(self) -> bytes:
        """The bytes up to the next newline."""
        stop = self.data.find(b"\n", self.position)
        if stop < 0:
            raise PickleFault("the pickle ends too early", truncated=True)
        piece = self.data[self.position : stop]
        self.position = stop + 1
        return piece

    # the stack

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Take the top value; a mark is as far as it goes."""
        if not self.stack or (self.marks and self.marks[-1] >= len(self.stack)):
            raise PickleFault(f"stack underflow at byte {self.position - 1}")
        return self.stack.pop()

    def top(self) -> Any:
        """The top value."""
        if not self.stack:
            raise PickleFault(f"stack underflow at byte {self.position - 1}")
        return self.stack[-1]

    def pop_mark(self) -> list[Any]:
        """Take everything above the last mark."""
        if not self.marks:
            raise PickleFault(f"no mark at byte {self.position - 1}")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    # classes, calls, state

    def named(self, module: str, name: str) -> Global:
        """The class or function of a module, noted as an import."""
        module = _RENAMED.get(module, module)
        found = self.globals.get((module, name))
        if found is None:
            if len(self.globals) >= self.budget.globals:
                raise PickleFault(f"names more than {self.budget.globals:,} classes", over_budget=True)
            found = self.globals[module, name] = Global(printable(module[:200]), printable(name[:200]))
        return found

    def call(self, function: Any, args: Any, kwargs: Any = None) -> None:
        """Put what a call would make on the stack, as an inert record or a known plain value."""
        self.count_object()
        arguments = args if isinstance(args, tuple) else (args,)
        self.push(reduce_call(function, arguments, kwargs if isinstance(kwargs, dict) else None, self.charge))

    def count_object(self) -> None:
        """Account for an object that is made: it takes some ten times the memory of a number."""
        self.calls += 1
        if self.calls > self.budget.objects:
            raise PickleFault(f"more than {self.budget.objects:,} objects", over_budget=True)

    def charge(self, count: int) -> None:
        """Account for bytes that a constructor makes from one memoised value, which could be asked for again and again."""
        self.made += count
        if self.made > 2 * len(self.data):
            raise PickleFault("makes far more than it holds", over_budget=True)

    def set_items(self, pairs: list[Any]) -> None:
        """Set keys and values, given in turn, on the top value."""
        target = self.top()
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if isinstance(target, dict):
                target[_key(key)] = value
            elif isinstance(target, Record):
                target.add_pair(key, value)

    def add_items(self, items: list[Any]) -> None:
        """Append items to the top value."""
        target = self.top()
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Record):
            target.add_items(items)

    def integer(self, count: int) -> int:
        """The next signed integer of `count` bytes."""
        if count > self.budget.integer_bytes:
            raise PickleFault(f"an integer of {count:,} bytes", over_budget=True)
        return int.from_bytes(self.take(count), "little", signed=True)

    def text_integer(self) -> int | bool:
        """The next integer written in digits (protocol 0, which writes booleans as 00 and 01)."""
        text = self.line().rstrip(b"L")
        if text in (b"00", b"01"):
            return text == b"01"
        if len(text) > 3 * self.budget.integer_bytes:
            raise PickleFault(f"an integer of {len(text):,} digits", over_budget=True)
        return int(text)


def _key(key: Any) -> Any:
    """A key that hashes in constant time: adversaries choose tuples that hash for hours and integers that collide.

    Records hash by identity and stay themselves.
    """
    if key is None or isinstance(key, str | bytes | bool | float | Global | Record):
        return key
    if isinstance(key, int):
        return key if -(2**63) <= key < 2**64 else str(key)
    if isinstance(key, tuple) and len(key) <= 8 and all(isinstance(part, int | None) or (isinstance(part, str) and len(part) < 500) for part in key):
        return repr(key)
    return f"<{type(key).__name__} {id(key):x}>"
