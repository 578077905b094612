"""A small job made of real modules on disk, a registry that is undone afterwards, and an observer that writes down what it sees."""

import importlib
import sys

import pytest

from ddp_probe.traced.patching import Observer, PatchRegistry, guard, switch

_DEFINING = '''
"""Defines what the tests patch."""
import functools

def load(path, mode="r", *rest, **options):
    """Read a thing."""
    if path == "missing":
        raise KeyError(path)
    return (path, mode, rest, options)

def outer(path):
    return load(path)

def nothing():
    pass

read = load

class Model:
    def to(self, device, copy=False):
        return (self, device)

    def twice(self, device):
        return self.to(device)

    @classmethod
    def build(cls, size=1):
        return cls

    @staticmethod
    def count(things):
        return len(things)

    class Inner:
        def deep(self, x):
            return x

class Small(Model):
    pass

class Deco:
    """Another tool's decorator, with an attribute of its own."""
    def __init__(self, fn):
        self.fn = fn
    def __call__(self, *args, **kwargs):
        return ("deco", self.fn(*args, **kwargs))

def wrapping(fn):
    @functools.wraps(fn)
    def theirs(*args, **kwargs):
        return ("theirs", fn(*args, **kwargs))
    return theirs

def plain_wrapping(fn):
    def theirs(*args, **kwargs):
        return ("theirs", fn(*args, **kwargs))
    return theirs

CONSTANT = 3
'''
_USING = '"""Imported the name before anything was patched."""\nfrom probed_lib import load\n\ndef go():\n    return load("a")\n'


class Recorder(Observer):
    """Writes down what it sees, as tuples of moment, target and whatever belongs to it."""

    def __init__(self, name="recorder", outermost=False):
        self.name = name
        self.outermost = outermost
        self.seen = []

    def before(self, call):
        """Note the call."""
        self.seen.append(("before", call.target.qualname, call.arguments()))

    def after(self, call, result):
        """Note the result."""
        self.seen.append(("after", call.target.qualname, result))

    def raised(self, call, exc):
        """Note the exception."""
        self.seen.append(("raised", call.target.qualname, exc))


@pytest.fixture
def lib(tmp_path, monkeypatch):
    """The defining module, with a second one that imported a name from it."""
    (tmp_path / "probed_lib.py").write_text(_DEFINING)
    (tmp_path / "probed_user.py").write_text(_USING)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    module = importlib.import_module("probed_lib")
    importlib.import_module("probed_user")
    yield module
    for name in ("probed_lib", "probed_user"):
        sys.modules.pop(name, None)


@pytest.fixture
def user(lib):
    """The module that imported the name early."""
    return sys.modules["probed_user"]


@pytest.fixture
def registry():
    """A registry that is undone when the test ends."""
    made = PatchRegistry()
    yield made
    made.undo()


@pytest.fixture
def recorder():
    """Makes observers that write down what they see."""
    return Recorder


@pytest.fixture(autouse=True)
def _clean_slate():
    guard.forget()
    guard.on_fault = None
    switch.on = True
    yield
    guard.forget()
    guard.on_fault = None
    switch.on = True


@pytest.fixture
def quiet(monkeypatch):
    """Faults of an override are held back, as in a real run."""
    monkeypatch.delenv("DDP_PROBE_STRICT", raising=False)


@pytest.fixture
def calls(lib):
    """A function of the library that notes how it was called, and fails for the word fail."""
    seen = []

    def act(what, times=1, *rest, flag=False, **options):
        """Do something."""
        seen.append((what, times, rest, flag, options))
        if what == "fail":
            raise KeyError(what)
        return what

    lib.act = act
    return seen
