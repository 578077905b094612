"""Apply and undo, on every kind of attribute that can be called."""

import importlib
import os
import sys
import threading

import pytest

from ddp_probe.traced.patching import PatchRegistry, Target, overwritten_by

KINDS = [
    ("load", lambda lib: lib.load("a")),
    ("Model.to", lambda lib: lib.Model().to("cpu")),
    ("Model.build", lambda lib: lib.Model.build(2)),
    ("Model.count", lambda lib: lib.Model.count([1])),
    ("Model.Inner.deep", lambda lib: lib.Model.Inner().deep(1)),
]


def raw(lib, qualname):
    """Return the raw attribute, unbound."""
    found = vars(lib)
    for part in qualname.split("."):
        found = found[part] if isinstance(found, dict) else vars(found)[part]
    return found


@pytest.mark.parametrize(("qualname", "use"), KINDS, ids=[kind[0] for kind in KINDS])
def test_every_kind_is_seen_and_restored(lib, registry, recorder, qualname, use):
    """A function, a method, a class method, a static method and a nested method are seen once and put back as the very same object."""
    before, observer = raw(lib, qualname), recorder()
    patch = registry.apply(Target("probed_lib", qualname), observer)
    assert (patch.state, patch.why) == ("patched", "")
    result = use(lib)
    assert [moment for moment, *_ in observer.seen] == ["before", "after"]
    assert observer.seen[1][2] is result
    assert patch.calls == 1
    certificate = registry.undo()
    assert certificate.ok
    assert raw(lib, qualname) is before
    use(lib)
    assert len(observer.seen) == 2


def test_an_inherited_method_is_removed_again(lib, registry, recorder):
    """A method patched on a subclass that inherits it leaves no slot behind, and the parent is never touched."""
    observer = recorder()
    registry.apply(Target("probed_lib", "Small.to"), observer)
    lib.Model().to("cpu")
    assert observer.seen == []
    assert lib.Small().to("cpu")[1] == "cpu"
    assert len(observer.seen) == 2
    entry = registry.undo().entries[0]
    assert (entry.kind, entry.restored) == ("slot", True)
    assert "to" not in vars(lib.Small)


def test_parent_and_child_are_both_seen(lib, registry, recorder):
    """If a class and its subclass are both targets, a call on the subclass reaches both observers and the original once."""
    parent, child = recorder("parent"), recorder("child")
    registry.apply(Target("probed_lib", "Model.to"), parent)
    registry.apply(Target("probed_lib", "Small.to"), child)
    small = lib.Small()
    assert small.to("cpu") == (small, "cpu")
    assert (len(parent.seen), len(child.seen)) == (2, 2)
    original = vars(lib.Model)["to"]._self_original
    assert registry.undo().ok
    assert vars(lib.Model)["to"] is original
    assert "to" not in vars(lib.Small)


def test_arguments_are_bound_by_name_without_the_instance(lib, registry, recorder):
    """What was passed is known by parameter name, without defaults and without the instance."""
    observer = recorder()
    registry.apply(Target("probed_lib", "Model.to"), observer)
    registry.apply(Target("probed_lib", "load"), observer)
    lib.Model().to("cpu")
    lib.Model.to(lib.Model(), device="cpu", copy=True)
    lib.load("a", "b", 1, z=2)
    found = [entry[2] for entry in observer.seen if entry[0] == "before"]
    assert found == [{"device": "cpu"}, {"device": "cpu", "copy": True}, {"path": "a", "mode": "b", "rest": (1,), "options": {"z": 2}}]


def test_the_call_knows_instance_and_defaults(lib, registry, recorder):
    """An observer is given the instance, or the class for a class method, and can ask for the defaults."""
    calls = []
    observer = recorder()
    observer.before = calls.append
    registry.apply(Target("probed_lib", "Model.to"), observer)
    registry.apply(Target("probed_lib", "Model.build"), observer)
    model = lib.Model()
    model.to("cpu")
    lib.Small.build()
    assert calls[0].instance is model
    assert calls[0].args == ("cpu",)
    assert calls[0].defaults() == {"copy": False}
    assert calls[1].instance is lib.Small
    assert calls[1].args == ()


def test_a_call_that_does_not_fit_raises_what_it_always_raised(lib, registry, recorder):
    """Wrong arguments give empty names to the observer, and the original's own TypeError to the job."""
    observer = recorder()
    registry.apply(Target("probed_lib", "load"), observer)
    with pytest.raises(TypeError, match="load"):
        lib.load()
    assert observer.seen[0] == ("before", "load", {})
    assert observer.seen[1][0] == "raised"


def test_an_observer_cannot_change_what_is_passed(lib, registry, recorder):
    """Keyword arguments that an observer writes into do not reach the original."""
    observer = recorder()
    observer.before = lambda call: call.kwargs.update(mode="w", extra=1)
    registry.apply(Target("probed_lib", "load"), observer)
    assert lib.load("a") == ("a", "r", (), {})
    assert lib.load("a", mode="b") == ("a", "b", (), {})


@pytest.mark.parametrize(
    ("module", "qualname", "why"),
    [
        ("probed_absent", "load", "probed_absent is not imported."),
        ("probed_lib", "absent", "probed_lib has no attribute absent."),
        ("probed_lib", "Absent.to", "probed_lib has no attribute Absent."),
        ("probed_lib", "Model.absent", "probed_lib.Model has no attribute absent."),
        ("probed_lib", "load.absent", "probed_lib.load is not a class."),
        ("probed_lib", "Model", "probed_lib.Model is not a function but the class probed_lib.Model."),
        ("probed_lib", "CONSTANT", "probed_lib.CONSTANT is not a function but an object of type int."),
        ("builtins", "dict.get", "builtins.dict.get cannot be patched: TypeError."),
    ],
)
def test_what_cannot_be_patched_says_why(lib, registry, recorder, module, qualname, why):
    """A target that is not there, or cannot be wrapped, is skipped with a sentence and never raises."""
    patch = registry.apply(Target(module, qualname), recorder())
    assert (patch.state, patch.why) == ("skipped", why)
    assert registry.undo().entries == []


def test_applying_twice_stacks_nothing(lib, registry, recorder):
    """The same observer on the same target gives the same patch, and one call is seen once."""
    observer = recorder()
    first = registry.apply(Target("probed_lib", "load"), observer)
    assert registry.apply(Target("probed_lib", "load"), observer) is first
    assert registry.apply(Target("probed_lib", "read"), observer) is first
    lib.load("a")
    assert len(observer.seen) == 2
    assert registry.patches() == [first]


def test_two_observers_share_one_wrapper(lib, registry, recorder):
    """A second observer joins the wrapper that is there, and both see a call in order of application."""
    order = []
    one, two = recorder("one"), recorder("two")
    one.before = lambda call: order.append("one")
    two.before = lambda call: order.append("two")
    registry.apply(Target("probed_lib", "load"), one)
    wrapper = lib.load
    registry.apply(Target("probed_lib", "load"), two)
    assert lib.load is wrapper
    lib.load("a")
    assert order == ["one", "two"]


def test_any_number_of_cycles_stacks_nothing(lib, recorder):
    """Applying and undoing over and over leaves the same original, and each round sees a call once."""
    registry, original = PatchRegistry(), lib.load
    for _ in range(5):
        observer = recorder()
        registry.apply(Target("probed_lib", "load"), observer)
        lib.load("a")
        assert len(observer.seen) == 2
        assert lib.load._self_original is original
        assert registry.undo().ok
        assert lib.load is original
        assert registry.undo().entries == []


def test_a_reloaded_module_is_patched_anew(lib, registry, recorder):
    """After importlib.reload the fresh function is patched, and undo leaves the fresh function."""
    observer = recorder()
    registry.apply(Target("probed_lib", "load"), observer)
    importlib.reload(lib)
    fresh = lib.load
    patch = registry.apply(Target("probed_lib", "load"), observer)
    assert patch.state == "patched"
    assert lib.load._self_original is fresh
    lib.load("a")
    assert len(observer.seen) == 2
    assert registry.undo().ok
    assert lib.load is fresh
    assert lib.read is fresh


def test_somebody_who_overwrites_is_named_and_left_alone(lib, registry, recorder):
    """A slot that holds something else by now is reported, with who put it there, and stays theirs."""
    patch = registry.apply(Target("probed_lib", "outer"), recorder())
    assert overwritten_by(patch) is None
    lib.outer = lib.nothing
    assert overwritten_by(patch) == "the function probed_lib.nothing"
    certificate = registry.undo()
    assert [(e.slot, e.kind, e.restored) for e in certificate.entries] == [("probed_lib.outer", "overwritten", False)]
    assert certificate.ok
    assert lib.outer is lib.nothing


def test_two_ledgers_do_not_stack(lib, registry, recorder):
    """A slot that another registry has patched is skipped, and says so."""
    registry.apply(Target("probed_lib", "load"), recorder())
    patch = PatchRegistry().apply(Target("probed_lib", "load"), recorder())
    assert (patch.state, patch.why) == ("skipped", "probed_lib.load is patched by another registry.")


def test_a_call_in_flight_finishes_as_it_began(lib, recorder):
    """A call that is running while everything is undone returns its result, and its observer sees the end."""
    registry, entered, go, results = PatchRegistry(), threading.Event(), threading.Event(), []

    def slow():
        entered.set()
        assert go.wait(60)
        return 7

    lib.slow = slow
    observer = recorder()
    registry.apply(Target("probed_lib", "slow"), observer)
    thread = threading.Thread(target=lambda: results.append(lib.slow()))
    thread.start()
    assert entered.wait(60)
    assert registry.undo().ok
    go.set()
    thread.join(60)
    assert results == [7]
    assert [moment for moment, *_ in observer.seen] == ["before", "after"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Needs fork.")
def test_a_fork_while_another_thread_applies_does_not_hang(lib, registry, recorder):
    """A forked child has a lock of its own, also when a thread of the parent holds the registry's at that moment."""
    from ddp_probe.traced.patching import registry as module

    held, done = threading.Event(), threading.Event()

    def hold():
        with module._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    pid = os.fork()
    if pid == 0:
        import signal

        signal.alarm(10)
        os._exit(0 if PatchRegistry().apply(Target("probed_lib", "load"), recorder()).state == "patched" else 1)
    done.set()
    thread.join(60)
    assert os.waitpid(pid, 0)[1] == 0


def test_the_certificate_is_plain_data(lib, registry, recorder):
    """A certificate can be written as JSON, and reads as one line for each entry."""
    import json

    registry.apply(Target("probed_lib", "outer"), recorder())
    certificate = registry.undo()
    assert json.loads(json.dumps(certificate.as_dict())) == {
        "ok": True,
        "entries": [
            {"target": "probed_lib.outer", "slot": "probed_lib.outer", "kind": "attribute", "restored": True, "why": "The original is back."},
        ],
    }
    assert certificate.lines() == ["probed_lib.outer: attribute: The original is back."]


def test_a_metaclass_is_not_asked(lib, registry, recorder):
    """A class whose metaclass refuses attribute access is patched and restored all the same."""

    class Meta(type):
        def __setattr__(cls, name, value):
            raise RuntimeError("no")

        def __getattribute__(cls, name):
            raise RuntimeError("no")

    def to(self):
        return 1

    strict = Meta("Strict", (), {"to": to})
    lib.Strict = strict
    observer = recorder()
    assert registry.apply(Target("probed_lib", "Strict.to"), observer).state == "patched"
    assert strict().to() == 1
    assert len(observer.seen) == 2
    assert registry.undo().ok
    assert vars(type)["__dict__"].__get__(strict)["to"] is to


def test_a_vanished_module_is_no_fault(lib, registry, recorder):
    """Undoing works when the patched module has been removed from sys.modules meanwhile."""
    original = lib.outer
    registry.apply(Target("probed_lib", "outer"), recorder())
    del sys.modules["probed_lib"]
    assert registry.undo().ok
    assert lib.outer is original
