"""What a line looks like and when it is in the file."""

import _thread
import ctypes  # noqa: F401  # torch brings it to each job; with it an overflow is forgotten on Python 3.8
import json
import os
import re
import stat
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder
from ddp_probe.traced.record.chain import timestamp
from ddp_probe.traced.record.recorder import write_model
from ddp_probe.traced.record.render import SchemaDriftError

Make = Callable[..., Recorder]
Lines = Callable[[Any], List[Dict[str, Any]]]


class Hostile:
    """A user's object that cannot be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("repr synchronises a device")

    __str__ = __repr__


class Version(str):
    """What torch.__version__ is: text of a class of its own."""

    __slots__ = ()


def test_nothing_is_made_before_the_first_event(make: Make, tmp_path: Path) -> None:
    """A recorder without events leaves no folder and no file, and has no path."""
    recorder = make()
    recorder.close()
    assert recorder.path is None
    assert list(tmp_path.iterdir()) == []


def test_a_line_reads_from_event_over_envelope_to_its_own_fields(make: Make, lines_of: Lines) -> None:
    """The event's name is first, the envelope follows, then what the event itself tells."""
    recorder = make()
    recorder.bind(local_rank=1)
    recorder.point(schema.SetDevice(target="torch.cuda.set_device", device="1", site=schema.Site("train.py", 7, "main")))
    line = lines_of(recorder.path)[1]
    head = ["event", "phase", "ts", "mono_ns", "seq", "rank", "local_rank", "world_size", "host", "pid", "run"]
    assert list(line) == [*head, "site", "target", "device"]
    assert (line["event"], line["phase"], line["rank"], line["local_rank"], line["pid"]) == ("device.set", "point", 3, 1, os.getpid())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["ts"])


def test_the_file_starts_with_what_first_answers(make: Make, lines_of: Lines) -> None:
    """Line 0 is process.start, and seq counts from there without a gap."""
    recorder = make()
    recorder.point(schema.SetDevice())
    recorder.point(schema.SetDevice())
    lines = lines_of(recorder.path)
    assert [(line["seq"], line["event"]) for line in lines] == [(0, "process.start"), (1, "device.set"), (2, "device.set")]
    assert (recorder.lines, recorder.lost) == (3, 0)


def test_start_writes_the_first_line_without_an_event(make: Make, lines_of: Lines) -> None:
    """start() opens the file with line 0 alone; a second start and the first event add no other one."""
    recorder = make()
    recorder.start()
    assert [line["event"] for line in lines_of(recorder.path)] == ["process.start"]
    recorder.start()
    recorder.point(schema.SetDevice())
    assert [line["event"] for line in lines_of(recorder.path)] == ["process.start", "device.set"]


def test_begin_is_in_the_file_before_the_call_is_made(make: Make, lines_of: Lines) -> None:
    """When begin() returns another reader sees the line; end() ties to it by span and tells the seconds."""
    recorder = make()
    before = time.monotonic()
    span = recorder.begin(schema.Wrap(wrapper="DDP"))
    begun = lines_of(recorder.path)[-1]
    time.sleep(0.01)
    span.end(schema.Wrap(backend="gloo"))
    ended = lines_of(recorder.path)[-1]
    assert (begun["phase"], begun["span"], begun["wrapper"]) == ("begin", span.id, "DDP")
    assert (ended["event"], ended["phase"], ended["span"], ended["backend"]) == ("ddp.init", "end", span.id, "gloo")
    assert 0.01 <= ended["seconds"] <= time.monotonic() - before


def test_a_failed_call_ends_with_its_failure(make: Make, lines_of: Lines) -> None:
    """fail() writes phase error under the event's own name, with the exception last in the line."""
    recorder = make()
    recorder.begin(schema.Load()).error(schema.Failure(type="EOFError", raised_at=schema.Site("a.py", 1, "f")), schema.Load(map_location="cpu"))
    line = lines_of(recorder.path)[-1]
    assert (line["event"], line["phase"], line["map_location"]) == ("checkpoint.load", "error", "cpu")
    assert list(line)[-1] == "failure"
    assert line["failure"] == {"type": "EOFError", "raised_at": {"file": "a.py", "line": 1, "function": "f"}}


def test_a_span_ends_once(make: Make, lines_of: Lines) -> None:
    """A second end, or a failure after the end, writes nothing."""
    recorder = make()
    span = recorder.begin(schema.Load())
    span.end()
    span.end()
    span.error(schema.Failure(type="X"))
    assert [line["phase"] for line in lines_of(recorder.path)] == ["point", "begin", "end"]


def test_values_that_json_does_not_know_are_described(make: Make, lines_of: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd values neither raise nor run code of their own class: text stays text, the rest becomes the name of its class."""
    recorder = make()
    loop: Dict[str, Any] = {}
    loop["self"] = loop
    versions: Dict[Any, Any] = {"torch": Version("2.13.0"), Version("kind"): "x", "bytes\udc80": "\udcff"}
    recorder.point(schema.ProcessStart(versions=versions))
    monkeypatch.delenv("DDP_PROBE_STRICT")
    loose = make()
    odd: Dict[Any, Any] = {
        "object": Hostile(),
        "list": [Hostile()],
        "large": 1 << 80,
        "bad": "\udc80",
        "loop": loop,
        5: 1,
        ("a",): 2,
        "nan": float("nan"),
    }
    loose.point(schema.WrapModel(wrapper_cfg=odd))
    assert lines_of(recorder.path)[1]["versions"] == {"torch": "2.13.0", "kind": "x", "bytes\\udc80": "\\udcff"}
    written = json.loads(Path(str(loose.path)).read_text(encoding="utf-8").splitlines()[1])["wrapper_cfg"]
    assert (written["object"], written["list"], written["bad"], written["nan"]) == ("<Hostile>", ["<Hostile>"], "\\udc80", None)
    assert written["large"] == "<int of 81 bits>"
    assert (written["5"], written["<tuple>"], loose.lost) == (1, 2, 0)


def test_a_thread_other_than_the_main_one_is_named(make: Make, lines_of: Lines) -> None:
    """Lines of the main thread have no thread field, others the thread's name."""
    recorder = make()
    worker = threading.Thread(target=recorder.point, args=(schema.SetDevice(),), name="loader-1")
    worker.start()
    worker.join()
    recorder.point(schema.SetDevice())
    assert [line.get("thread") for line in lines_of(recorder.path)] == ["loader-1", "loader-1", None]


def test_a_foreign_thread_does_not_enter_the_jobs_list_of_threads(make: Make, lines_of: Lines) -> None:
    """A thread that Python did not start, as autograd's, is named by number and is not added to threading.enumerate()."""
    recorder = make()
    done = _thread.allocate_lock()
    done.acquire()

    def work() -> None:
        recorder.point(schema.SetDevice())
        done.release()

    _thread.start_new_thread(work, ())
    assert done.acquire(timeout=60)
    assert lines_of(recorder.path)[-1]["thread"].startswith("thread-")
    assert not [thread for thread in threading.enumerate() if "Dummy" in thread.name]


@pytest.mark.parametrize(
    ("umask", "shared", "file", "folder"),
    [(None, False, 0o600, 0o700), (None, True, 0o640, 0o2750), ("022", False, 0o644, 0o755), ("nonsense", False, 0o600, 0o700)],
)
def test_who_may_read(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: Optional[str], shared: bool, file: int, folder: int
) -> None:
    """Only the user reads what is written, unless DDP_PROBE_UMASK or a folder's set-group-ID bit says otherwise; the model's file is no exception."""
    if umask is not None:
        monkeypatch.setenv("DDP_PROBE_UMASK", umask)
    if shared:
        tmp_path.chmod(0o2770)
    before = os.umask(0)
    try:
        recorder = Recorder(str(tmp_path / "a" / "run"), lambda: "rank", {}, max_bytes=1 << 20)
        recorder.point(schema.SetDevice())
        write_model(str(tmp_path / "a" / "run"), "abc", b"{}")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(os.stat(str(path)).st_mode) for path in (recorder.path, tmp_path / "a" / "run" / "models" / "abc.json")] == [file, file]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "run", tmp_path / "a" / "run" / "models")} == {folder}


def test_the_folder_stays_when_the_job_changes_its_own(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder means the one at the time the recorder was made."""
    monkeypatch.chdir(tmp_path)
    recorder = Recorder("run", lambda: "rank", {}, max_bytes=1 << 20)
    monkeypatch.chdir("/")
    recorder.point(schema.SetDevice())
    assert recorder.path == str(tmp_path / "run" / "rank.jsonl")


def test_an_event_from_within_first_follows_it(make: Make, lines_of: Lines) -> None:
    """What is written while the first line is being put together comes after it, and is not lost."""

    def first() -> schema.Event:
        recorder.warn("inside")
        return schema.ProcessStart()

    recorder = make(first=first, echo="off")
    recorder.point(schema.SetDevice())
    assert [line["event"] for line in lines_of(recorder.path)] == ["process.start", "probe.warning", "device.set"]


def test_a_first_that_raises_leaves_a_fault_in_its_place(make: Make, lines_of: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event that was to be written is written all the same."""
    monkeypatch.delenv("DDP_PROBE_STRICT")
    recorder = make(first=lambda: 1 / 0)
    recorder.point(schema.SetDevice())
    lines = lines_of(recorder.path)
    assert [line["event"] for line in lines] == ["probe.fault", "device.set"]
    assert lines[0]["failure"] == {"type": "ZeroDivisionError"}


def test_a_closed_recorder_opens_its_own_file_again(make: Make, lines_of: Lines) -> None:
    """After close() a further event goes to the end of the same file."""
    recorder = make()
    recorder.point(schema.SetDevice())
    path = recorder.path
    recorder.close()
    recorder.point(schema.SetDevice())
    assert recorder.path == path
    assert [line["seq"] for line in lines_of(path)] == [0, 1, 2]


def test_strict_raises_on_what_the_schema_does_not_know(make: Make) -> None:
    """With DDP_PROBE_STRICT an unknown envelope field, a field of the wrong type and a stray key inside raise; without, they are written."""
    wrong: Any = 5
    for spoil, event in ((True, schema.SetDevice()), (False, schema.SetDevice(device=wrong)), (False, schema.SetDevice(site=wrong))):
        recorder = make(first=None)
        if spoil:
            recorder.bind(node="x")
        with pytest.raises(SchemaDriftError):
            recorder.point(event)
        assert (recorder.lines, recorder.lost) == (0, 1)


def test_without_strict_a_wrong_field_costs_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside the project's own tests such a line is written and nothing is raised."""
    monkeypatch.delenv("DDP_PROBE_STRICT")
    wrong: Any = 5
    recorder = make(first=None)
    recorder.bind(node="x")
    recorder.point(schema.SetDevice(device=wrong))
    assert json.loads(Path(str(recorder.path)).read_text(encoding="utf-8"))["node"] == "x"


@pytest.mark.parametrize(("ns", "text"), [(0, "1970-01-01T00:00:00.000000Z"), (951782399999999999, "2000-02-28T23:59:59.999999Z")])
def test_a_time_has_six_digits_always(ns: int, text: str) -> None:
    """Whole seconds keep their zeros, and a time is cut, not rounded into the next second."""
    assert timestamp(ns) == text
