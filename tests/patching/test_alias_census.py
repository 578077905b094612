"""Other names of an original: replaced if activation comes late, and all put back."""

import functools
import importlib.util
import sys
import types

import pytest

from ddp_probe.traced.patching import Target

LOAD = Target("probed_lib", "load")


def kinds(certificate):
    """Return kind by slot."""
    return {entry.slot: entry.kind for entry in certificate.entries}


def test_names_imported_earlier_are_replaced(lib, user, registry, recorder):
    """Applying late replaces the name in every module that imported it, and says which."""
    original, observer = lib.load, recorder()
    patch = registry.apply(LOAD, observer)
    assert sorted(patch.aliases) == ["probed_lib.read", "probed_user.load"]
    user.go()
    assert len(observer.seen) == 2
    certificate = registry.undo()
    assert certificate.ok
    assert lib.load is lib.read is user.load is original


def test_names_made_after_the_patch_are_put_back(lib, registry, recorder):
    """A module that imported the wrapper gets the original back, even if it kept a bound method."""
    registry.apply(LOAD, recorder())
    registry.apply(Target("probed_lib", "Model.to"), recorder())
    model = lib.Model()
    late = types.ModuleType("probed_late")
    late.load, late.unbound, late.bound = lib.load, lib.Model.to, model.to
    sys.modules["probed_late"] = late
    try:
        certificate = registry.undo()
    finally:
        del sys.modules["probed_late"]
    assert late.load is lib.load
    assert late.unbound is lib.Model.to
    assert type(late.unbound) is types.FunctionType
    assert late.bound == model.to
    assert late.bound.__func__ is lib.Model.to
    assert {"probed_late.load", "probed_late.unbound", "probed_late.bound"} <= set(kinds(certificate))
    assert certificate.ok


def test_many_targets_take_one_look(lib, user, registry, recorder):
    """Several targets applied together have their aliases replaced just the same."""
    lib.also = lib.outer
    patches = registry.apply_all([(LOAD, recorder()), (Target("probed_lib", "outer"), recorder()), (Target("probed_lib", "Model.to"), recorder())])
    assert [sorted(patch.aliases) for patch in patches] == [["probed_lib.read", "probed_user.load"], ["probed_lib.also"], []]


def test_strange_modules_are_not_touched(lib, registry, recorder, tmp_path, monkeypatch):
    """Lazy modules, modules with a failing __getattr__, None and arbitrary objects in sys.modules are passed by unharmed."""

    class Odd:
        def __getattribute__(self, name):
            raise RuntimeError("touched")

    class Module(types.ModuleType):
        def __getattribute__(self, name):
            raise RuntimeError("touched")

    (tmp_path / "probed_lazy.py").write_text("raise RuntimeError('loaded')\n")
    spec = importlib.util.find_spec("probed_lazy")
    lazy = importlib.util.module_from_spec(spec)
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    loader.exec_module(lazy)
    strange = {"probed_none": None, "probed_odd": Odd(), "probed_odd_module": Module("odd"), "probed_lazy": lazy, "probed_number": 7}
    for name, module in strange.items():
        monkeypatch.setitem(sys.modules, name, module)
    patch = registry.apply(LOAD, recorder())
    assert patch.state == "patched"
    assert registry.apply(Target("probed_odd", "load"), recorder()).why == "probed_odd is not a module."
    assert registry.undo().ok


def test_an_alias_that_was_overwritten_is_reported(lib, user, registry, recorder):
    """An alias that somebody has replaced since stays theirs, and the certificate names it."""
    registry.apply(LOAD, recorder())
    user.load = lib.nothing
    certificate = registry.undo()
    assert kinds(certificate)["probed_user.load"] == "overwritten"
    assert user.load is lib.nothing
    assert certificate.ok


def test_an_inherited_original_keeps_its_names(lib, registry, recorder):
    """Patching a method on the subclass leaves aliases of the parent's function alone."""
    lib.alias = lib.Model.to
    patch = registry.apply(Target("probed_lib", "Small.to"), recorder())
    assert patch.aliases == []
    assert lib.alias is lib.Model.to


class Holder:
    """Keeps something in an attribute; its repr must not be asked."""

    def __repr__(self):
        raise RuntimeError("repr was called")


def test_unreachable_holders_are_named_and_fall_through(lib, registry, recorder):
    """A partial, a list, a default and an attribute keep a retired wrapper, are listed, and every call through them is counted."""
    original, observer = lib.load, recorder()
    patch = registry.apply(LOAD, observer)
    holder = Holder()
    holder.attribute = lib.load
    kept = [functools.partial(lib.load, "a"), [lib.load], {"x": lib.load}, holder, lambda f=lib.load: f("a")]
    certificate = registry.undo()
    places = [entry.slot for entry in certificate.entries if entry.kind == "unreachable"]
    assert certificate.ok
    assert lib.load is original
    assert any("partial" in place for place in places)
    assert any(place.startswith("a list") for place in places)
    assert any("dict" in place for place in places)
    assert any(place.endswith("Holder") for place in places)
    assert any("a tuple in the function" in place for place in places)
    assert all(not entry.restored for entry in certificate.entries if entry.kind == "unreachable")
    assert kept[0]()[0] == kept[1][0]("a")[0] == holder.attribute("a")[0] == "a"
    assert (observer.seen, patch.calls, patch.stale_calls) == ([], 0, 3)


def test_a_closure_that_wraps_nothing_is_named(lib, registry, recorder):
    """A closure that only uses the wrapper is listed with the function that owns it."""
    registry.apply(LOAD, recorder())

    def make(load):
        return lambda: load("a")

    use = make(lib.load)
    places = [entry.slot for entry in registry.undo().entries if entry.kind == "unreachable"]
    assert any(place.startswith("a closure in the function") and "make" in place for place in places)
    assert use()[0] == "a"


def test_a_stale_wrapper_put_back_is_peeled(lib, registry, recorder):
    """A retired wrapper that comes back to its slot is not wrapped again, and undo gives the true original."""
    original = lib.load
    registry.apply(LOAD, recorder())
    kept = [lib.load]
    registry.undo()
    lib.load = kept[0]
    observer = recorder()
    registry.apply(LOAD, observer)
    assert lib.load._self_original is original
    lib.load("a")
    assert len(observer.seen) == 2
    registry.undo()
    assert lib.load is original


@pytest.mark.parametrize("round_", range(2))
def test_nothing_is_left_after_a_plain_cycle(lib, registry, recorder, round_):
    """If nobody keeps the wrapper, the certificate lists slots only."""
    registry.apply(Target("probed_lib", "Model.to"), recorder())
    registry.apply(Target("probed_lib", "Model.build"), recorder())
    lib.Model().to("cpu")
    assert {entry.kind for entry in registry.undo().entries} == {"attribute"}
