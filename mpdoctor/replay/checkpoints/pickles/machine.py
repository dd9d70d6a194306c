"""The pickle machine: runs opcodes of protocols 0 to 5 into inert records, within a budget.

Nothing named in the file is imported and nothing is called. The budget bounds time and memory
whatever the file claims: sizes are checked against the bytes that are there before anything is made
of them, the memo is a dictionary (an index of 2^32 costs one entry), and only keys that hash in
constant time become dictionary keys.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpdoctor.replay.checkpoints.pickles.constructors import build, reduce_call
from mpdoctor.replay.checkpoints.pickles.records import Global, Persistent, Record


class PickleFault(Exception):
    """The pickle is truncated, malformed, or over the budget.

    Attributes:
        truncated: whether it simply ends too early.
        over_budget: whether it asks for more than the budget.
    """

    def __init__(self, text: str, *, truncated: bool = False, over_budget: bool = False) -> None:
        super().__init__(text)
        self.truncated = truncated
        self.over_budget = over_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What reading one pickle may cost.

    Attributes:
        opcodes: opcodes run; a state dict takes about 40 for each tensor.
        globals: different classes and functions named.
        integer_bytes: bytes of one integer.
    """

    opcodes: int = 20_000_000
    globals: int = 10_000
    integer_bytes: int = 256


@dataclass(frozen=True, slots=True)
class Pickled:
    """A pickle's value, the byte after its STOP, and everything that a real unpickler would import, in order."""

    value: Any
    end: int
    imports: tuple[Global, ...]


def read_pickle(data: bytes, start: int = 0, budget: Budget | None = None) -> Pickled:
    """Read the pickle that begins at `start`. Raises PickleFault."""
    return _Machine(data, start, budget or Budget()).run()


class _Machine:
    """One run. Handlers are methods named after the opcode, as `pickle` names its constants."""

    def __init__(self, data: bytes, start: int, budget: Budget) -> None:
        self.data = data
        self.position = start
        self.budget = budget
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.globals: dict[tuple[str, str], Global] = {}
        self.made = 0

    def run(self) -> Pickled:
        data, handlers, limit, opcodes = self.data, _HANDLERS, self.budget.opcodes, 0
        end = len(data)
        while True:
            if self.position >= end:
                raise PickleFault("the pickle ends too early", truncated=True)
            opcode = data[self.position]
            self.position += 1
            opcodes += 1
            if opcode == 0x2E:
                break
            if opcodes > limit:
                raise PickleFault(f"more than {limit:,} opcodes", over_budget=True)
            handler = handlers.get(opcode)
            if handler is None:
                raise PickleFault(f"unknown opcode 0x{opcode:02x} at byte {self.position - 1}")
            try:
                handler(self)
            except PickleFault:
                raise
            except (IndexError, ValueError, TypeError, AttributeError, OverflowError, struct.error, UnicodeError, RecursionError) as error:
                raise PickleFault(f"malformed at byte {self.position - 1} ({type(error).__name__})") from None
        if not self.stack:
            raise PickleFault("the pickle holds nothing")
        return Pickled(self.stack[-1], self.position, tuple(self.globals.values()))

    # reading arguments

    def take(self, count: int) -> bytes:
        stop = self.position + count
        if stop > len(self.data):
            raise PickleFault(f"claims {count:,} bytes at byte {self.position}, and {len(self.data) - self.position:,} are left", truncated=True)
        piece = self.data[self.position : stop]
        self.position = stop
        return piece

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def line(self) -> bytes:
        stop = self.data.find(b"\n", self.position)
        if stop < 0:
            raise PickleFault("the pickle ends too early", truncated=True)
        piece = self.data[self.position : stop]
        self.position = stop + 1
        return piece

    # the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or (self.marks and self.marks[-1] >= len(self.stack)):
            raise PickleFault(f"stack underflow at byte {self.position - 1}")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack:
            raise PickleFault(f"stack underflow at byte {self.position - 1}")
        return self.stack[-1]

    def pop_mark(self) -> list[Any]:
        if not self.marks:
            raise PickleFault(f"no mark at byte {self.position - 1}")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    # classes, calls, state

    def named(self, module: str, name: str) -> Global:
        found = self.globals.get((module, name))
        if found is None:
            if len(self.globals) >= self.budget.globals:
                raise PickleFault(f"names more than {self.budget.globals:,} classes", over_budget=True)
            found = self.globals[module, name] = Global(module[:200], name[:200])
        return found

    def call(self, function: Any, args: Any, kwargs: Any = None) -> None:
        arguments = args if isinstance(args, tuple) else (args,)
        self.push(reduce_call(function, arguments, kwargs if isinstance(kwargs, dict) else None, self.charge))

    def charge(self, count: int) -> None:
        """Account for bytes that a constructor makes from one memoised value, which could be asked for again and again."""
        self.made += count
        if self.made > 2 * len(self.data):
            raise PickleFault("makes far more than it holds", over_budget=True)

    def set_items(self, pairs: list[Any]) -> None:
        target = self.top()
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if isinstance(target, dict):
                target[_key(key)] = value
            elif isinstance(target, Record):
                target.pairs.append((key, value))

    def add_items(self, items: list[Any]) -> None:
        target = self.top()
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Record):
            target.items.extend(items)

    def integer(self, count: int) -> int:
        if count > self.budget.integer_bytes:
            raise PickleFault(f"an integer of {count:,} bytes", over_budget=True)
        return int.from_bytes(self.take(count), "little", signed=True)

    def text_integer(self) -> int | bool:
        text = self.line().rstrip(b"L")
        if text in (b"00", b"01"):
            return text == b"01"
        if len(text) > 3 * self.budget.integer_bytes:
            raise PickleFault(f"an integer of {len(text):,} digits", over_budget=True)
        return int(text)


def _key(key: Any) -> Any:
    """A key that hashes in constant time: adversaries choose tuples that hash for hours and integers that collide."""
    if key is None or isinstance(key, str | bytes | bool | float | Global):
        return key
    if isinstance(key, int):
        return key if -(2**63) <= key < 2**64 else str(key)
    if isinstance(key, tuple) and len(key) <= 8 and all(isinstance(part, int | None) or (isinstance(part, str) and len(part) < 500) for part in key):
        return repr(key)
    return f"<{type(key).__name__} {id(key):x}>"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode("utf-8")


def _quoted(line: bytes) -> str:
    text = line.strip()
    if len(text) >= 2 and text[:1] == text[-1:] and text[:1] in (b"'", b'"'):
        text = text[1:-1]
    return text.decode("unicode_escape", "replace") if b"\\" in text else text.decode("latin-1")


_HANDLERS: dict[int, Callable[[_Machine], None]] = {}


def _op(*opcodes: bytes) -> Callable[[Callable[[_Machine], None]], Callable[[_Machine], None]]:
    def register(handler: Callable[[_Machine], None]) -> Callable[[_Machine], None]:
        for opcode in opcodes:
            _HANDLERS[opcode[0]] = handler
        return handler

    return register


def _constant(opcode: bytes, make: Callable[[], Any]) -> None:
    _HANDLERS[opcode[0]] = lambda m: m.stack.append(make())


def _sized(opcode: bytes, size: int, decode: Callable[[bytes], Any]) -> None:
    _HANDLERS[opcode[0]] = lambda m: m.stack.append(decode(m.take(m.unsigned(size))))


_constant(pickle.NONE, lambda: None)
_constant(pickle.NEWTRUE, lambda: True)
_constant(pickle.NEWFALSE, lambda: False)
_constant(pickle.EMPTY_TUPLE, tuple)
_constant(pickle.EMPTY_LIST, list)
_constant(pickle.EMPTY_DICT, dict)
_constant(pickle.EMPTY_SET, lambda: Record(Global("builtins", "set"), ()))
_sized(pickle.SHORT_BINUNICODE, 1, _text)
_sized(pickle.BINUNICODE, 4, _text)
_sized(pickle.BINUNICODE8, 8, _text)
_sized(pickle.SHORT_BINBYTES, 1, bytes)
_sized(pickle.BINBYTES, 4, bytes)
_sized(pickle.BINBYTES8, 8, bytes)
_sized(pickle.BYTEARRAY8, 8, bytes)
_sized(pickle.SHORT_BINSTRING, 1, lambda b: b.decode("latin-1"))
_sized(pickle.BINSTRING, 4, lambda b: b.decode("latin-1"))
_HANDLERS[pickle.BININT1[0]] = lambda m: m.stack.append(m.unsigned(1))
_HANDLERS[pickle.BININT2[0]] = lambda m: m.stack.append(m.unsigned(2))
_HANDLERS[pickle.BININT[0]] = lambda m: m.stack.append(m.integer(4))
_HANDLERS[pickle.LONG1[0]] = lambda m: m.stack.append(m.integer(m.unsigned(1)))
_HANDLERS[pickle.LONG4[0]] = lambda m: m.stack.append(m.integer(m.unsigned(4)))
_HANDLERS[pickle.BINFLOAT[0]] = lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0])
_HANDLERS[pickle.INT[0]] = lambda m: m.stack.append(m.text_integer())
_HANDLERS[pickle.LONG[0]] = lambda m: m.stack.append(m.text_integer())
_HANDLERS[pickle.FLOAT[0]] = lambda m: m.stack.append(float(m.line()[:64]))
_HANDLERS[pickle.STRING[0]] = lambda m: m.stack.append(_quoted(m.line()))
_HANDLERS[pickle.UNICODE[0]] = lambda m: m.stack.append(m.line().decode("raw-unicode-escape", "replace"))


@_op(pickle.PROTO)
def _proto(m: _Machine) -> None:
    if m.unsigned(1) > pickle.HIGHEST_PROTOCOL:
        raise PickleFault("a pickle protocol that does not exist")


@_op(pickle.FRAME)
def _frame(m: _Machine) -> None:
    m.take(8)


@_op(pickle.MARK)
def _mark(m: _Machine) -> None:
    m.marks.append(len(m.stack))


@_op(pickle.POP)
def _pop(m: _Machine) -> None:
    if m.marks and m.marks[-1] >= len(m.stack):
        m.marks.pop()
    else:
        m.pop()


@_op(pickle.POP_MARK)
def _pop_mark(m: _Machine) -> None:
    m.pop_mark()


@_op(pickle.DUP)
def _dup(m: _Machine) -> None:
    m.push(m.top())


@_op(pickle.MEMOIZE)
def _memoize(m: _Machine) -> None:
    m.memo[len(m.memo)] = m.top()


@_op(pickle.PUT)
def _put(m: _Machine) -> None:
    m.memo[int(m.line()[:20])] = m.top()


@_op(pickle.BINPUT)
def _binput(m: _Machine) -> None:
    m.memo[m.unsigned(1)] = m.top()


@_op(pickle.LONG_BINPUT)
def _long_binput(m: _Machine) -> None:
    m.memo[m.unsigned(4)] = m.top()


def _get(m: _Machine, index: int) -> None:
    if index not in m.memo:
        raise PickleFault(f"memo entry {index} does not exist")
    m.stack.append(m.memo[index])


_HANDLERS[pickle.GET[0]] = lambda m: _get(m, int(m.line()[:20]))
_HANDLERS[pickle.BINGET[0]] = lambda m: _get(m, m.unsigned(1))
_HANDLERS[pickle.LONG_BINGET[0]] = lambda m: _get(m, m.unsigned(4))
_HANDLERS[pickle.TUPLE[0]] = lambda m: m.stack.append(tuple(m.pop_mark()))
_HANDLERS[pickle.LIST[0]] = lambda m: m.stack.append(m.pop_mark())
_HANDLERS[pickle.FROZENSET[0]] = lambda m: m.stack.append(Record(Global("builtins", "frozenset"), (m.pop_mark(),)))


@_op(pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
def _small_tuple(m: _Machine) -> None:
    count = m.data[m.position - 1] - pickle.TUPLE1[0] + 1
    items = [m.pop() for _ in range(count)]
    m.push(tuple(reversed(items)))


@_op(pickle.DICT)
def _dict(m: _Machine) -> None:
    pairs = m.pop_mark()
    m.push({})
    m.set_items(pairs)


@_op(pickle.SETITEM)
def _setitem(m: _Machine) -> None:
    value, key = m.pop(), m.pop()
    m.set_items([key, value])


@_op(pickle.SETITEMS)
def _setitems(m: _Machine) -> None:
    m.set_items(m.pop_mark())


@_op(pickle.APPEND)
def _append(m: _Machine) -> None:
    m.add_items([m.pop()])


@_op(pickle.APPENDS, pickle.ADDITEMS)
def _appends(m: _Machine) -> None:
    m.add_items(m.pop_mark())


@_op(pickle.GLOBAL)
def _global(m: _Machine) -> None:
    m.push(m.named(_text(m.line()), _text(m.line())))


@_op(pickle.STACK_GLOBAL)
def _stack_global(m: _Machine) -> None:
    name, module = m.pop(), m.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise PickleFault("a class name that is no text")
    m.push(m.named(module, name))


@_op(pickle.INST)
def _inst(m: _Machine) -> None:
    cls = m.named(_text(m.line()), _text(m.line()))
    m.call(cls, tuple(m.pop_mark()))


@_op(pickle.OBJ)
def _obj(m: _Machine) -> None:
    cls, *args = m.pop_mark()
    m.call(cls, tuple(args))


@_op(pickle.REDUCE, pickle.NEWOBJ)
def _reduce(m: _Machine) -> None:
    args, function = m.pop(), m.pop()
    m.call(function, args)


@_op(pickle.NEWOBJ_EX)
def _newobj_ex(m: _Machine) -> None:
    kwargs, args, cls = m.pop(), m.pop(), m.pop()
    m.call(cls, args, kwargs)


@_op(pickle.BUILD)
def _build(m: _Machine) -> None:
    state = m.pop()
    m.stack[-1] = build(m.top(), state)


@_op(pickle.EXT1, pickle.EXT2, pickle.EXT4)
def _extension(m: _Machine) -> None:
    size = {pickle.EXT1[0]: 1, pickle.EXT2[0]: 2, pickle.EXT4[0]: 4}[m.data[m.position - 1]]
    m.push(m.named("copyreg", f"extension {m.unsigned(size)}"))


@_op(pickle.PERSID)
def _persid(m: _Machine) -> None:
    m.push(Persistent(_text(m.line())))


@_op(pickle.BINPERSID)
def _binpersid(m: _Machine) -> None:
    m.push(Persistent(m.pop()))

