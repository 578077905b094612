"""No remedy changes a call without an event: the plan of the call records each change, and the remedy has no part in that."""

import importlib
import pkgutil
import sys
import types
from typing import Any, Dict, List

import pytest

import ddp_probe.traced.remedies
from ddp_probe.shared import schema, settings
from ddp_probe.traced.patching import Change, PatchRegistry, Target, guard
from ddp_probe.traced.remedies import Remedy

NAMES = [name for _, name, _ in pkgutil.iter_modules(ddp_probe.traced.remedies.__path__) if not name.startswith("_")]
EACH = pytest.mark.parametrize("name", NAMES)
MOMENTS = ("prepare", "rescue", "settled")


class _Recorder:
    """Keeps events instead of writing them; fails while it is broken."""

    def __init__(self) -> None:
        self.events: List[Any] = []
        self.texts: List[str] = []
        self.broken = False

    def point(self, event: Any) -> None:
        """Keep an event."""
        if self.broken:
            raise OSError("no room")
        self.events.append(event)

    def warn(self, text: str) -> None:
        """Keep what is said on stderr."""
        self.texts.append(text)


class _Session:
    """As much of a session as a remedy needs."""

    def __init__(self) -> None:
        self.recorder = _Recorder()
        self.process = types.SimpleNamespace(rank=3)
        self.last_set_device = ""


def _class(name: str) -> Any:
    return importlib.import_module("ddp_probe.traced.remedies." + name).REMEDY


@pytest.fixture
def session() -> _Session:
    """A session that keeps its events."""
    return _Session()


@pytest.fixture
def changed(session: _Session, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a call that a remedy changes at one moment, and returns what the original was called with."""
    monkeypatch.delenv("DDP_PROBE_STRICT", raising=False)
    guard.forget()
    registry, job = PatchRegistry(), types.ModuleType("changed_job")
    monkeypatch.setitem(sys.modules, "changed_job", job)

    def run(name: str, moment: str, times: int = 1) -> List[int]:
        seen: List[int] = []

        def act(number: int = 1) -> int:
            seen.append(number)
            if moment == "rescue" and number == 1:
                raise KeyError(number)
            return number

        job.act = act  # type: ignore[attr-defined]
        remedy = _class(name)(session)
        for each in MOMENTS:
            answer = Change({"number": 1}, {"number": 2}, "it was wrong", arguments={"number": 2}) if each == moment else None
            setattr(remedy, each, lambda *_, answer=answer: answer)
        remedy.tries = 1
        registry.apply(Target("changed_job", "act"), remedy)
        for _ in range(times):
            try:
                job.act()
            except KeyError:
                seen.append(0)
        registry.undo()
        return seen

    yield run
    guard.forget()


def test_every_remedy_is_walked() -> None:
    """The files of the package are the remedies that DDP_PROBE_FIX knows."""
    assert {name.replace("_", "-") for name in NAMES} == set(settings.REMEDIES)


@EACH
def test_no_remedy_records_in_its_own_way(name: str) -> None:
    """The event is written by what all remedies share."""
    assert _class(name).record is Remedy.record


@EACH
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_change_leaves_an_event(name: str, moment: str, changed: Any, session: _Session) -> None:
    """A change at any moment is made, leaves one event with before, after and because, and is said once on stderr."""
    assert changed(name, moment) == ([2] if moment == "prepare" else [1, 2])
    (event,) = session.recorder.events
    assert type(event) is schema.Remedied
    assert (event.remedy, event.before, event.after) == (name.replace("_", "-"), {"number": "1"}, {"number": "2"})
    assert (event.target, event.because, event.for_good) == ("changed_job.act", "it was wrong", _class(name).for_good)
    (text,) = session.recorder.texts
    assert "DDP_PROBE_FIX %s: number=1 became number=2, because it was wrong." % event.remedy in text


@EACH
@pytest.mark.parametrize("moment", MOMENTS)
def test_no_event_no_change(name: str, moment: str, changed: Any, session: _Session) -> None:
    """If the event cannot be written, the call is the job's own."""
    session.recorder.broken = True
    assert changed(name, moment) == ([1, 0] if moment == "rescue" else [1])
    counts: Dict[str, int] = guard.counts
    assert counts == {"fix." + _class(name).word: 1}


def test_frequent_changes_are_thinned(changed: Any, session: _Session) -> None:
    """A call that is changed often has an event for the first 20 changes and for each power of two after them, and is said once."""
    assert changed("timeout", "prepare", times=70) == [2] * 70
    assert len(session.recorder.events) == 20 + len([32, 64])
    assert len(session.recorder.texts) == 1
