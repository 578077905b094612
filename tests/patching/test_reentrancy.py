"""What falls straight through: nested calls, our own calls, retired wrappers, and everything when the switch is off."""

import threading

import pytest

from ddp_probe.traced.patching import Target, guard, switch

LOAD = Target("probed_lib", "load")
OUTER = Target("probed_lib", "outer")


def names(observer):
    """Return target names of the calls that began."""
    return [name for moment, name, _ in observer.seen if moment == "before"]


def test_calls_of_our_own_are_not_recorded(lib, registry, recorder):
    """A wrapped function that an observer itself calls, in any of its moments, is not recorded."""
    observer, other = recorder("a"), recorder("b")
    plain = observer.before
    observer.before = lambda call: (lib.outer("inside"), plain(call))
    observer.after = lambda call, result: lib.outer("inside")
    observer.raised = lambda call, exc: lib.outer("inside")
    registry.apply(LOAD, observer)
    registry.apply(OUTER, other)
    lib.load("a")
    with pytest.raises(KeyError):
        lib.load("missing")
    assert names(observer) == ["load", "load"]
    assert other.seen == []


def test_code_under_the_guard_is_our_own(lib, registry, recorder):
    """Whatever runs under the guard counts as ours, even outside an observer."""
    observer = recorder()
    registry.apply(LOAD, observer)
    assert guard.run("facts", lib.load, "a")[0] == "a"
    assert observer.seen == []


def test_nested_calls_are_recorded_by_default(lib, registry, recorder):
    """A wrapped function that calls another gives two calls, the inner one inside the outer."""
    observer = recorder()
    registry.apply_all([(LOAD, observer), (OUTER, observer)])
    lib.outer("a")
    assert [(moment, name) for moment, name, _ in observer.seen] == [("before", "outer"), ("before", "load"), ("after", "load"), ("after", "outer")]


def test_an_outermost_observer_sees_the_outer_call_only(lib, registry, recorder):
    """With outermost, nested calls of any target of the observer fall through, and the next outer call is seen again."""
    observer, other = recorder("outer", outermost=True), recorder("every")
    registry.apply_all([(LOAD, observer), (OUTER, observer), (LOAD, other)])
    lib.outer("a")
    with pytest.raises(KeyError):
        lib.outer("missing")
    lib.load("a")
    assert names(observer) == ["outer", "outer", "load"]
    assert names(other) == ["load", "load", "load"]


def test_outermost_is_per_thread(lib, registry, recorder):
    """A call in another thread is outermost there, whatever this thread has open."""
    observer, results = recorder("outer", outermost=True), []

    def spawning(path):
        thread = threading.Thread(target=lambda: results.append(lib.load(path)))
        thread.start()
        thread.join(60)

    lib.spawning = spawning
    registry.apply_all([(LOAD, observer), (Target("probed_lib", "spawning"), observer)])
    lib.spawning("a")
    assert names(observer) == ["spawning", "load"]
    assert len(results) == 1


def test_nothing_is_recorded_when_the_switch_is_off(lib, registry, recorder):
    """Off, every wrapper calls its original and nothing else; on again, it records again."""
    observer = recorder()
    patch = registry.apply(LOAD, observer)
    switch.on = False
    assert lib.load("a")[0] == "a"
    assert (observer.seen, patch.calls) == ([], 0)
    switch.on = True
    lib.load("a")
    assert names(observer) == ["load"]


def test_the_original_runs_exactly_once(lib, registry, recorder):
    """Whatever observers do, each call reaches the original once."""
    ran = []
    lib.tick = lambda: ran.append(1)
    for name in ("a", "b", "c"):
        registry.apply(Target("probed_lib", "tick"), recorder(name, outermost=name == "b"))
    lib.tick()
    assert ran == [1]


def test_a_result_cannot_be_changed(lib, registry, recorder):
    """What an observer returns is ignored."""
    observer = recorder()
    observer.before = lambda call: "other"
    observer.after = lambda call, result: "other"
    registry.apply(LOAD, observer)
    assert lib.load("a")[0] == "a"


def test_applying_while_others_call_loses_no_call(lib, recorder):
    """Threads that call during apply and undo get every result, and none of them an exception."""
    from ddp_probe.traced.patching import PatchRegistry

    registry, stop, wrong = PatchRegistry(), threading.Event(), []

    def hammer():
        while not stop.is_set():
            try:
                if lib.load("a") != ("a", "r", (), {}):
                    wrong.append("result")
            except BaseException as exc:
                wrong.append(exc)

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    for thread in threads:
        thread.start()
    original = lib.load.__code__
    for _ in range(10):
        registry.apply(LOAD, recorder())
        assert registry.undo().ok
    stop.set()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert lib.load.__code__ is original
    assert type(lib.load).__name__ == "function"
