"""The job's exceptions pass through us as if we were not there."""

import contextlib
import ctypes  # as torch does: up to Python 3.10 our frames leave a traceback by way of it
import io
import logging
import signal
import sys
import traceback
from pathlib import Path

import pytest

import ddp_probe
from ddp_probe.traced.patching import Observer, Target, clean_exception, clean_traceback, is_our_frame

LOAD = Target("probed_lib", "load")
PACKAGE = str(Path(ddp_probe.__file__).parent)


def frames(tb):
    """Return the file of each frame."""
    return [entry.filename for entry in traceback.extract_tb(tb)]


def ours(exc):
    """Return how many frames of the traceback are in the package."""
    return sum(name.startswith(PACKAGE) for name in frames(exc.__traceback__))


@pytest.fixture
def quiet(monkeypatch):
    """Faults of the probe are held back, as in a real run."""
    monkeypatch.delenv("DDP_PROBE_STRICT", raising=False)


def test_the_very_exception_passes(lib, registry, recorder):
    """The job's exception object arrives untouched, with no frame of ours in its traceback."""
    observer, mine = recorder(), KeyError("mine")

    def fails():
        raise mine

    lib.fails = fails
    registry.apply(Target("probed_lib", "fails"), observer)
    with pytest.raises(KeyError) as caught:
        lib.fails()
    assert caught.value is mine is observer.seen[1][2]
    assert ours(mine) == 0
    assert mine.__context__ is None
    assert mine.__cause__ is None
    assert not mine.__suppress_context__


def test_nested_wrapped_calls_leave_no_frame(lib, registry, recorder):
    """Two nested wrapped calls, one of them a method with two observers, leave no frame of ours behind."""
    registry.apply_all([(LOAD, recorder("a")), (LOAD, recorder("b")), (Target("probed_lib", "outer"), recorder("a"))])
    with pytest.raises(KeyError) as caught:
        lib.outer("missing")
    assert ours(caught.value) == 0


def test_a_fault_of_ours_is_no_context(lib, registry, recorder, quiet):
    """An exception swallowed before the call does not become the context of the job's own."""
    observer = recorder()
    observer.before = lambda call: 1 / 0
    registry.apply(LOAD, observer)
    with pytest.raises(KeyError) as caught:
        lib.load("missing")
    assert caught.value.__context__ is None


def test_an_observer_that_mishandles_the_exception_leaves_no_trace(lib, registry, recorder, quiet):
    """An observer that raises the job's exception again, or chains to it, changes neither its traceback nor its links."""

    def raised(call, exc):
        exc.__cause__ = ValueError("ours")
        raise exc

    observer = recorder()
    observer.raised = raised
    registry.apply(LOAD, observer)
    with pytest.raises(KeyError) as caught:
        lib.load("missing")
    assert ours(caught.value) == 0
    assert len(frames(caught.value.__traceback__)) == 2
    assert caught.value.__cause__ is None
    assert not caught.value.__suppress_context__


def test_the_handled_exception_is_still_seen(lib, registry, recorder, quiet):
    """Inside an except block the original sees the exception that is being handled, and links to it as always."""
    seen = []

    def look(fail=False):
        seen.append(sys.exc_info()[1])
        if fail:
            raise KeyError("second")

    lib.look = look
    observer = recorder()
    observer.before = lambda call: 1 / 0
    registry.apply(Target("probed_lib", "look"), observer)
    lib.look()
    first = ValueError("first")

    def look_while_handling():
        try:
            raise first
        except ValueError:
            lib.look()
            lib.look(fail=True)

    with pytest.raises(KeyError) as caught:
        look_while_handling()
    assert seen == [None, first, first]
    assert caught.value.__context__ is first
    assert first.__context__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, RecursionError])
def test_every_kind_of_exception_passes(lib, registry, recorder, kind):
    """What is no Exception, or means something to the interpreter, passes like any other."""

    def fails():
        raise kind()

    lib.fails = fails
    observer = recorder()
    registry.apply(Target("probed_lib", "fails"), observer)
    with pytest.raises(kind):
        lib.fails()
    assert observer.seen[1][0] == "raised"


def test_an_exception_that_refuses_attributes_passes(lib, registry, recorder, quiet):
    """An exception class whose __setattr__ raises is passed on as it is."""

    class FrozenError(Exception):
        def __setattr__(self, name, value):
            raise TypeError("frozen")

    def fails():
        raise FrozenError("mine")

    def raised(call, exc):
        raise exc

    lib.fails = fails
    observer = recorder()
    observer.raised = raised
    registry.apply(Target("probed_lib", "fails"), observer)
    with pytest.raises(FrozenError, match="mine") as caught:
        lib.fails()
    assert ours(caught.value) == 0


def test_deep_recursion_ends_as_it_would(lib, registry, recorder, quiet):
    """A wrapped function that recurses for ever raises RecursionError, and is observed again afterwards."""

    def forever():
        return lib.forever()

    lib.forever = forever
    observer = recorder()
    registry.apply(Target("probed_lib", "forever"), observer)
    with pytest.raises(RecursionError):
        lib.forever()
    observer.seen.clear()
    registry.apply(LOAD, observer)
    lib.load("a")
    assert [moment for moment, *_ in observer.seen] == ["before", "after"]


@pytest.fixture
def unshed(monkeypatch):
    """The wrapper's frames stay in tracebacks, as up to Python 3.10 in a process without ctypes."""
    monkeypatch.setattr("ddp_probe.traced.patching._importlib_bootstrap_frame.shed", lambda exc: None)


def test_a_cleaned_traceback_has_none_of_our_frames(lib, registry, recorder, unshed):
    """Cleaning an exception unlinks our frames from it, its cause and its context, and keeps all others in order."""
    registry.apply_all([(LOAD, recorder()), (Target("probed_lib", "outer"), recorder())])

    def fails():
        try:
            lib.outer("missing")
        except KeyError as exc:
            raise ValueError("second") from exc

    with pytest.raises(ValueError, match="second") as caught:
        fails()
    exc = caught.value
    clean_exception(exc)
    assert ours(exc) == ours(exc.__cause__) == 0
    assert [entry.name for entry in traceback.extract_tb(exc.__cause__.__traceback__)] == ["fails", "outer", "load"]


def test_cleaning_tolerates_cycles_and_emptiness():
    """Exceptions that name each other as context, and an exception without a traceback, are cleaned without end or fault."""
    one, two = ValueError(), KeyError()
    one.__context__, two.__cause__ = two, one
    clean_exception(one)
    clean_exception(None)
    assert clean_traceback(None) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Exception groups are in Python 3.11 and later.")
def test_members_of_a_group_are_cleaned(lib, registry, recorder, unshed):
    """The exceptions inside an exception group lose our frames as well."""
    registry.apply(LOAD, recorder())
    with pytest.raises(KeyError) as caught:
        lib.load("missing")
    group = eval("ExceptionGroup('both', [inner])", {"inner": caught.value})
    clean_exception(group)
    assert ours(caught.value) == 0


def test_a_fault_of_ours_keeps_its_traceback(lib, registry, recorder, monkeypatch):
    """A traceback that ends in our own code is left whole: it is what a person needs in order to fix it."""
    monkeypatch.setenv("DDP_PROBE_STRICT", "1")
    from ddp_probe.traced.patching import guard

    with pytest.raises(TypeError) as caught:
        guard.run("broken", None)
    before = len(frames(caught.value.__traceback__))
    clean_exception(caught.value)
    assert len(frames(caught.value.__traceback__)) == before
    assert ours(caught.value) > 0


def test_our_frames_are_recognised(lib, registry, recorder):
    """The frame around an original is ours; the frames of the job and of the tests are not."""
    codes = []
    lib.look = lambda: codes.extend((sys._getframe(0).f_code, sys._getframe(1).f_code, sys._getframe(2).f_code))
    registry.apply(Target("probed_lib", "look"), recorder())
    lib.look()
    assert [is_our_frame(code) for code in codes] == [False, True, False]


def _in_a_generator(lib):
    def lazily():
        yield lib.load("missing")

    next(lazily())


def _in_a_handler(lib):
    try:
        raise ValueError("handled")
    except ValueError:
        lib.load("missing")


_HOW = {"plainly": lambda lib: lib.load("missing"), "in a generator": _in_a_generator, "in a handler": _in_a_handler}


def _caught(lib, how):
    """Return what the job prints of the exception in its own except clause, and the frames that sys.exc_info has."""
    stream = io.StringIO()
    log = logging.getLogger("job")
    log.handlers, log.propagate = [logging.StreamHandler(stream)], False
    try:
        _HOW[how](lib)
    except KeyError:
        traceback.print_exc(file=stream)
        log.exception("failed")
        seen = frames(sys.exc_info()[2])
    return [line for line in stream.getvalue().splitlines() if "^" not in line], seen


@pytest.mark.parametrize("how", _HOW)
def test_what_the_job_prints_itself_has_no_frame_of_ours(lib, registry, recorder, how):
    """print_exc and logging.exception in the job's own except clause print the same lines as without the probe."""
    plain = _caught(lib, how)
    registry.apply(LOAD, recorder())
    assert _caught(lib, how) == plain
    assert sys.exc_info() == (None, None, None)


def test_a_call_that_nobody_watches_leaves_no_frame(lib, registry, recorder):
    """A wrapper that somebody still holds after everything was put back is not in a traceback either."""
    registry.apply(LOAD, recorder())
    held = lib.load
    registry.undo()
    with pytest.raises(KeyError) as caught:
        held("missing")
    assert ours(caught.value) == 0


def test_ctrl_c_in_a_wrapped_call_shows_no_frame_of_ours(lib, registry, recorder):
    """An interrupt that arrives while the original runs is told by the job's frames alone."""

    def hangs():
        signal.raise_signal(signal.SIGINT)

    lib.hangs = hangs
    registry.apply(Target("probed_lib", "hangs"), recorder())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            lib.hangs()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ours(caught.value) == 0


def test_a_failing_call_leaks_nothing(lib, registry, recorder):
    """A thousand failures that pass a wrapper hold no reference to the exception or to its class."""

    class MineError(Exception):
        pass

    mine = MineError()

    def fails():
        raise mine

    lib.fails = fails
    registry.apply(Target("probed_lib", "fails"), Observer())
    held = []
    for _ in range(3):
        for _ in range(500):
            with contextlib.suppress(MineError):
                lib.fails()
        mine.__traceback__ = None
        held.append((sys.getrefcount(mine), sys.getrefcount(MineError)))
    assert held[0] == held[1] == held[2]
    assert ctypes is sys.modules["ctypes"]
