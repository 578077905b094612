"""The guard: a fault of ours is counted and told, and does not reach the job."""

import ctypes
import signal
import threading

import pytest

from ddp_probe.traced.patching import Guard, Target, guard


@pytest.fixture
def quiet(monkeypatch):
    """Faults of the probe are held back, as in a real run."""
    monkeypatch.delenv("DDP_PROBE_STRICT", raising=False)


def fails():
    """Fail."""
    raise ValueError("ours")


def test_results_pass_and_faults_become_none(quiet):
    """The guard hands on what the function returns, and None if it raised."""
    made = Guard()
    assert made.run("a", max, 1, 2) == 2
    assert made.run("a", fails) is None
    assert made.counts == {"a": 1}


def test_each_fault_is_told_once(quiet):
    """The reporter is given name, exception and count for every fault."""
    made, told = Guard(), []
    made.on_fault = lambda name, exc, count: told.append((name, str(exc), count))
    made.run("a", fails)
    made.run("b", fails)
    made.run("a", fails)
    assert told == [("a", "ours", 1), ("b", "ours", 1), ("a", "ours", 2)]


def test_a_reporter_that_fails_is_not_told_about_itself(quiet):
    """A reporter that raises, or runs into the guard again, stops nothing and is called once a fault."""
    made, calls = Guard(), []

    def report(name, exc, count):
        calls.append(name)
        made.run("reporter", fails)
        raise RuntimeError("reporter")

    made.on_fault = report
    assert made.run("a", fails) is None
    assert calls == ["a"]
    assert made.counts == {"a": 1, "reporter": 1}


def test_five_faults_switch_a_name_off(quiet):
    """After five faults a name is not run any more; other names are."""
    made, ran = Guard(), []

    def count_and_fail():
        ran.append(1)
        raise ValueError

    for _ in range(9):
        assert not made.off("a") or len(ran) == 5
        made.run("a", count_and_fail)
    assert len(ran) == 5
    assert made.off("a")
    assert not made.off("b")
    assert made.run("b", max, 1, 2) == 2


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_passes(quiet, kind):
    """An interrupt or an exit that arrives inside our code belongs to the job."""

    def leaves():
        raise kind

    with pytest.raises(kind):
        guard.run("a", leaves)
    assert guard.counts == {}
    assert guard.run("a", max, 1, 2) == 2


def test_strict_raises_after_telling(monkeypatch):
    """With DDP_PROBE_STRICT=1 a fault is counted, told, and raised."""
    monkeypatch.setenv("DDP_PROBE_STRICT", "1")
    made, told = Guard(), []
    made.on_fault = lambda *args: told.append(args[0])
    with pytest.raises(ValueError, match="ours"):
        made.run("a", fails)
    assert told == ["a"]
    assert made.counts == {"a": 1}


def test_a_failing_observer_costs_the_job_nothing(lib, registry, recorder, quiet):
    """An observer that fails before every call leaves results alone, is switched off, and then is not asked any more."""
    observer, asked = recorder("failing"), []

    def before(call):
        asked.append(1)
        raise ValueError

    observer.before = before
    registry.apply(Target("probed_lib", "load"), observer)
    for _ in range(9):
        assert lib.load("a") == ("a", "r", (), {})
    assert len(asked) == 5
    assert guard.off("failing")
    assert observer.seen == []


def test_a_failing_observer_does_not_silence_another(lib, registry, recorder, quiet):
    """If one of two observers on a target fails, the other sees the whole call."""
    bad, good = recorder("bad"), recorder("good")
    bad.before = lambda call: 1 / 0
    registry.apply(Target("probed_lib", "load"), bad)
    registry.apply(Target("probed_lib", "load"), good)
    lib.load("a")
    assert [moment for moment, *_ in good.seen] == ["before", "after"]
    assert bad.seen == []


@pytest.mark.parametrize("moment", ["before", "after", "raised"])
def test_an_interrupt_inside_an_observer_reaches_the_job(lib, registry, recorder, quiet, moment):
    """A KeyboardInterrupt that lands in our code is raised, and the thread is observed again afterwards."""

    def interrupt(*args):
        raise KeyboardInterrupt

    observer = recorder("w", outermost=True)
    setattr(observer, moment, interrupt)
    registry.apply(Target("probed_lib", "load"), observer)
    with pytest.raises(KeyboardInterrupt):
        lib.load("missing" if moment == "raised" else "a")
    delattr(observer, moment)
    observer.seen.clear()
    lib.load("a")
    assert [seen for seen, *_ in observer.seen] == ["before", "after"]


def test_a_recursion_of_our_own_is_a_fault(quiet):
    """An observer that recurses for ever on a shallow stack is held back and counted like any other fault."""

    def forever():
        return forever()

    assert guard.run("a", forever) is None
    assert guard.counts == {"a": 1}


def test_a_stack_that_the_job_filled_is_no_fault(lib, registry, recorder, quiet):
    """A job that recurses to the limit through a wrapped function does not get the observer switched off."""

    def forever():
        return lib.forever()

    lib.forever = forever
    registry.apply(Target("probed_lib", "forever"), recorder("w"))
    for _ in range(3):
        with pytest.raises(RecursionError):
            lib.forever()
    assert guard.counts == {}


class StoppedError(Exception):
    """What the job raises while our code runs."""


def _in_our_file(source, **names):
    """Return the function of this source, compiled as if it stood in the guard's own file."""
    exec(compile(source, Guard.attempt.__code__.co_filename, "exec"), names)
    return names["busy"]


def test_what_a_handler_raises_is_the_jobs(quiet):
    """A signal handler that raises inside our code, even below an except of ours, is not held back and is no fault."""

    def handler(number, frame):
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        raise OSError("the job's own")

    from ddp_probe.shared.ours import ours

    source = "def busy():\n  try:\n    send()\n  except ours(OSError):\n    return 'lost'\n"
    busy = _in_our_file(source, ours=ours, send=lambda: signal.raise_signal(signal.SIGUSR1))
    signal.signal(signal.SIGUSR1, handler)
    with pytest.raises(OSError, match="the job's own"):
        guard.run("a", busy)
    assert guard.counts == {}


def test_what_another_thread_throws_in_is_the_jobs(quiet):
    """A class of the job's that PyThreadState_SetAsyncExc puts into the middle of our code is raised in the job."""
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    here = ctypes.c_ulong(threading.get_ident())
    source = "def busy():\n  throw(here, kind)\n  for _ in range(100): len(())\n"
    busy = _in_our_file(source, throw=throw, here=here, kind=ctypes.py_object(StoppedError))
    with pytest.raises(StoppedError):
        guard.run("a", busy)
    assert guard.counts == {}
