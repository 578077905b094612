"""An override may change a call before it, in its place and after it has failed; if the override fails, the call goes on as the job made it."""

import sys
import traceback
import warnings
from pathlib import Path

import pytest
from overrides import ACT, Doing, answer, change

import ddp_probe
from ddp_probe.traced.patching import Change, Override, Target, guard

LOAD = Target("probed_lib", "load")
PACKAGE = str(Path(ddp_probe.__file__).parent)


@pytest.mark.parametrize(
    ("args", "kwargs", "seen"),
    [
        (("a",), {}, ("a", 9, (), True, {"more": 1})),
        (("a", 2), {}, ("a", 9, (), True, {"more": 1})),
        (("a", 2, "b", "c"), {"flag": False}, ("a", 9, ("b", "c"), True, {"more": 1})),
        ((), {"times": 2, "what": "a", "more": 0, "other": 3}, ("a", 9, (), True, {"more": 1, "other": 3})),
    ],
)
def test_arguments_change_where_they_were_passed(lib, registry, calls, args, kwargs, seen):
    """An argument is changed by its name, be it passed by place, by name, as a further keyword or not at all; the others stay."""
    registry.apply(ACT, Doing(prepare=lambda call: change({"times": 9, "flag": True, "more": 1})))
    assert lib.act(*args, **kwargs) == "a"
    assert calls == [seen]


def test_a_method_keeps_its_instance(lib, registry):
    """A method's argument is changed on the very instance, on a bound method kept from before, and through the class."""
    registry.apply(Target("probed_lib", "Model.to"), Doing(prepare=lambda call: change({"device": "card"})))
    model = lib.Model()
    kept = model.to
    assert model.to("cpu") == kept(device="cpu") == lib.Model.to(model, "cpu") == (model, "card")


def test_a_method_that_binds_in_its_own_way(lib, registry):
    """Another tool's decorator around a method does not shift the arguments."""
    wrapt = pytest.importorskip("wrapt")

    @wrapt.decorator
    def theirs(wrapped, instance, args, kwargs):
        return wrapped(*args, **kwargs)

    lib.Model.to = theirs(lib.Model.to)
    told = []
    override = Doing(prepare=lambda call: told.append((call.instance, call.arguments())) or change({"device": "card"}))
    registry.apply(Target("probed_lib", "Model.to"), override)
    model = lib.Model()
    assert model.to("cpu") == lib.Model.to(model, "cpu") == (model, "card")
    assert told == [(model, {"device": "cpu"})] * 2


def test_overrides_are_asked_in_their_order(lib, registry, calls):
    """An override sees what those before it have changed; the observer sees the call as the job made it."""
    seen = []
    registry.apply(ACT, Doing("one", prepare=lambda call: change({"what": "b"})))
    registry.apply(ACT, Doing("two", prepare=lambda call: change({"what": call.arguments()["what"] + "c"})))
    observer = Doing("three")
    observer.prepare = lambda call: seen.append(call.arguments()["what"])
    registry.apply(ACT, observer)
    assert lib.act("a") == "bc"
    assert seen == ["bc"]


def test_the_observer_sees_the_jobs_own_call_once(lib, registry, calls, recorder):
    """What is recorded is the call of the job, once, however often the original was called for it."""
    observer = recorder()
    registry.apply(ACT, observer)
    registry.apply(ACT, Doing(rescue=lambda call, exc: change({"what": "b"})))
    assert lib.act("fail") == "b"
    assert observer.seen == [("before", "act", {"what": "fail"}), ("after", "act", "b")]
    assert len(calls) == 2


def test_nothing_changed_is_called_once(lib, registry, calls):
    """If no override wants anything, the original is called once, with the very arguments, and its very result comes back."""
    override = Doing()
    registry.apply(ACT, override)
    what = ["a"]
    assert lib.act(what, 2, "b", flag=True, more=1) is what
    assert calls == [(["a"], 2, ("b",), True, {"more": 1})]
    assert calls[0][0] is what
    assert override.begin == ["prepare", "settled"]


def test_in_place_of_the_call(lib, registry, calls):
    """An override can answer instead: before the call, for its failure, and for its result."""
    for moment, asked in (("prepare", 0), ("rescue", 1), ("settled", 1)):
        calls.clear()
        registry.apply(ACT, Doing(**{moment: lambda *_: answer("mine")}))
        assert lib.act("fail" if moment == "rescue" else "a") == "mine"
        assert len(calls) == asked
        registry.undo()


def test_a_rescue_has_its_tries(lib, registry, calls):
    """A call that goes on failing is made as often as the override has tries, and once; the last exception is the job's."""
    override = Doing(tries=3, rescue=lambda call, exc: change())
    registry.apply(ACT, override)
    with pytest.raises(KeyError):
        lib.act("fail")
    assert len(calls) == 4
    assert override.begin == ["prepare", *["rescue"] * 3]


def test_a_result_that_must_not_be_believed(lib, registry, calls):
    """A result is fetched again as long as the override has tries; then it passes as it is."""
    registry.apply(ACT, Doing(tries=2, settled=lambda call, result: change()))
    assert lib.act("a") == "a"
    assert len(calls) == 3


def test_a_note_of_its_own(lib, registry, calls):
    """What an override notes at one moment it finds at the next, and no other override does."""
    told = []

    def note(call):
        told.append(call.note)
        call.note = "mine"

    registry.apply(ACT, Doing("one", tries=2, prepare=note, rescue=lambda call, exc: told.append(call.note) or change()))
    registry.apply(ACT, Doing("two", rescue=lambda call, exc: told.append(call.note)))
    with pytest.raises(KeyError):
        lib.act("fail")
    assert told == [None, "mine", "mine", None]
    lib.act("a")
    assert told[-1] is None


def test_what_follows_a_call(lib, registry, calls):
    """After a call that went well the changes are done, the last one first; after a failure each of them is left."""
    steps = []

    def noted(name):
        return lambda call: change(commit=lambda: steps.append("commit " + name), rollback=lambda: steps.append("rollback " + name))

    registry.apply(ACT, Doing("one", prepare=noted("one")))
    registry.apply(ACT, Doing("two", prepare=noted("two")))
    lib.act("a")
    assert steps == ["commit two", "commit one"]
    steps.clear()
    with pytest.raises(KeyError):
        lib.act("fail")
    assert steps == ["rollback two", "rollback one"]


def test_what_follows_and_fails_is_the_calls_failure(lib, registry, calls):
    """If the last step of a change fails, such as a rename, the call has failed: its exception passes, and every change is left."""
    steps, full = [], OSError(28, "No space left on device")

    def commit():
        raise full

    registry.apply(
        ACT, Doing("one", prepare=lambda call: change(commit=lambda: steps.append("commit"), rollback=lambda: steps.append("rollback one")))
    )
    registry.apply(ACT, Doing("two", prepare=lambda call: change(commit=commit, rollback=lambda: steps.append("rollback two"))))
    with pytest.raises(OSError, match="No space left") as caught:
        lib.act("a")
    assert caught.value is full
    assert steps == ["rollback two", "rollback one"]


def test_warnings_point_at_the_jobs_line(lib, registry):
    """A warning with stacklevel=2 names this file and the line of the call, at the second try as at the first."""

    def old():
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        raise KeyError

    lib.old = old
    registry.apply(Target("probed_lib", "old"), Doing(rescue=lambda call, exc: change()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 2
        with pytest.raises(KeyError):
            lib.old()
    assert [(entry.filename, entry.lineno) for entry in caught] == [(__file__, line)] * 2


def test_deep_recursion_ends_as_it_would(lib, registry, quiet):
    """An overridden function that recurses for ever raises RecursionError, and is overridden again afterwards."""

    def forever(deep):
        return lib.forever(deep) if deep else "flat"

    lib.forever = forever
    registry.apply(Target("probed_lib", "forever"), Doing())
    with pytest.raises(RecursionError):
        lib.forever(True)
    override = Doing("second", prepare=lambda call: answer("answered"))
    registry.apply(Target("probed_lib", "forever"), override)
    assert lib.forever(False) == "answered"


def test_an_override_does_not_see_its_own_calls(lib, registry, calls):
    """What an override itself calls is neither observed nor changed."""
    override = Doing(prepare=lambda call: lib.act("own") and None)
    registry.apply(ACT, override)
    assert lib.act("a") == "a"
    assert override.begin == ["prepare", "settled"]
    assert [call[0] for call in calls] == ["own", "a"]


@pytest.mark.parametrize("moment", ["prepare", "rescue", "settled"])
def test_one_frame_of_ours_on_the_stack(lib, registry, recorder, moment):
    """One frame of ours is on the stack while the original runs, at each attempt, whether overrides change the call or not."""
    seen = []

    def look(what):
        seen.append([entry.filename for entry in traceback.extract_stack() if entry.filename.startswith(PACKAGE)])
        if moment == "rescue" and what != "b":
            raise KeyError(what)

    lib.look = look
    registry.apply(Target("probed_lib", "look"), recorder())
    registry.apply(Target("probed_lib", "look"), Doing(**{moment: lambda *_: change({"what": "b"})}))
    lib.look("a")
    assert [len(files) for files in seen] == [1] if moment == "prepare" else [1, 1]
    assert all("importlib" in name and "_bootstrap" in name for files in seen for name in files)


def test_what_the_job_prints_of_a_failure(lib, registry, calls):
    """A call that fails at every attempt leaves no frame of ours in the traceback that the job's except clause has."""
    registry.apply(ACT, Doing(tries=2, rescue=lambda call, exc: change()))
    try:
        lib.act("fail")
    except KeyError:
        files = [entry.filename for entry in traceback.extract_tb(sys.exc_info()[2])]
    assert len(calls) == 3
    assert not [name for name in files if name.startswith(PACKAGE)]


def test_no_change_without_its_record():
    """A change that does not say what was before, what is now and why cannot be built."""
    for missing in ((), ({"a": 1},), ({"a": 1}, {"a": 2})):
        with pytest.raises(TypeError):
            Change(*missing)
        with pytest.raises(TypeError):
            Change.answer("mine", *missing)


@pytest.mark.parametrize("moment", ["prepare", "rescue", "settled"])
def test_each_change_is_recorded(lib, registry, calls, moment):
    """Whatever an override changes, at whichever moment, is recorded once for each change, with before, after and because."""
    override = Doing(tries=2, **{moment: lambda *_: change({"times": 9})})
    registry.apply(ACT, override)
    if moment == "rescue":
        with pytest.raises(KeyError):
            lib.act("fail")
    else:
        lib.act("a")
    assert override.recorded == [("act", {"old": 1}, {"new": 2}, "it was told to")] * (1 if moment == "prepare" else 2)
    assert len(calls) == (1 if moment == "prepare" else 3)


@pytest.mark.parametrize("moment", ["prepare", "rescue", "settled"])
def test_what_cannot_be_recorded_is_not_done(lib, registry, calls, quiet, moment):
    """If recording fails, the call goes on as the job made it, and what the override has done already is taken back."""
    steps = []
    undone = {"revert": lambda: steps.append("revert"), "rollback": lambda: steps.append("rollback")}
    registry.apply(ACT, Doing(record=lambda *_: 1 / 0, **{moment: lambda *_: change({"times": 9}, **undone)}))
    if moment == "rescue":
        with pytest.raises(KeyError):
            lib.act("fail")
    else:
        assert lib.act("a") == "a"
    assert [(len(calls), calls[0][1]), steps, guard.counts] == [(1, 1), ["revert", "rollback"], {"doing": 1}]


def test_an_answer_that_cannot_be_recorded_is_not_given(lib, registry, calls, quiet):
    """If an answer cannot be recorded, the job gets the result of the original."""
    registry.apply(ACT, Doing(record=lambda *_: 1 / 0, settled=lambda *_: answer("mine")))
    assert lib.act("a") == "a"
    assert len(calls) == 1


def test_an_override_without_a_recorder_changes_nothing(lib, registry, calls, quiet):
    """An override class that does not say how its changes are recorded cannot make one."""

    class Silent(Override):
        name = "silent"

        def prepare(self, call):
            return change({"what": "b"})

    registry.apply(ACT, Silent())
    assert lib.act("a") == "a"
    assert guard.counts == {"silent": 1}


def test_undo_takes_overrides_away(lib, registry, calls):
    """After undo the very original is in its place; a wrapper that somebody kept calls it unchanged."""
    original = lib.act
    override = Doing(prepare=lambda call: change({"what": "b"}))
    registry.apply(ACT, override)
    kept = lib.act
    assert lib.act("a") == kept("a") == "b"
    assert registry.undo().ok
    assert lib.act is original
    assert lib.act("a") == kept("a") == "a"
    assert override.begin == ["prepare", "settled"] * 2
