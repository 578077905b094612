"""Follows the opcodes of a pickle and builds data from them. Nothing is imported, called or unpickled, whatever the pickle says.

pickletools.genops decodes the opcodes. Every size is bounded: opcodes, values, texts that are kept, and memo numbers. An object that a pickle
refers to many times is one object here too, so a pickle that would grow exponentially does not.
"""

import _compat_pickle
import pickletools
from typing import Any, Callable, Dict, List, Sequence, Set

from ddp_probe.checkpoints.judged import BrokenError, UnknownError
from ddp_probe.checkpoints.pickle_stream import Blob, Global, Mapping, Persistent, PickledCall, PickledSet, PickleStream
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_KEPT = 4096  # Characters of one text, bytes of one value.
_DEEPEST = 100_000  # Containers within each other: no pickler writes as many, since it calls itself for each.


class TooDeepError(Exception):
    """Nobody has pickled this: it is made to keep its reader busy."""


class Stack:
    """What opcodes work on, with counts of what they have made."""

    def __init__(self) -> None:
        self.globals: Dict[str, Global] = {}
        self.opcodes: Set[str] = set()
        self.misused = ""  # The first use of an opcode that weights_only refuses.
        self.protocol = 0
        self.persistent: List[Persistent] = []
        self.values = self.texts = 0  # Made so far, and characters kept.
        self.restart()

    def restart(self) -> None:
        """Begin a pickle: what an earlier one left on the stack is not part of it."""
        self.stack: List[Any] = []
        self.metastack: List[List[Any]] = []
        self.memo: Dict[int, Any] = {}
        self._outermost: Any = None  # The container in which all those of a nest are, as far as it is made.
        self._depth = 0

    def nest(self, outer: Any, inner: Any) -> None:
        """Count how deep it goes while containers are put into each other one after another."""
        self._depth = self._depth + 1 if inner is self._outermost else 0
        self._outermost = outer
        if self._depth > _DEEPEST:
            raise TooDeepError

    def make(self, value: Any) -> None:
        """Push a new object, and count it."""
        self.values += 1
        self.stack.append(value)

    def number(self, value: Any) -> None:
        """Push a number; one with more than 64 bits only as its length."""
        if type(value) is int and not -5 <= value <= 256:
            self.values += 1
            value = value if value.bit_length() <= 64 else Blob(value.bit_length() // 8 + 1)
        self.stack.append(value)

    def text(self, value: Any) -> None:
        """Push a text or bytes; a long one only as its length."""
        length = len(value)
        self.values += 1
        self.texts += min(length, _KEPT)
        self.stack.append(value if length <= _KEPT else Blob(length))

    def since_mark(self) -> List[Any]:
        """Return what was pushed since the last mark."""
        items, self.stack = self.stack, self.metastack.pop()
        return items

    def refer(self, module: Any, name: Any) -> None:
        """Push a class or function by name, as Python 3 calls it."""
        if type(module) is not str or type(name) is not str:
            raise ValueError("a class is named by something that is not a text")
        # torch takes any name with Storage in it for a storage, whatever its module.
        if not all(part.isidentifier() for part in ("%s.%s" % (module, name)).split(".")) and "<" not in name and "Storage" not in name:
            raise ValueError("a class is named %r" % ("%s.%s" % (module, name))[:80])
        if (module, name) in _compat_pickle.NAME_MAPPING:
            module, name = _compat_pickle.NAME_MAPPING[(module, name)]
        elif module in _compat_pickle.IMPORT_MAPPING:
            module = _compat_pickle.IMPORT_MAPPING[module]
        name_of = Global(module, name)
        self.globals.setdefault(name_of.path, name_of)
        self.make(name_of)

    def put(self, index: Any) -> None:
        """Remember the top of the stack under a number."""
        if not 0 <= index < 1 << 32:
            raise ValueError("a memo number of %s" % str(index)[:40])
        self.memo[index] = self.stack[-1]


# What each opcode of pickle does to the stack. Classes stay names, and calls stay records of what would be called.

_CONTAINERS = (tuple, list, Mapping, PickledCall, PickledSet)
_DICTS = ("collections.OrderedDict", "collections.Counter")


def _constant(value: Any) -> Callable[[Stack], None]:
    return lambda s: s.stack.append(value)


def _tuple_of(count: int) -> Callable[[Stack], None]:
    def handler(s: Stack) -> None:
        if len(s.stack) < count:
            raise IndexError
        items = tuple(s.stack[-count:])
        del s.stack[-count:]
        s.make(items)
        s.nest(items, _container(items))

    return handler


def _container(items: Sequence[Any]) -> Any:
    """Return the first or the last of what is put into another, if that is a container."""
    first = items[0] if items else None
    return first if type(first) in _CONTAINERS else items[-1] if items else None


def _made_since_mark(s: Stack, kind: Callable[[List[Any]], Any]) -> None:
    items = s.since_mark()
    container = kind(items)
    s.make(container)
    s.nest(container, _container(items))


def _mark(s: Stack) -> None:
    s.metastack.append(s.stack)
    s.stack = []


def _append(s: Stack) -> None:
    value = s.stack.pop()
    _extend(s, [value], "APPEND")


def _extend(s: Stack, items: List[Any], opcode: str) -> None:
    target = s.stack[-1]
    s.nest(target, _container(items))
    if type(target) is list:
        target.extend(items)
        return
    s.misused = s.misused or say("{opcode} to something that is not a list", opcode=opcode)
    if type(target) not in (PickledCall, PickledSet):
        raise ValueError("%s to a %s" % (opcode, type(target).__name__))
    target.items.extend(items)


def _set_items(s: Stack, pairs: List[Any], opcode: str) -> None:
    if len(pairs) % 2:
        raise ValueError("%s with a key and no value" % opcode)
    if any(type(key) in (list, Mapping) for key in pairs[::2]):
        raise ValueError("a list or a dict as a key")
    target = s.stack[-1]
    if type(target) is PickledCall:
        if type(target.function) is not Global or target.function.path not in _DICTS:
            s.misused = s.misused or say("{opcode} on something that is not a dict", opcode=opcode)
    elif type(target) is not Mapping:
        raise ValueError("%s on a %s" % (opcode, type(target).__name__))
    s.nest(target, _container(pairs))
    target.pairs.extend(pairs)


def _set_item(s: Stack) -> None:
    value, key = s.stack.pop(), s.stack.pop()
    _set_items(s, [key, value], "SETITEM")


def _dict(s: Stack) -> None:
    pairs = s.since_mark()
    s.make(Mapping())
    _set_items(s, pairs, "DICT")


def _reduce(s: Stack) -> None:
    arguments, function = s.stack.pop(), s.stack.pop()
    if type(function) is not Global:
        s.misused = s.misused or say("REDUCE of something that is not a function")
        if type(function) not in (PickledCall, Persistent):
            raise ValueError("a call of a %s" % type(function).__name__)
    call = PickledCall(function, arguments)
    s.make(call)
    s.nest(call, _container((function, arguments)))


def _new_extended(s: Stack) -> None:
    keywords, arguments, function = s.stack.pop(), s.stack.pop(), s.stack.pop()
    call = PickledCall(function, arguments)
    call.state = keywords
    s.make(call)


def _object(s: Stack) -> None:
    items = s.since_mark()
    s.make(PickledCall(items[0], tuple(items[1:])))


def _instance(s: Stack, argument: Any) -> None:
    items = s.since_mark()
    s.refer(*argument.split(" ", 1))
    s.make(PickledCall(s.stack.pop(), tuple(items)))


def _build(s: Stack) -> None:
    state, target = s.stack.pop(), s.stack[-1]
    if type(target) is PickledCall:
        target.state = state
        s.nest(target, state)
    else:
        s.misused = s.misused or say("BUILD of something that is not an object")


def _global(s: Stack, argument: Any) -> None:
    s.refer(*argument.split(" ", 1))


def _stack_global(s: Stack) -> None:
    name, module = s.stack.pop(), s.stack.pop()
    s.refer(module, name)


def _extension(s: Stack, argument: Any) -> None:
    s.refer("copyreg", "extension_%d" % argument)


def _persistent(s: Stack, identity: Any) -> None:
    persistent = Persistent(identity)
    s.persistent.append(persistent)
    s.make(persistent)


def _get(s: Stack, argument: Any) -> None:
    s.stack.append(s.memo[argument])


def _protocol(s: Stack, argument: Any) -> None:
    if argument > 5:
        raise ValueError("protocol %d" % argument)
    s.protocol = argument


def _pop(s: Stack) -> None:
    if s.stack:
        s.stack.pop()
    else:
        s.since_mark()


def _pop_mark(s: Stack) -> None:
    s.since_mark()


def _nothing(s: Stack) -> None:
    """STOP, and what concerns only how bytes are stored."""


_NUMBERS = "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT".split()
_TEXTS = "STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8".split()

WITH_ARGUMENT: Dict[str, Callable[[Stack, Any], None]] = {
    **dict.fromkeys(_NUMBERS, Stack.number),
    **dict.fromkeys(_TEXTS, Stack.text),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), Stack.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _get),
    **dict.fromkeys(("EXT1", "EXT2", "EXT4"), _extension),
    "GLOBAL": _global,
    "INST": _instance,
    "PERSID": _persistent,
    "PROTO": _protocol,
}
PLAIN: Dict[str, Callable[[Stack], None]] = {
    **dict.fromkeys(("STOP", "FRAME", "READONLY_BUFFER"), _nothing),
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": lambda s: s.make([]),
    "EMPTY_DICT": lambda s: s.make(Mapping()),
    "EMPTY_SET": lambda s: s.make(PickledSet([])),
    "LIST": lambda s: _made_since_mark(s, list),
    "TUPLE": lambda s: _made_since_mark(s, tuple),
    "FROZENSET": lambda s: _made_since_mark(s, PickledSet),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "DICT": _dict,
    "MARK": _mark,
    "POP": _pop,
    "POP_MARK": _pop_mark,
    "DUP": lambda s: s.stack.append(s.stack[-1]),
    "APPEND": _append,
    "APPENDS": lambda s: _extend(s, s.since_mark(), "APPENDS"),
    "ADDITEMS": lambda s: _extend(s, s.since_mark(), "ADDITEMS"),
    "SETITEM": _set_item,
    "SETITEMS": lambda s: _set_items(s, s.since_mark(), "SETITEMS"),
    "MEMOIZE": lambda s: s.put(len(s.memo)),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _new_extended,
    "OBJ": _object,
    "BUILD": _build,
    "BINPERSID": lambda s: _persistent(s, s.stack.pop()),
    "NEXT_BUFFER": lambda s: s.make(Blob(0)),
}


OPCODES = 12_000_000  # About 250,000 tensors.
VALUES = 4_000_000  # About half a gigabyte, if each is a dict.
TEXT = 64 << 20  # Characters in all.
_MARKS = 100_000  # Open at the same time.
_WRONG = (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError)


class Machine(Stack):
    """An unpickling that does not happen. Several pickles of one file share its limits."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def run(self, stream: PickleStream, record: str = "") -> Any:
        """Return the object of the next pickle in the stream."""
        self.restart()
        at = stream.tell()
        try:
            for opcode, argument, position in pickletools.genops(stream):
                at = position or 0
                self._count += 1
                name = opcode.name
                if name == "FRAME" and not stream.has(argument or 0):
                    raise BrokenError(
                        say("The pickle ends in the middle: a frame of {count} bytes is not there.", count=argument),
                        record,
                        at,
                    )
                self.opcodes.add(name)
                handler = PLAIN.get(name)
                if handler is not None:
                    handler(self)
                else:
                    WITH_ARGUMENT[name](self, argument)
                if self._count > OPCODES or self.values > VALUES or self.texts > TEXT or len(self.metastack) > _MARKS:
                    raise UnknownError(
                        say(
                            "Its pickle is larger than what is followed: {opcodes} opcodes, {values} values.",
                            opcodes=self._count,
                            values=self.values,
                        )
                    )
            return self.stack.pop()
        except TooDeepError:
            raise UnknownError(say("Its pickle is nested more deeply than what is followed.")) from None
        except _WRONG as exc:
            raise BrokenError(_words(exc, ended=stream.ended), record, at) from exc


def _words(exc: Exception, *, ended: bool) -> str:
    """Return why the pickle cannot be followed."""
    if ended:
        return say("The pickle ends in the middle.")
    if isinstance(exc, (IndexError, KeyError)):
        return say("The pickle refers to an object that it has not made.")
    return say("The pickle is not valid: {why}.", why=quoted(str(exc)[:200]))
