"""Somebody wrapped us: theirs stays, ours comes out of the middle."""

import functools

import pytest
import wrapt

from ddp_probe.traced.patching import Target, overwritten_by

LOAD = Target("probed_lib", "load")


def passing(wrapped, instance, args, kwargs):
    """Be another tool's wrapt wrapper."""
    return ("theirs", wrapped(*args, **kwargs))


WRAPPERS = [
    ("functools.wraps", lambda lib: lib.wrapping(lib.load)),
    ("closure", lambda lib: lib.plain_wrapping(lib.load)),
    ("twice", lambda lib: lib.plain_wrapping(lib.wrapping(lib.load))),
    ("wrapt", lambda lib: wrapt.FunctionWrapper(lib.load, passing)),
    ("wrapt twice", lambda lib: wrapt.FunctionWrapper(wrapt.FunctionWrapper(lib.load, passing), passing)),
]


@pytest.mark.parametrize("wrap", [entry[1] for entry in WRAPPERS], ids=[entry[0] for entry in WRAPPERS])
def test_ours_is_spliced_out_of_theirs(lib, registry, recorder, wrap):
    """A wrapper that somebody put around ours stays in place and calls the original directly after undo."""
    observer, original = recorder(), lib.load
    patch = registry.apply(LOAD, observer)
    theirs = lib.load = wrap(lib)
    assert overwritten_by(patch) is None
    expected = lib.load("a")
    assert len(observer.seen) == 2
    assert expected[0] == "theirs"
    certificate = registry.undo()
    entry = next(entry for entry in certificate.entries if entry.slot == "probed_lib.load")
    assert (entry.kind, entry.restored, certificate.ok) == ("spliced", True, True)
    assert lib.load is theirs
    assert lib.load("a") == expected
    assert (len(observer.seen), patch.stale_calls) == (2, 0)
    inner = theirs
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    assert inner in (original, theirs)
    assert not type(inner).__module__.startswith("ddp_probe")


def test_theirs_is_never_peeled_when_it_was_there_first(lib, registry, recorder):
    """A wrapper that was in place before us is our original, carries a __wrapped__ of its own, and is what undo puts back."""
    theirs = lib.load = lib.wrapping(lib.load)
    observer = recorder()
    registry.apply(LOAD, observer)
    assert lib.load("a")[0] == "theirs"
    assert len(observer.seen) == 2
    assert registry.undo().ok
    assert lib.load is theirs
    assert theirs("a")[0] == "theirs"


def test_where_splicing_is_impossible_the_call_falls_through(lib, registry, recorder):
    """A decorator object that holds ours in an attribute keeps a retired wrapper, is named, and its calls are counted."""
    observer = recorder()
    patch = registry.apply(LOAD, observer)
    lib.load = lib.Deco(lib.load)
    assert overwritten_by(patch) is None
    certificate = registry.undo()
    entry = next(entry for entry in certificate.entries if entry.slot == "probed_lib.load")
    assert (entry.kind, entry.restored) == ("unreachable", False)
    assert entry.why.endswith("probed_lib.Deco.")
    assert lib.load("a") == ("deco", ("a", "r", (), {}))
    assert (observer.seen, patch.stale_calls) == ([], 1)


def test_a_partial_in_our_place_falls_through(lib, registry, recorder):
    """A partial of ours that sits in our place cannot be changed and is named."""
    registry.apply(LOAD, recorder())
    lib.load = functools.partial(lib.load, mode="b")
    kinds = {entry.slot: entry.kind for entry in registry.undo().entries}
    assert kinds["probed_lib.load"] == "unreachable"
    assert lib.load("a")[1] == "b"


def test_a_wrapper_elsewhere_is_spliced_too(lib, registry, recorder):
    """A function that says through __wrapped__ that it wraps ours is spliced, although it sits in no slot of ours."""
    observer = recorder()
    patch = registry.apply(LOAD, observer)
    kept = [lib.wrapping(lib.load), wrapt.FunctionWrapper(lib.load, passing)]
    certificate = registry.undo()
    assert [entry.kind for entry in certificate.entries].count("spliced") == 2
    assert all(theirs.__wrapped__ is lib.load and theirs("a")[0] == "theirs" for theirs in kept)
    assert (observer.seen, patch.stale_calls) == ([], 0)


def test_a_wrapped_method_is_spliced(lib, registry, recorder):
    """A method wrapper around ours in the class stays, bound as before, and calls the original."""
    observer = recorder()
    registry.apply(Target("probed_lib", "Model.to"), observer)
    theirs = lib.Model.to = lib.wrapping(lib.Model.to)
    model = lib.Model()
    assert model.to("cpu") == ("theirs", (model, "cpu"))
    assert len(observer.seen) == 2
    assert registry.undo().ok
    assert vars(lib.Model)["to"] is theirs
    assert model.to("cpu") == ("theirs", (model, "cpu"))
    assert len(observer.seen) == 2


def test_another_tools_method_wrapper_keeps_its_binding(lib, registry, recorder):
    """If another tool's wrapt wrapper was there first, it is still given the instance it has always been given."""
    given = []

    def tool(wrapped, instance, args, kwargs):
        given.append((instance, args))
        return wrapped(*args, **kwargs)

    lib.Model.to = theirs = wrapt.FunctionWrapper(vars(lib.Model)["to"], tool)
    calls, observer, model = [], recorder(), lib.Model()
    observer.before = calls.append
    registry.apply(Target("probed_lib", "Model.to"), observer)
    assert model.to("cpu") == lib.Model.to(model, "cpu") == (model, "cpu")
    assert given == [(model, ("cpu",)), (model, ("cpu",))]
    assert [(call.instance, call.args, call.arguments()) for call in calls] == [(model, ("cpu",), {"device": "cpu"})] * 2
    assert registry.undo().ok
    assert vars(lib.Model)["to"] is theirs


def test_a_second_observer_joins_through_their_wrapper(lib, registry, recorder):
    """An observer applied after somebody wrapped us joins the wrapper inside theirs and stacks nothing."""
    one, two = recorder("one"), recorder("two")
    registry.apply(LOAD, one)
    theirs = lib.load = lib.wrapping(lib.load)
    assert registry.apply(LOAD, two).state == "patched"
    assert lib.load is theirs
    lib.load("a")
    assert len(one.seen) == len(two.seen) == 2
