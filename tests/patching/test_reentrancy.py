"""What falls straight through: nested calls, our own calls, retired wrappers, and everything when the switch is off."""

import threading

import pytest

from ddp_probe.patching import Target, guard, switch

LOAD = Target("probed_lib", "load")
OUTER = Target("probed_lib", "outer")


def names(watch):
    """Return target names of the calls that began."""
    return [name for moment, name, _ in watch.seen if moment == "before"]


def test_calls_of_our_own_are_not_recorded(lib, ledger, recorder):
    """A wrapped function that a watch itself calls, in any of its moments, is not recorded."""
    watch, other = recorder("a"), recorder("b")
    plain = watch.before
    watch.before = lambda call: (lib.outer("inside"), plain(call))
    watch.after = lambda call, result: lib.outer("inside")
    watch.error = lambda call, exc: lib.outer("inside")
    ledger.apply(LOAD, watch)
    ledger.apply(OUTER, other)
    lib.load("a")
    with pytest.raises(KeyError):
        lib.load("missing")
    assert names(watch) == ["load", "load"]
    assert other.seen == []


def test_code_under_the_guard_is_our_own(lib, ledger, recorder):
    """Whatever runs under the guard counts as ours, also outside a watch."""
    watch = recorder()
    ledger.apply(LOAD, watch)
    assert guard.run("facts", lib.load, "a")[0] == "a"
    assert watch.seen == []


def test_nested_calls_are_recorded_by_default(lib, ledger, recorder):
    """A wrapped function that calls another gives two calls, the inner one inside the outer."""
    watch = recorder()
    ledger.apply_all([(LOAD, watch), (OUTER, watch)])
    lib.outer("a")
    assert [(moment, name) for moment, name, _ in watch.seen] == [("before", "outer"), ("before", "load"), ("after", "load"), ("after", "outer")]


def test_an_outermost_watch_sees_the_outer_call_only(lib, ledger, recorder):
    """With outermost, nested calls of any target of the watch fall through, and the next outer call is seen again."""
    watch, other = recorder("outer", outermost=True), recorder("every")
    ledger.apply_all([(LOAD, watch), (OUTER, watch), (LOAD, other)])
    lib.outer("a")
    with pytest.raises(KeyError):
        lib.outer("missing")
    lib.load("a")
    assert names(watch) == ["outer", "outer", "load"]
    assert names(other) == ["load", "load", "load"]


def test_outermost_is_per_thread(lib, ledger, recorder):
    """A call in another thread is outermost there, whatever this thread has open."""
    watch, results = recorder("outer", outermost=True), []

    def spawning(path):
        thread = threading.Thread(target=lambda: results.append(lib.load(path)))
        thread.start()
        thread.join(10)

    lib.spawning = spawning
    ledger.apply_all([(LOAD, watch), (Target("probed_lib", "spawning"), watch)])
    lib.spawning("a")
    assert names(watch) == ["spawning", "load"]
    assert len(results) == 1


def test_nothing_is_recorded_when_the_switch_is_off(lib, ledger, recorder):
    """Off, every wrapper calls its original and nothing else; on again, it records again."""
    watch = recorder()
    patch = ledger.apply(LOAD, watch)
    switch.on = False
    assert lib.load("a")[0] == "a"
    assert (watch.seen, patch.calls) == ([], 0)
    switch.on = True
    lib.load("a")
    assert names(watch) == ["load"]


def test_the_original_runs_exactly_once(lib, ledger, recorder):
    """Whatever watches do, each call reaches the original once."""
    ran = []
    lib.tick = lambda: ran.append(1)
    for name in ("a", "b", "c"):
        ledger.apply(Target("probed_lib", "tick"), recorder(name, outermost=name == "b"))
    lib.tick()
    assert ran == [1]


def test_a_result_cannot_be_changed(lib, ledger, recorder):
    """What a watch returns is not looked at."""
    watch = recorder()
    watch.before = lambda call: "other"
    watch.after = lambda call, result: "other"
    ledger.apply(LOAD, watch)
    assert lib.load("a")[0] == "a"


def test_applying_while_others_call_loses_no_call(lib, recorder):
    """Threads that call during apply and undo get every result, and none of them an exception."""
    from ddp_probe.patching import Ledger

    ledger, stop, wrong = Ledger(), threading.Event(), []

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
        ledger.apply(LOAD, recorder())
        assert ledger.undo().ok
    stop.set()
    for thread in threads:
        thread.join(10)
    assert wrong == []
    assert lib.load.__code__ is original
    assert type(lib.load).__name__ == "function"
