"""Puts an original that only counts where each target's original is, and arms the probe over all of them: no target is left out.

A module that this host does not have, such as a vendor's, is made up; the original of a module that is there lends its signature.
"""

import functools
import importlib
import inspect
import sys
import types

import torch

import ddp_probe
from ddp_probe import activation
from ddp_probe.activation.targets import TARGETS
from ddp_probe.traced.patching.guard import guard


class Original:
    """What the wrapper has to call: it keeps what came, and answers or raises what it was told to."""

    def __init__(self):
        self.calls = []
        self.answer = None
        self.raises = None

    def __call__(self, *args, **kwargs):
        """Keep the call and answer it."""
        self.calls.append((args, kwargs))
        if self.raises is not None:
            raise self.raises
        return self.answer


ORIGINAL = Original()


def _module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        found = sys.modules[name] = types.ModuleType(name)
        return found


def _stand_in(real):
    def original(*args, **kwargs):
        return ORIGINAL(*args, **kwargs)

    return original if real is None else functools.wraps(real)(original)


def place(row):
    """Put a stand-in in the place of one target."""
    holder = _module(row.module)
    *owners, last = row.qualname.split(".")
    for name in owners:
        if not hasattr(holder, name):
            setattr(holder, name, type(name, (), {}))
        holder = getattr(holder, name)
    setattr(holder, last, _stand_in(getattr(holder, last, None)))


def arm():
    """Arm the probe over stand-ins for every target and return the session."""
    for name in sorted({row.module for row in TARGETS}):
        _module(name)
    for row in TARGETS:
        place(row)
    ddp_probe.activate()
    assert guard.counts == {}, guard.counts
    session = activation.session()
    unpatched = [(str(row), session.patches[str(row)].why) for row in TARGETS if session.patches[str(row)].state != "patched"]
    assert not unpatched, unpatched
    return session


class Row:
    """One target as a program meets it: how to call it, and what its parameters are called."""

    def __init__(self, row, session):
        self.name = str(row)
        self.observer = session.patches[self.name].observer
        *owners, last = row.qualname.split(".")
        self.holder = functools.reduce(getattr, owners, sys.modules[row.module])
        self.wrapped = getattr(self.holder, last)
        self.instance = [_instance(self.holder)] if owners else []
        self.parameters = _parameters(self.wrapped, bool(owners))

    def plain(self):
        """Return plain values for the parameters, a model where a model goes."""
        return {name: torch.nn.Linear(1, 1) if name in ("module", "model") else object() for name in self.parameters}

    def call(self, values, instance=None):
        """Call the target with these values by name."""
        return self.wrapped(*(instance or self.instance), **values)


def _parameters(wrapped, bound):
    found = list(inspect.signature(wrapped).parameters.values())[1 if bound else 0 :]
    named = [parameter.name for parameter in found if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    return named or ["device"]


def _instance(cls):
    if issubclass(cls, torch.nn.Module):
        return torch.nn.Linear(1, 1)
    members = {"pids": lambda self: {0: 4194303}}
    made = type(cls)(cls.__name__, (cls,), members)
    made.__abstractmethods__ = frozenset()
    return object.__new__(made)


def rows(session):
    """Return every target."""
    return [Row(row, session) for row in TARGETS]


def probes():
    """Return the names of all probes."""
    return sorted({row.probe for row in TARGETS})
