"""Hands strange and secret values to every parameter of every target; prints what was changed, touched or failed at."""

import collections
import functools
import json
import sys
import types

import numpy
import stand_ins
import torch
from stand_ins import ORIGINAL

touched = []
found = []
SECRET = "pl4nted" + "S3cretNobodySees"  # In two halves, as the command line and this file are quoted in the run.
CONTENT = 7654321


def told(name):
    """Return a method that tells that it was called."""

    def method(self, *args, **kwargs):
        touched.append(name)
        raise RuntimeError("Code of the job's own ran.")

    return method


_SHOWN = "repr str format bytes eq ne hash bool len iter int float index fspath contains getitem call enter lt gt reduce_ex".split()
_TRAPS = {"__%s__" % name: told(name) for name in _SHOWN}
Poison = type("Poison", (), _TRAPS)
PoisonText = type("PoisonText", (str,), {name: trap for name, trap in _TRAPS.items() if name not in ("__hash__", "__reduce_ex__")})
PoisonDict = type("PoisonDict", (dict,), dict(_TRAPS, keys=told("keys"), items=told("items"), get=told("get"), values=told("values")))
PoisonList = type("PoisonList", (list,), _TRAPS)
PoisonError = type("PoisonError", (Exception,), {"__str__": told("str"), "__repr__": told("repr")})
PoisonMeta = type("PoisonMeta", (type,), _TRAPS)
Attributes = type("Attributes", (), {"__getattr__": told("getattr"), "__class__": property(told("class")), "device": property(told("device"))})


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
    yield "tensor", torch.full((2,), float(CONTENT))
    yield "parameter", torch.nn.Parameter(torch.full((2,), float(CONTENT)))
    yield "poison tensor", torch.full((1,), float(CONTENT)).as_subclass(PoisonTensor)
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
    torch.nn.init.constant_(model.weight, float(CONTENT))
    model.register_buffer("held", torch.full((2,), float(CONTENT)))
    model.note = Poison()
    model.token = SECRET
    return model


def one(row, parameter, label, value):
    """Call a target with one strange argument; what the original receives are the same objects in the same places."""
    given = dict(row.plain(), **{parameter: value})
    ORIGINAL.calls.clear()
    what = "%s(%s=%s)" % (row.name, parameter, label)
    try:
        row.call(given)
    except Exception as exc:
        if exc is not ORIGINAL.raises:
            found.append("%s: fault: %s" % (what, type(exc).__name__))
    if touched:
        found.append("%s ran %s" % (what, sorted(set(touched))))
        touched.clear()
    args, kwargs = ORIGINAL.calls[0] if len(ORIGINAL.calls) == 1 else ((), {})
    same = list(args) == row.instance and set(kwargs) == set(given) and all(kwargs[name] is given[name] for name in given)
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
    yield torch.full((1,), float(CONTENT)).as_subclass(PoisonTensor), None
    yield None, RuntimeError(torch.full((1,), float(CONTENT)))
    yield None, PoisonText


def main():
    """Every value for every parameter, then every answer; and an instance that is strange itself."""
    session = stand_ins.arm()
    session.recorder.start()
    rows = stand_ins.rows(session)
    for row in rows:
        for parameter in row.parameters:
            for label, value in values():
                one(row, parameter, label, value)
        for answer, raises in answers():
            ORIGINAL.answer, ORIGINAL.raises = answer, raises if isinstance(raises, BaseException) else None
            one(row, row.parameters[0], "plain", object())
        ORIGINAL.answer = ORIGINAL.raises = None
    with open(sys.argv[1], "w") as file:
        json.dump({"found": found, "lines": session.recorder.lines, "lost": session.recorder.lost}, file)


if __name__ == "__main__":
    main()
