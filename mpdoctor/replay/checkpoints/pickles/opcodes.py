"""The opcodes of protocols 0 to 5, as functions of the pickle machine."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mpdoctor.replay.checkpoints.names import without_surrogates
from mpdoctor.replay.checkpoints.pickles.constructors import build
from mpdoctor.replay.checkpoints.pickles.faults import PickleFault
from mpdoctor.replay.checkpoints.pickles.records import Global, Persistent

if TYPE_CHECKING:
    from mpdoctor.replay.checkpoints.pickles.machine import Machine


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode("utf-8")


def _quoted(line: bytes) -> str:
    text = line.strip()
    if len(text) >= 2 and text[:1] == text[-1:] and text[:1] in (b"'", b'"'):
        text = text[1:-1]
    return text.decode("unicode_escape", "replace") if b"\\" in text else text.decode("latin-1")


HANDLERS: dict[int, Callable[[Machine], None]] = {}
"""What each opcode does, by its byte. STOP is the machine's own."""


def _op(*opcodes: bytes) -> Callable[[Callable[[Machine], None]], Callable[[Machine], None]]:
    def register(handler: Callable[[Machine], None]) -> Callable[[Machine], None]:
        for opcode in opcodes:
            HANDLERS[opcode[0]] = handler
        return handler

    return register


def _sized(opcode: bytes, size: int, decode: Callable[[bytes], Any]) -> None:
    HANDLERS[opcode[0]] = lambda m: m.stack.append(decode(m.take(m.unsigned(size))))


_SET, _FROZENSET = Global("builtins", "set"), Global("builtins", "frozenset")

HANDLERS[pickle.NONE[0]] = lambda m: m.stack.append(None)
HANDLERS[pickle.NEWTRUE[0]] = lambda m: m.stack.append(True)
HANDLERS[pickle.NEWFALSE[0]] = lambda m: m.stack.append(False)
HANDLERS[pickle.EMPTY_TUPLE[0]] = lambda m: m.stack.append(())
HANDLERS[pickle.EMPTY_LIST[0]] = lambda m: m.stack.append([])
HANDLERS[pickle.EMPTY_DICT[0]] = lambda m: m.stack.append({})
_sized(pickle.SHORT_BINUNICODE, 1, _text)
_sized(pickle.BINUNICODE, 4, _text)
_sized(pickle.BINUNICODE8, 8, _text)
_sized(pickle.SHORT_BINBYTES, 1, bytes)
_sized(pickle.BINBYTES, 4, bytes)
_sized(pickle.BINBYTES8, 8, bytes)
_sized(pickle.BYTEARRAY8, 8, bytes)
_sized(pickle.SHORT_BINSTRING, 1, lambda b: b.decode("latin-1"))
_sized(pickle.BINSTRING, 4, lambda b: b.decode("latin-1"))
HANDLERS[pickle.BININT1[0]] = lambda m: m.stack.append(m.byte())
HANDLERS[pickle.BININT2[0]] = lambda m: m.stack.append(m.unsigned(2))
HANDLERS[pickle.BININT[0]] = lambda m: m.stack.append(m.integer(4))
HANDLERS[pickle.LONG1[0]] = lambda m: m.stack.append(m.integer(m.unsigned(1)))
HANDLERS[pickle.LONG4[0]] = lambda m: m.stack.append(m.integer(m.unsigned(4)))
HANDLERS[pickle.BINFLOAT[0]] = lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0])
HANDLERS[pickle.INT[0]] = lambda m: m.stack.append(m.text_integer())
HANDLERS[pickle.LONG[0]] = lambda m: m.stack.append(m.text_integer())
HANDLERS[pickle.FLOAT[0]] = lambda m: m.stack.append(float(m.line()[:64]))
HANDLERS[pickle.STRING[0]] = lambda m: m.stack.append(_quoted(m.line()))
HANDLERS[pickle.UNICODE[0]] = lambda m: m.stack.append(without_surrogates(m.line().decode("raw-unicode-escape", "replace")))


@_op(pickle.PROTO)
def _proto(m: Machine) -> None:
    if m.unsigned(1) > pickle.HIGHEST_PROTOCOL:
        raise PickleFault("a pickle protocol that does not exist")


@_op(pickle.FRAME)
def _frame(m: Machine) -> None:
    m.take(8)


@_op(pickle.MARK)
def _mark(m: Machine) -> None:
    m.marks.append(len(m.stack))


@_op(pickle.POP)
def _pop(m: Machine) -> None:
    if m.marks and m.marks[-1] >= len(m.stack):
        m.marks.pop()
    else:
        m.pop()


@_op(pickle.POP_MARK)
def _pop_mark(m: Machine) -> None:
    m.pop_mark()


@_op(pickle.DUP)
def _dup(m: Machine) -> None:
    m.push(m.top())


@_op(pickle.MEMOIZE)
def _memoize(m: Machine) -> None:
    m.memo[len(m.memo)] = m.top()


@_op(pickle.PUT)
def _put(m: Machine) -> None:
    m.memo[int(m.line()[:20])] = m.top()


@_op(pickle.BINPUT)
def _binput(m: Machine) -> None:
    m.memo[m.byte()] = m.top()


@_op(pickle.LONG_BINPUT)
def _long_binput(m: Machine) -> None:
    m.memo[m.unsigned(4)] = m.top()


def _get(m: Machine, index: int) -> None:
    if index not in m.memo:
        raise PickleFault(f"memo entry {index} does not exist")
    m.stack.append(m.memo[index])


HANDLERS[pickle.GET[0]] = lambda m: _get(m, int(m.line()[:20]))
HANDLERS[pickle.BINGET[0]] = lambda m: _get(m, m.byte())
HANDLERS[pickle.LONG_BINGET[0]] = lambda m: _get(m, m.unsigned(4))
HANDLERS[pickle.TUPLE[0]] = lambda m: m.stack.append(tuple(m.pop_mark()))
HANDLERS[pickle.LIST[0]] = lambda m: m.stack.append(m.pop_mark())


@_op(pickle.EMPTY_SET)
def _empty_set(m: Machine) -> None:
    m.call(_SET, ())


@_op(pickle.FROZENSET)
def _frozenset(m: Machine) -> None:
    m.call(_FROZENSET, (m.pop_mark(),))


@_op(pickle.TUPLE1)
def _tuple_of_one(m: Machine) -> None:
    m.stack.append((m.pop(),))


@_op(pickle.TUPLE2)
def _tuple_of_two(m: Machine) -> None:
    second = m.pop()
    m.stack.append((m.pop(), second))


@_op(pickle.TUPLE3)
def _tuple_of_three(m: Machine) -> None:
    third, second = m.pop(), m.pop()
    m.stack.append((m.pop(), second, third))


@_op(pickle.DICT)
def _dict(m: Machine) -> None:
    pairs = m.pop_mark()
    m.push({})
    m.set_items(pairs)


@_op(pickle.SETITEM)
def _setitem(m: Machine) -> None:
    value, key = m.pop(), m.pop()
    m.set_items([key, value])


@_op(pickle.SETITEMS)
def _setitems(m: Machine) -> None:
    m.set_items(m.pop_mark())


@_op(pickle.APPEND)
def _append(m: Machine) -> None:
    m.add_items([m.pop()])


@_op(pickle.APPENDS, pickle.ADDITEMS)
def _appends(m: Machine) -> None:
    m.add_items(m.pop_mark())


@_op(pickle.GLOBAL)
def _global(m: Machine) -> None:
    m.push(m.named(_text(m.line()), _text(m.line())))


@_op(pickle.STACK_GLOBAL)
def _stack_global(m: Machine) -> None:
    name, module = m.pop(), m.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise PickleFault("a class name that is no text")
    m.push(m.named(module, name))


@_op(pickle.INST)
def _inst(m: Machine) -> None:
    cls = m.named(_text(m.line()), _text(m.line()))
    m.call(cls, tuple(m.pop_mark()))


@_op(pickle.OBJ)
def _obj(m: Machine) -> None:
    cls, *args = m.pop_mark()
    m.call(cls, tuple(args))


@_op(pickle.REDUCE, pickle.NEWOBJ)
def _reduce(m: Machine) -> None:
    args, function = m.pop(), m.pop()
    m.call(function, args)


@_op(pickle.NEWOBJ_EX)
def _newobj_ex(m: Machine) -> None:
    kwargs, args, cls = m.pop(), m.pop(), m.pop()
    m.call(cls, args, kwargs)


@_op(pickle.BUILD)
def _build(m: Machine) -> None:
    state = m.pop()
    m.stack[-1] = build(m.top(), state)


@_op(pickle.EXT1, pickle.EXT2, pickle.EXT4)
def _extension(m: Machine) -> None:
    size = {pickle.EXT1[0]: 1, pickle.EXT2[0]: 2, pickle.EXT4[0]: 4}[m.data[m.position - 1]]
    m.push(m.named("copyreg", f"extension {m.unsigned(size)}"))


@_op(pickle.PERSID)
def _persid(m: Machine) -> None:
    m.push(Persistent(_text(m.line())))


@_op(pickle.BINPERSID)
def _binpersid(m: Machine) -> None:
    m.push(Persistent(m.pop()))
