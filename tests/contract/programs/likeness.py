"""Compares every real target before and after it is patched: what a program can ask of a function, and what pickling makes of it."""

import copy
import functools
import importlib
import inspect
import json
import pickle
import sys
import types
import typing
import weakref

import cloudpickle
import torch
import torch.distributed

import ddp_probe
from ddp_probe import activation
from ddp_probe.activation.targets import TARGETS
from ddp_probe.traced.patching.wrapper import Wrapper

NAMES = tuple("__%s__" % name for name in "name qualname module doc defaults kwdefaults annotations code globals closure".split())
ASKED = (
    callable,
    inspect.isfunction,
    inspect.isroutine,
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isclass,
    inspect.unwrap,
    inspect.signature,
    inspect.getfullargspec,
    inspect.getsource,
    inspect.getfile,
    inspect.getmodule,
    inspect.getdoc,
    typing.get_type_hints,
    dir,
)


def reach(row):
    """Return a target as a program gets hold of it, or None where this host has none."""
    try:
        return functools.reduce(getattr, row.qualname.split("."), importlib.import_module(row.module))
    except (ImportError, AttributeError):
        return None


def attempt(ask, thing):
    """Return an answer in a form that can be compared, or the exception's type."""
    try:
        answer = ask(thing)
    except Exception as exc:
        return type(exc).__name__
    if ask is inspect.unwrap:
        return "itself" if answer is thing else getattr(answer, "__qualname__", "")
    return str(answer) if ask in (inspect.signature, inspect.getfullargspec, typing.get_type_hints) else answer


def facts(thing):
    """Return everything that a program can ask of a function."""
    told = {name: getattr(thing, name, None) for name in NAMES}
    told["dict"] = dict(vars(thing))
    told.update({getattr(ask, "__name__", str(ask)): attempt(ask, thing) for ask in ASKED})
    told["isinstance"] = [isinstance(thing, kind) for kind in (types.FunctionType, types.MethodType, typing.Callable, type, object)]
    told["class"] = thing.__class__
    told["wrapped"] = hasattr(thing, "__wrapped__")
    told["shown"] = (repr(thing), str(thing), "%r" % (thing,))
    return told


def survives(thing):
    """Return what copying and pickling make of it: the same object, or what went wrong."""
    told = {"copy": copy.copy(thing) is thing, "deepcopy": copy.deepcopy(thing) is thing, "ref": weakref.ref(thing)() is thing}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        told["pickle %d" % protocol] = attempt(lambda one, protocol=protocol: pickle.loads(pickle.dumps(one, protocol)) is one, thing)
    told["cloudpickle"] = attempt(lambda one: pickle.loads(cloudpickle.dumps(one)) is one, thing)
    told["partial"] = attempt(lambda one: pickle.loads(pickle.dumps(functools.partial(one, 1))).func is one, thing)
    told["equal"] = (thing == thing, thing != thing, hash(thing) == hash(thing), thing in {thing: 1})  # noqa: PLR0124
    return told


def bound():
    """Return what a model's methods look like from outside."""
    model = torch.nn.Linear(1, 1)
    method = model.to
    return {
        "kind": type(method),
        "self": method.__self__ is model,
        "func": method.__func__ is torch.nn.Module.to,
        "name": method.__name__,
        "signature": str(inspect.signature(method)),
        "equal": model.to == model.to,
        "deepcopy": type(copy.deepcopy(model)),
        "pickle": type(pickle.loads(pickle.dumps(model.to))),
        "subclass": str(inspect.signature(type("Mine", (torch.nn.parallel.DistributedDataParallel,), {}))),
        "members": sorted(name for name, _ in inspect.getmembers(torch.nn.Module, inspect.isfunction)),
    }


def main():
    """Print each difference, and write pickles that an interpreter without the probe has to read."""
    rows = [row for row in TARGETS if reach(row) is not None]
    originals = {str(row): reach(row) for row in rows}
    before = {name: (facts(thing), survives(thing)) for name, thing in originals.items()}
    bound_before = bound()
    ddp_probe.activate()
    assert {name for name, patch in activation.session().patches.items() if patch.state == "patched"} == set(originals)
    differences = [] if bound() == bound_before else ["bound: %s" % bound()]
    old_pickles = ["partial", *("pickle %d" % protocol for protocol in range(pickle.HIGHEST_PROTOCOL + 1))]
    for row in rows:
        thing, name = reach(row), str(row)
        assert type(thing) is Wrapper
        after = (facts(thing), survives(thing))
        for old, new in zip(before[name], after):
            worse = [key for key in old if new[key] != old[key] and not (key in old_pickles and old[key] == "PicklingError")]
            differences += ["%s: %s: %.200r, was %.200r" % (name, key, new[key], old[key]) for key in worse]
    able = [row for row in rows if before[str(row)][1]["pickle 2"] is True]
    pickles = {str(row): [pickle.dumps(reach(row)).hex(), cloudpickle.dumps(reach(row)).hex()] for row in able}
    with open(sys.argv[1], "w") as file:
        json.dump({"differences": differences, "targets": sorted(originals), "pickles": pickles}, file)


if __name__ == "__main__":
    main()
