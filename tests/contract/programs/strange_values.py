"""Hands strange and secret values to every parameter of every target; prints what was changed, touched or failed at."""

import collections
import functools
import io
import json
import pathlib
import sys
import types

import numpy
import stand_ins
import torch
from stand_ins import ORIGINAL

touched = []
found = []
traps = types.SimpleNamespace(set=False)
SECRET = "pl4nted" + "S3cretNobodySees"  # In two halves, as the command line and this file are quoted in the run.
CONTENT = 7654321.0  # Shown with its dot by torch and numpy alike; without the dot, a clock of nanoseconds can hold the same digits.


class Ran(BaseException):
    """What code of the job raises here: nothing that holds back an Exception holds it back."""


def told(name, wrapped=None):
    """Return a method that tells that it was called; before the traps are set it does what it did."""

    def method(self, *args, **kwargs):
        if not traps.set:
            return wrapped(self, *args, **kwargs)
        touched.append(name)
        raise Ran("Code of the job's own ran.")

    return method


def poisoned(base, *names, **members):
    """Return a subclass of which these methods and properties, and each look-up of an attribute, are noticed."""
    for name in names:
        old = next((vars(kind)[name] for kind in base.__mro__ if name in vars(kind)), None)
        is_method = callable(old) or old is None
        members[name] = told(name, old) if is_method else property(told(name, old.__get__))
    members.setdefault("__getattribute__", told("getattribute", base.__getattribute__))
    return type("Poisoned" + base.__name__, (base,), dict(members, __module__=__name__))


_SHOWN = "repr str format bytes eq ne hash bool len iter int float index fspath contains getitem call enter lt gt reduce_ex radd".split()
_TRAPS = {"__%s__" % name: told(name) for name in _SHOWN}
_TEXTS = "lower upper startswith endswith partition rpartition split strip encode replace __add__ __mod__ __getitem__".split()
Poison = type("Poison", (), _TRAPS)
PoisonText = poisoned(str, *_TEXTS, **{name: trap for name, trap in _TRAPS.items() if name not in ("__hash__", "__reduce_ex__")})
PoisonDict = type("PoisonDict", (dict,), dict(_TRAPS, keys=told("keys"), items=told("items"), get=told("get"), values=told("values")))
PoisonList = type("PoisonList", (list,), _TRAPS)
PoisonPath = poisoned(type(pathlib.Path()), "__str__", "__fspath__", "__repr__", "exists", "stat", "is_dir")
PoisonError = type("PoisonError", (Exception,), {"__str__": told("str"), "__repr__": told("repr")})
PoisonedError = poisoned(OSError, "__str__", "__repr__", "__class__", "__traceback__", "__cause__", "__context__")
PoisonMeta = type("PoisonMeta", (type,), _TRAPS)
AskedMeta = poisoned(type, "__instancecheck__", "__subclasscheck__")
Attributes = type("Attributes", (), {"__getattr__": told("getattr"), "__class__": property(told("class")), "device": property(told("device"))})
Raw = poisoned(io.RawIOBase, "fileno", "tell", "seek", "readinto", "read", readable=told("readable", lambda self: True), name=property(told("name")))
PoisonParameter = poisoned(torch.nn.Parameter, "shape", "device", "dtype", "requires_grad", "element_size", "numel", "size")
_OF_MODULE = "parameters named_parameters buffers modules children state_dict __getattr__ __repr__".split()
PoisonModule = poisoned(torch.nn.Linear, *_OF_MODULE, device=property(told("device")), __bool__=told("bool"), __len__=told("len"))
_OF_GROUP = "rank size __hash__ __eq__ __repr__".split()
PoisonGroup = poisoned(torch.distributed.ProcessGroup, *_OF_GROUP, name=told("name"), group_desc=property(told("desc")))
PoisonStore = poisoned(torch.distributed.HashStore, "get", "set", "wait", "__repr__", "__hash__", "__eq__")


class PoisonTensor(torch.Tensor):
    """A tensor whose every use is noticed."""

    @classmethod
    def __torch_function__(cls, func, kinds, args=(), kwargs=None):
        """Tell that somebody works with the tensor."""
        touched.append("torch_function %s" % getattr(func, "__name__", func))
        return super().__torch_function__(func, kinds, args, kwargs or {})


def values():
    """Yield a name and a value; the secrets are in places where a person would put them."""
    url = "https://user:%s@host/path?token=%s" % (SECRET, SECRET)
    yield "poison", Poison()
    yield "text", PoisonText("cpu")
    yield "dict", PoisonDict(device="cpu", api_key=SECRET)
    yield "list", PoisonList([0])
    yield "error", PoisonError("plain")
    yield "class", PoisonMeta("Named", (), {})
    yield "attributes", Attributes()
    yield "tensor", torch.full((2,), CONTENT)
    yield "parameter", torch.nn.Parameter(torch.full((2,), CONTENT))
    yield "poison tensor", torch.full((1,), CONTENT).as_subclass(PoisonTensor)
    yield "poison parameter", PoisonParameter(torch.zeros(1))
    yield "poison module", PoisonModule(2, 2)
    yield "poison parameters", _poison_model()
    yield "poison group", PoisonGroup(0, 1)
    yield "poison store", PoisonStore()
    yield "poison path", PoisonPath("/nowhere/weights.pth")
    yield "poison stream", io.BufferedReader(Raw())
    yield "asked", AskedMeta("Asked", (), {})()
    yield "array", numpy.full((2,), CONTENT)
    yield "url", url
    yield "url bytes", url.encode()
    yield "path", "/nowhere/weights.pth?token=%s" % SECRET
    yield "option", "--password %s" % SECRET
    yield "assignment", "api_key=%s" % SECRET
    yield "mapping", {"api_key": SECRET, "nested": {"password": SECRET, "deep": [url]}}
    yield "ordered", collections.OrderedDict(token=SECRET)
    yield "namespace", types.SimpleNamespace(token=SECRET)
    yield "partial", functools.partial(print, SECRET)
    yield "function", lambda: SECRET
    yield "surrogate", "\udcff\x00\n"
    yield "long", "x" * 3_000_000
    yield "huge", 1 << 100_000
    yield "nan", float("nan")
    yield "recursive", _recursive()
    yield "generator", (item for item in (SECRET,))
    yield "none", None
    yield "true", True
    yield "minus one", -1
    yield "meta", torch.nn.Linear(1, 1, device="meta")
    yield "model", _model()


def _recursive():
    found = []
    found.append(found)
    return found


def _model():
    model = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(model.weight, CONTENT)
    model.register_buffer("held", torch.full((2,), CONTENT))
    model.note = Poison()
    model.token = SECRET
    return model


def _poison_model():
    """Return a model whose parameters, and the dict that holds them, and the names of its parts are of the job's own classes."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    layer = model._modules["0"]
    names = poisoned(str, "__add__", "__radd__", "__len__", "__getitem__", "__format__", "__str__")
    layer.__dict__["_parameters"] = PoisonDict({names("weight"): PoisonParameter(torch.zeros(1)), "bias": torch.nn.Parameter(torch.zeros(1))})
    model.__dict__["_modules"] = {names("first"): layer}
    return model


def default_group():
    """Make a group of the job's own class the default one, in torch's tables."""
    c10d = torch.distributed.distributed_c10d
    group = PoisonGroup(0, 1)
    world = getattr(c10d, "_world", None)
    if world is None:
        c10d.GroupMember.WORLD = c10d.group.WORLD = c10d._default_pg = group
        c10d._pg_map[group], c10d._pg_names[group], c10d._pg_group_ranks[group] = ("gloo", None), "default", {0: 0}
    else:
        world.default_pg = group
        world.pg_map[group], world.pg_names[group], world.pg_group_ranks[group] = ("gloo", None), "default", {0: 0}
        world.pg_backend_config[group] = "cpu:gloo"


def one(row, parameter, label, value, instance=None):
    """Call a target with one strange argument; what the original receives are the same objects in the same places."""
    given = dict(row.plain(), **{parameter: value})
    ORIGINAL.calls.clear()
    what = "%s(%s=%s)" % (row.name, parameter, label)
    traps.set = True
    try:
        row.call(given, instance)
    except BaseException as exc:
        if exc is not ORIGINAL.raises:
            found.append("%s: fault: %s" % (what, type(exc).__name__))
    finally:
        traps.set = False
    if touched:
        found.append("%s ran %s" % (what, sorted(set(touched))))
        touched.clear()
    args, kwargs = ORIGINAL.calls[0] if len(ORIGINAL.calls) == 1 else ((), {})
    same = list(map(id, args)) == list(map(id, instance or row.instance)) and set(kwargs) == set(given)
    same = same and all(kwargs[name] is given[name] for name in given)
    if not same and not found:
        found.append("%s changed the arguments" % what)


def answers():
    """Yield results and exceptions for the original."""
    url = "https://user:%s@host/path?token=%s" % (SECRET, SECRET)
    yield Poison(), None
    yield None, PoisonError("plain")
    yield None, ValueError("cannot open %s with password=%s" % (url, SECRET))
    yield None, OSError(2, "No such file", url)
    yield PoisonDict(token=SECRET), None
    yield torch.full((1,), CONTENT).as_subclass(PoisonTensor), None
    yield None, RuntimeError(torch.full((1,), CONTENT))
    yield None, PoisonText
    yield None, PoisonedError(2, "No such file")
    yield Attributes(), None
    yield PoisonModule(2, 2), None
    yield PoisonGroup(0, 1), None


def strange_instance(row):
    """Return an instance of the target's class that notices each look-up of an attribute."""
    if isinstance(row.instance[0], torch.nn.Module):
        return PoisonModule(2, 2)
    kind = poisoned(type(row.instance[0]))
    kind.__abstractmethods__ = frozenset()
    return object.__new__(kind)


def main():
    """Every value for every parameter, then every answer; and an instance that is strange itself."""
    session = stand_ins.arm()
    session.recorder.start()
    rows = stand_ins.rows(session)
    default_group()
    for row in rows:
        for parameter in row.parameters:
            for label, value in values():
                one(row, parameter, label, value)
        for answer, raises in answers():
            ORIGINAL.answer, ORIGINAL.raises = answer, raises if isinstance(raises, BaseException) else None
            one(row, row.parameters[0], "plain", object())
        ORIGINAL.answer = ORIGINAL.raises = None
        if row.instance:
            one(row, row.parameters[0], "plain", object(), [strange_instance(row)])
    with open(sys.argv[1], "w") as file:
        json.dump({"found": found, "lines": session.recorder.lines, "lost": session.recorder.lost}, file)


if __name__ == "__main__":
    main()
