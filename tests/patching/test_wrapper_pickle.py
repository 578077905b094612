"""A wrapper looks like its original to pickle, copy, inspect and everything else that asks."""

import copy
import functools
import inspect
import multiprocessing
import os
import pickle
import pickletools
import sys
import types
import weakref

import pytest

from ddp_probe.traced.patching import PatchRegistry, Target

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
LOAD = Target("probed_lib", "load")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickled_bytes_are_the_originals(lib, registry, recorder, protocol):
    """A wrapped function, a method on its class and a bound method pickle to the very bytes they pickle to without us."""

    def pickled():
        things = [lib.load, lib.Model.to, lib.Model.count, lib.Model.build, functools.partial(lib.load, mode="b")]
        return [pickletools.optimize(pickle.dumps(thing, protocol)) for thing in things]

    before = pickled()
    registry.apply_all([(Target("probed_lib", name), recorder()) for name in ("load", "Model.to", "Model.count", "Model.build")])
    assert pickled() == before
    model = lib.Model()
    assert pickle.loads(pickle.dumps(model.to, protocol))("cpu")[1] == "cpu"
    assert pickle.loads(pickle.dumps(lib.load, protocol)) is lib.load


UNPICKLE = """
import pickle, sys
sys.path.insert(0, sys.argv[2])
things = pickle.load(open(sys.argv[1], "rb"))
assert "ddp_probe" not in sys.modules and "wrapt" not in sys.modules
import probed_lib
assert things[0] is probed_lib.load and things[1].func is probed_lib.load and things[2] is probed_lib.Model.to
print(things[0]("a")[0], things[1]()[0])
"""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stale", [False, True], ids=["active", "retired"])
def test_another_interpreter_needs_nothing_of_ours(lib, recorder, run_python, tmp_path, protocol, stale):
    """What was pickled with the probe, its wrappers active or retired, loads in an interpreter that has never heard of it."""
    registry = PatchRegistry()
    registry.apply_all([(LOAD, recorder()), (Target("probed_lib", "Model.to"), recorder())])
    things = [lib.load, functools.partial(lib.load, "p"), lib.Model.to]
    if stale:
        registry.undo()
    data = pickle.dumps(things, protocol)
    registry.undo()
    assert b"ddp_probe" not in data
    assert b"wrapt" not in data
    (tmp_path / "data.pickle").write_bytes(data)
    done = run_python(["-I", "-c", UNPICKLE, tmp_path / "data.pickle", tmp_path], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a p\n"), done.stderr


def test_cloudpickle_refers_by_name(lib, recorder):
    """Cloudpickle sends a wrapper, active or retired, and a partial of it, as the name of the original."""
    cloudpickle = pytest.importorskip("cloudpickle")
    registry = PatchRegistry()
    registry.apply_all([(LOAD, recorder()), (Target("probed_lib", "Model.to"), recorder())])
    things = [lib.load, functools.partial(lib.load, "p"), lib.Model.to]
    active = cloudpickle.dumps(things)
    registry.undo()
    retired = cloudpickle.dumps(things)
    for data in (active, retired):
        assert b"Read a thing" not in data
        assert b"ddp_probe" not in data
        assert len(data) < 400
        assert pickle.loads(data)[0] is lib.load


def test_copies_are_the_wrapper_itself(lib, registry, recorder):
    """Copy and deepcopy of a function give the function back, and deepcopy of a bound method copies its instance, as always."""
    registry.apply_all([(LOAD, recorder()), (Target("probed_lib", "Model.to"), recorder())])
    assert copy.copy(lib.load) is lib.load
    assert copy.deepcopy([lib.load])[0] is lib.load
    model = lib.Model()
    model.callback = model.to
    twin = copy.deepcopy(model)
    assert twin.callback.__self__ is twin
    assert twin.callback("cpu") == (twin, "cpu")


def test_inspect_sees_the_original(lib, registry, recorder):
    """Signature, source, file, name, module, documentation and type are the original's."""
    original = lib.load

    def facts():
        model = lib.Model()
        return [
            inspect.signature(lib.load),
            inspect.signature(model.to),
            inspect.signature(lib.Model.to),
            inspect.signature(lib.Model.build),
            inspect.getsource(lib.load),
            inspect.getsource(lib.Model.to),
            inspect.getfile(lib.load),
            inspect.isfunction(lib.load),
            inspect.ismethod(model.to),
            inspect.isfunction(lib.Model.to),
            isinstance(lib.load, types.FunctionType),
            (lib.load.__module__, lib.load.__name__, lib.load.__qualname__, lib.load.__doc__),
            lib.load.__code__,
            hash(lib.load),
            lib.load.__dict__,
            [type(vars(lib.Model)[name]) for name in ("build", "count")],
        ]

    before = facts()
    registry.apply_all([(Target("probed_lib", name), recorder()) for name in ("load", "Model.to", "Model.build", "Model.count")])
    assert facts() == before
    assert lib.load == original
    assert original == lib.load
    assert len({lib.load, original}) == 1


def test_lookups_are_as_stable_as_before(lib, registry, recorder):
    """A method looked up on its class is the same object each time, and weak references to it and to bound methods work."""
    registry.apply(Target("probed_lib", "Model.to"), recorder())
    model = lib.Model()
    assert lib.Model.to is lib.Model.to
    assert model.to == model.to
    assert model.to.__func__ is lib.Model.to
    assert weakref.ref(lib.Model.to)() is lib.Model.to
    assert weakref.WeakMethod(model.to)()("cpu") == (model, "cpu")


def test_an_attribute_set_on_the_wrapper_lands_on_the_original(lib, registry, recorder):
    """What the job stores on a function is still there after undo."""
    registry.apply(LOAD, recorder())
    lib.load.marked = 3
    registry.undo()
    assert lib.load.marked == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Needs fork.")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_takes_a_wrapper_as_its_function(lib, registry, recorder, method):
    """A worker process is handed a wrapped function, by fork and by spawn."""
    registry.apply(LOAD, recorder())
    assert "probed_lib" in sys.modules
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(lib.load, ["a"], chunksize=1) == [("a", "r", (), {})]
