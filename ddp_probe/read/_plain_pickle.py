"""Reads pickles that hold plain data alone: None, booleans, numbers, texts, lists, tuples, dicts. Nothing is imported, called or built.

A pickle is a program that may name any function; pickle.Unpickler can be told to import nothing, but not to allocate nothing. This reads the few
opcodes that torch's Flight Recorder writes, holds no more than the file does, and refuses every other opcode by its name.
"""

import pickletools
import struct
from typing import Any, Callable, Dict, List, NoReturn, Tuple

MOST_BYTES = 1 << 26
_MOST_STEPS = 10_000_000
_MARK = object()


class RefusedError(Exception):
    """The pickle is not plain data, or it is broken."""


def loads(data: bytes) -> Any:
    """Return what a pickle holds."""
    if len(data) > MOST_BYTES:
        raise RefusedError("it has %d bytes, more than %d" % (len(data), MOST_BYTES))
    machine = _Machine(data)
    try:
        return machine.run()
    except (IndexError, KeyError, struct.error):
        raise RefusedError("it is broken at byte %d" % machine.at) from None
    except UnicodeDecodeError:
        raise RefusedError("a text in it is not UTF-8, at byte %d" % machine.at) from None


class _Machine:
    """The stack, the memo, and the place in the bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: List[Any] = []
        self.memo: Dict[int, Any] = {}

    def run(self) -> Any:
        """Take one step after another until the pickle says stop."""
        data, steps = self.data, _STEPS
        for _ in range(_MOST_STEPS):
            code = data[self.at]
            self.at += 1
            if code == _STOP:
                return self.stack[-1]
            steps.get(code, _refuse)(self)
        raise RefusedError("it has more than %d steps" % _MOST_STEPS)

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        found = self.data[self.at : self.at + count]
        if len(found) < count:
            raise RefusedError("it ends within a value: %d bytes are announced at byte %d, and %d are there" % (count, self.at, len(found)))
        self.at += count
        return found

    def number(self, layout: struct.Struct) -> int:
        """Return the next number."""
        return int(layout.unpack(self.take(layout.size))[0])

    def marked(self) -> List[Any]:
        """Take off the stack what came after the last mark."""
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise IndexError

    def top(self, kind: type) -> Any:
        """Return the container at the top, which has to be of this kind."""
        found = self.stack[-1]
        if type(found) is not kind:
            raise RefusedError("it adds to a value that is not a %s, at byte %d" % (kind.__name__, self.at))
        return found

    def pairs(self, items: List[Any]) -> Dict[Any, Any]:
        """Return keys and values as a dict. A key of another type could make its hash as deep as the file is long."""
        if any(type(key) not in (str, int) for key in items[::2]):
            raise RefusedError("a key in it is not a text or a number, at byte %d" % self.at)
        return {items[place]: items[place + 1] for place in range(0, len(items), 2)}


_UINT1, _UINT2, _INT4, _UINT4, _UINT8 = (struct.Struct(code) for code in ("<B", "<H", "<i", "<I", "<Q"))
_FLOAT = struct.Struct(">d")
_STOP = ord(".")


def _refuse(machine: _Machine) -> NoReturn:
    code = machine.data[machine.at - 1]
    raise RefusedError("it has the opcode %s at byte %d, which plain data does not need" % (_NAMES.get(code, hex(code)), machine.at - 1))


def _pushes(value: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.stack.append(value(machine))

    return step


def _tuple_of(count: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        if len(machine.stack) < count:
            raise IndexError
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return step


def _text(layout: struct.Struct) -> Callable[[_Machine], Any]:
    return lambda machine: machine.take(machine.number(layout)).decode("utf-8", "surrogatepass")


def _puts(layout: struct.Struct) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.memo[machine.number(layout)] = machine.stack[-1]

    return step


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _gets(layout: struct.Struct) -> Callable[[_Machine], Any]:
    return lambda machine: machine.memo[machine.number(layout)]


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    machine.top(list).append(value)


def _appends(machine: _Machine) -> None:
    values = machine.marked()
    machine.top(list).extend(values)


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.top(dict).update(machine.pairs([key, value]))


def _set_items(machine: _Machine) -> None:
    items = machine.marked()
    machine.top(dict).update(machine.pairs(items))


def _skips(count: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.take(count)

    return step


def _float(machine: _Machine) -> float:
    return float(_FLOAT.unpack(machine.take(8))[0])


def _long(machine: _Machine) -> int:
    return int.from_bytes(machine.take(machine.number(_UINT1)), "little", signed=True)


_BY_NAME: Tuple[Tuple[str, Callable[[_Machine], None]], ...] = (
    ("PROTO", _skips(1)),
    ("FRAME", _skips(8)),
    ("MARK", _pushes(lambda _: _MARK)),
    ("NONE", _pushes(lambda _: None)),
    ("NEWTRUE", _pushes(lambda _: True)),
    ("NEWFALSE", _pushes(lambda _: False)),
    ("BININT", _pushes(lambda machine: machine.number(_INT4))),
    ("BININT1", _pushes(lambda machine: machine.number(_UINT1))),
    ("BININT2", _pushes(lambda machine: machine.number(_UINT2))),
    ("LONG1", _pushes(_long)),
    ("BINFLOAT", _pushes(_float)),
    ("BINUNICODE", _pushes(_text(_UINT4))),
    ("SHORT_BINUNICODE", _pushes(_text(_UINT1))),
    ("BINUNICODE8", _pushes(_text(_UINT8))),
    ("EMPTY_LIST", _pushes(lambda _: [])),
    ("EMPTY_TUPLE", _pushes(lambda _: ())),
    ("EMPTY_DICT", _pushes(lambda _: {})),
    ("LIST", _pushes(lambda machine: machine.marked())),
    ("TUPLE", _pushes(lambda machine: tuple(machine.marked()))),
    ("DICT", _pushes(lambda machine: machine.pairs(machine.marked()))),
    ("TUPLE1", _tuple_of(1)),
    ("TUPLE2", _tuple_of(2)),
    ("TUPLE3", _tuple_of(3)),
    ("APPEND", _append),
    ("APPENDS", _appends),
    ("SETITEM", _set_item),
    ("SETITEMS", _set_items),
    ("BINPUT", _puts(_UINT1)),
    ("LONG_BINPUT", _puts(_UINT4)),
    ("MEMOIZE", _memoize),
    ("BINGET", _pushes(_gets(_UINT1))),
    ("LONG_BINGET", _pushes(_gets(_UINT4))),
)
_NAMES = {ord(op.code): op.name for op in pickletools.opcodes}
_CODES = {name: code for code, name in _NAMES.items()}
_STEPS: Dict[int, Callable[[_Machine], None]] = {_CODES[name]: step for name, step in _BY_NAME}
