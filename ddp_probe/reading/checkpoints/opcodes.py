"""What each opcode of pickle does to the stack. Classes stay names, and calls stay records of what would be called."""

from typing import Any, Callable, Dict, List, Sequence

from ddp_probe.reading.checkpoints.stack import Stack
from ddp_probe.reading.checkpoints.values import Blob, Global, Mapping, Persistent, PickledCall, PickledSet

_CONTAINERS = (tuple, list, Mapping, PickledCall, PickledSet)
_DICTS = ("collections.OrderedDict", "collections.Counter")


def _constant(value: Any) -> Callable[[Stack], None]:
    return lambda s: s.stack.append(value)


def _tuple_of(count: int) -> Callable[[Stack], None]:
    def handler(s: Stack) -> None:
        if len(s.stack) < count:
            raise IndexError
        made = tuple(s.stack[-count:])
        del s.stack[-count:]
        s.make(made)
        s.nest(made, _container(made))

    return handler


def _container(items: Sequence[Any]) -> Any:
    """Return the first or the last of what is put into another, if that is a container."""
    first = items[0] if items else None
    return first if type(first) in _CONTAINERS else items[-1] if items else None


def _made_since_mark(s: Stack, kind: Callable[[List[Any]], Any]) -> None:
    items = s.since_mark()
    made = kind(items)
    s.make(made)
    s.nest(made, _container(items))


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
    s.misuse("%s to something that is not a list" % opcode)
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
            s.misuse("%s on something that is not a dict" % opcode)
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
        s.misuse("REDUCE of something that is not a function")
        if type(function) not in (PickledCall, Persistent):
            raise ValueError("a call of a %s" % type(function).__name__)
    made = PickledCall(function, arguments)
    s.make(made)
    s.nest(made, _container((function, arguments)))


def _new_extended(s: Stack) -> None:
    keywords, arguments, function = s.stack.pop(), s.stack.pop(), s.stack.pop()
    made = PickledCall(function, arguments)
    made.state = keywords
    s.make(made)


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
        s.misuse("BUILD of something that is not an object")


def _global(s: Stack, argument: Any) -> None:
    s.refer(*argument.split(" ", 1))


def _stack_global(s: Stack) -> None:
    name, module = s.stack.pop(), s.stack.pop()
    s.refer(module, name)


def _extension(s: Stack, argument: Any) -> None:
    s.refer("copyreg", "extension_%d" % argument)


def _persistent(s: Stack, identity: Any) -> None:
    found = Persistent(identity)
    s.persistent.append(found)
    s.make(found)


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
