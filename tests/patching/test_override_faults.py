"""If an override fails, or the call itself does, the job sees what it would have seen without it."""

import sys
import traceback
from pathlib import Path

import pytest
from overrides import ACT, Doing, change

import ddp_probe
from ddp_probe.traced.patching import Target, clean_exception, guard

LOAD = Target("probed_lib", "load")
PACKAGE = str(Path(ddp_probe.__file__).parent)


@pytest.mark.parametrize("moment", ["prepare", "rescue", "settled"])
def test_a_fault_of_an_override_changes_nothing(lib, registry, calls, quiet, moment):
    """An override that fails is counted, the original is called once, and its result or its exception passes; other overrides go on."""
    registry.apply(ACT, Doing("broken", tries=5, **{moment: lambda *_: 1 / 0}))
    other = Doing("other")
    registry.apply(ACT, other)
    if moment == "rescue":
        with pytest.raises(KeyError) as caught:
            lib.act("fail")
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
    else:
        assert lib.act("a") == "a"
    assert len(calls) == 1
    assert guard.counts == {"broken": 1}
    assert moment in other.begin


def test_an_override_that_keeps_failing_is_switched_off(lib, registry, calls, quiet):
    """After five faults an override is not asked any more."""
    override = Doing(prepare=lambda call: 1 / 0)
    registry.apply(ACT, override)
    for _ in range(8):
        assert lib.act("a") == "a"
    assert override.begin.count("prepare") == 5
    assert len(calls) == 8


@pytest.mark.parametrize("arguments", [{"no_such_parameter": 1}, {"device": "card"}])
def test_a_change_that_does_not_fit(lib, registry, quiet, arguments):
    """A change that the original could not be called with is a fault; the call is made as the job made it, and the change is left."""
    left = []
    registry.apply(Target("probed_lib", "outer"), Doing(prepare=lambda call: change(arguments=arguments, rollback=lambda: left.append(1))))
    assert lib.outer("a") == ("a", "r", (), {})
    assert left == [1]
    assert guard.counts == {"doing": 1}


def test_a_call_that_does_not_fit_fails_as_ever(lib, registry, quiet):
    """A call with arguments that the original does not take raises the original's own TypeError."""
    with pytest.raises(TypeError) as plain:
        lib.outer()
    registry.apply(Target("probed_lib", "outer"), Doing(prepare=lambda call: change({"path": "a"}) if call.arguments() else None))
    with pytest.raises(TypeError) as caught:
        lib.outer()
    assert str(caught.value) == str(plain.value)


def test_an_original_without_a_signature(lib, registry, quiet):
    """An argument of an original that has no signature cannot be changed by its name: a fault, and the call as the job made it."""
    lib.counted = "abcb".count  # No other module holds it, as one may hold max: each name of an original is patched.
    registry.apply(Target("probed_lib", "counted"), Doing(prepare=lambda call: change({"start": 2})))
    assert lib.counted("b") == 2
    assert guard.counts == {"doing": 1}


def test_a_fault_in_a_rollback_does_not_hide_the_failure(lib, registry, calls, quiet):
    """What fails after a failure is counted as a fault; the job gets its own exception, and the other changes are left."""
    left = []
    registry.apply(ACT, Doing("one", prepare=lambda call: change(rollback=lambda: left.append(1))))
    registry.apply(ACT, Doing("two", prepare=lambda call: change(rollback=lambda: 1 / 0)))
    with pytest.raises(KeyError) as caught:
        lib.act("fail")
    assert caught.value.__context__ is None
    assert left == [1]


def test_the_very_exception_passes(lib, registry):
    """The job's exception object arrives with nothing linked to it; without the probe's frames it reads as without a remedy."""
    mine = KeyError("mine")

    def fails():
        raise mine

    lib.fails = fails
    registry.apply(Target("probed_lib", "fails"), Doing())
    with pytest.raises(KeyError) as caught:
        lib.fails()
    assert caught.value is mine
    assert mine.__context__ is mine.__cause__ is None
    clean_exception(mine)
    names = [entry.filename for entry in traceback.extract_tb(mine.__traceback__)]
    assert not [name for name in names if name.startswith(PACKAGE)]
    assert len(names) == 2


def test_the_second_exception_is_not_linked_to_the_first(lib, registry):
    """If the call is made again and fails again, the job gets the second exception alone."""
    raised = []

    def fails():
        raised.append(KeyError(len(raised)))
        raise raised[-1]

    lib.fails = fails
    registry.apply(Target("probed_lib", "fails"), Doing(rescue=lambda call, exc: change()))
    with pytest.raises(KeyError) as caught:
        lib.fails()
    assert caught.value is raised[1]
    assert caught.value.__context__ is None


def test_the_handled_exception_is_still_seen(lib, registry):
    """Inside an except block the original sees the exception that is being handled, at the second try as at the first."""
    seen = []

    def look():
        seen.append(sys.exc_info()[1])
        if len(seen) < 2:
            raise KeyError("again")

    lib.look = look
    registry.apply(Target("probed_lib", "look"), Doing(rescue=lambda call, exc: change()))
    first = ValueError("first")
    try:
        raise first
    except ValueError:
        lib.look()
    assert seen == [first, first]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_not_rescued(lib, registry, kind):
    """An interruption passes at once; what was changed for the call is left."""
    left = []

    def fails():
        raise kind()

    lib.fails = fails
    override = Doing(prepare=lambda call: change(rollback=lambda: left.append(1)), rescue=lambda call, exc: change())
    registry.apply(Target("probed_lib", "fails"), override)
    with pytest.raises(kind):
        lib.fails()
    assert (override.begin, left) == (["prepare"], [1])


def test_an_interruption_of_an_override_is_the_jobs(lib, registry, calls, quiet):
    """Ctrl-C while an override waits ends the call as it would have ended the original."""

    def wait(call):
        raise KeyboardInterrupt

    registry.apply(ACT, Doing(prepare=wait))
    with pytest.raises(KeyboardInterrupt):
        lib.act("a")
    assert calls == []
