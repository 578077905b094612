"""When a standstill of a host's ranks is said, by whom, in which words; and what a look at their ledgers costs."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from ledger_books import Book, Call, Phase, born
from parted_jobs import draw, log, simulated
from schedule import seed

from ddp_probe.judging.judge import judge
from ddp_probe.reading import ledger_text
from ddp_probe.reading.load_run import from_lines
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared import own_code
from ddp_probe.shared import schema as events_of
from ddp_probe.traced.facts.birth import ancestors
from ddp_probe.traced.hangs.launch import LaunchWatcher, _Verdict
from ddp_probe.traced.hangs.others import Others
from ddp_probe.traced.hangs.places import Whereabouts, _calls, parted, place, together
from ddp_probe.traced.hangs.standstill import Seen, Standstill, Unled, has_launcher
from ddp_probe.traced.record import brief

_Make = Callable[..., Book]


class Log:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: List[Any] = []

    def point(self, event: Any) -> None:
        """Keep one."""
        self.events.append(event)


def _standstill(others: Others, log: Log, verdict: Callable[[Seen], str] = lambda seen: together(seen.places)) -> Standstill:
    found: Any = Standstill(others, 10.0, log, verdict)  # type: ignore[arg-type]  # it only writes events
    return found


def _said(capfd: Any) -> List[str]:
    return str(capfd.readouterr().err).splitlines()


def test_a_standstill_is_said_once_and_then_its_end(book: _Make, others: Others, capfd: Any) -> None:
    """Nothing is said twice within the interval; once one rank moves, that is said, with the rank."""
    book(0, Call(seq=7, site="/job/train.py:20:main"))
    missing = book(1, Call(seq=6, state=schema.RETURNED, site="/job/train.py:9:main"))
    log = Log()
    standstill = _standstill(others, log)
    standstill.look()
    standstill.look()
    where = "Rank 0 is in all_reduce number 7 at train.py:20; rank 1 is in no collective, after all_reduce number 6 at train.py:9."
    assert [re.sub(r"for 3\d s", "for 30 s", line) for line in _said(capfd)] == ["ddp_probe: No rank has moved for 30 s. " + where]
    missing.move()
    standstill.look()
    assert [re.sub(r"after 3\d s", "after 30 s", line) for line in _said(capfd)] == ["ddp_probe: Rank 1 moves on after 30 s."]
    assert [event.ranks for event in log.events] == [[0, 1], [1]]


def test_ranks_that_a_signal_ends_do_not_move_on(book: _Make, others: Others, capfd: Any) -> None:
    """Once the launcher has been told to stop, a rank that unwinds because of that is not said to move on."""
    book(0, Call(seq=7, site="/job/train.py:20:main"))
    missing = book(1, Call(seq=6, state=schema.RETURNED, site="/job/train.py:9:main"))
    log = Log()
    standstill = _standstill(others, log)
    standstill.look()
    assert len(_said(capfd)) == 1
    standstill.is_ending = True
    missing.move()
    standstill.tell_over()
    assert _said(capfd) == []


def test_a_process_that_is_no_more_is_named(book: _Make, others: Others, tmp_path: Path, capfd: Any) -> None:
    """While the others stand, a rank of this host with a log and without a process is told, unless it was started again."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    book(0, Call(seq=7, site="/job/train.py:20:main"), world=3)
    book(2, Call(seq=7, site="/job/train.py:20:main"), world=3)
    for rank, pid in ((1, ended.pid), (2, ended.pid), (2, os.getpid())):
        start = {"event": "process.start", "rank": rank, "world_size": 3, "pid": pid, "born": born(os.getpid())}
        (tmp_path / ("rank%05d.here.%d.jsonl" % (rank, pid))).write_text(json.dumps(start) + "\n")
    log = Log()
    _standstill(others, log).look()
    (said,) = _said(capfd)
    assert re.search(r"for 3\d s\. The process of rank 1 has ended\. Ranks 0, 2 are in all_reduce", said)
    assert (log.events[0].ranks, log.events[0].gone) == ([0, 2], [1])


def test_the_rank_that_left_the_sequence_is_named(tmp_path: Path) -> None:
    """From the bytes of the ledgers, without a reader, the same rank is named as by the report."""
    named = 0
    for number in range(40):
        job = draw(random.Random("%d %d" % (seed(), number)))
        text = log(simulated(job.program))
        print("seed %d %d" % (seed(), number), job[:5])
        ledgers = ledger_text.written([line for line in text.splitlines() if line.startswith("ledger")])
        found = judge(from_lines(text)).findings[0]
        said = parted((rank, _at_full_size(data)) for rank, data in ledgers.items())
        if said:
            assert found.ranks == [job.guilty]
            assert said.startswith("Rank %d called " % job.guilty)
            named += 1
    assert named > 30


def _at_full_size(data: bytes) -> bytes:
    """Return a ledger with the areas that a rank makes."""
    head = codec.HEADER.read(data)
    small, full, size = codec.places(head), codec.PLACES, codec.RECORD.size
    made = bytearray(full.end)
    codec.HEADER.write(made, 0, {**head, **codec.SIZES})
    made[schema.HEADER_BYTES : schema.HEADER_BYTES + head["text_used"]] = data[schema.HEADER_BYTES : schema.HEADER_BYTES + head["text_used"]]
    for at in range(small.records, small.end, size):
        place = full.records + int.from_bytes(data[at : at + 8], sys.byteorder) % schema.RECORDS * size
        if any(data[at : at + 8]):
            made[place : place + size] = data[at : at + size]
    return bytes(made)


def test_a_rank_in_no_call_is_told_by_its_stack(book: _Make, others: Others, tmp_path: Path) -> None:
    """The line is that of the stack which it has written since it moved last, not that of its last call."""
    stands = book(0, Call(state=schema.RETURNED, site="/job/train.py:9:main"), world=1)
    frames = '[{"file":"/job/train.py","line":30,"function":"main"},{"file":"/job/data.py","line":55,"function":"read"}]'
    told = '{"event":"hang.suspected","mono_ns":%d,"since":10.0,"still":9.0,"threads":[{"main":true,"frames":%s}]}\n'
    stands.path.with_suffix(".jsonl").write_text(told % (time.monotonic_ns(), frames), encoding="utf-8")
    others.newest(0)
    ((owner, _),) = others.alive()
    assert owner.place() == Whereabouts("at data.py:55 in read, after all_reduce number 1 at train.py:9", False, 9.0)


@pytest.mark.parametrize(("number", "name"), [(15, "SIGTERM"), (99, "signal 99")])
def test_a_call_of_a_handler_is_told_as_that(number: int, name: str, book: _Make) -> None:
    """A rank that stands in a call of its signal's handler is said to, and such a call is not compared with those of other ranks."""
    usual = [Call(seq=one, state=schema.RETURNED, site="/job/train.py:9:main") for one in (1, 2)]
    handled = Call("broadcast", seq=3, site="/job/train.py:9:main", flags=number << schema.SIGNAL_BITS)
    made = bytes(book(1, *usual, handled).data)
    assert place(made).words == "in broadcast number 3 at train.py:9, in its handler of %s" % name
    assert [call.op for call in _calls(made)] == ["all_reduce", "all_reduce"]


@pytest.mark.parametrize(
    ("parts", "waits"),
    [
        ((), False),
        ((Call(state=schema.RETURNED),), False),
        ((Phase("validate"),), False),
        ((Phase("backward"),), True),
        ((Call(issued=True, waited=True),), True),
        ((Call(op="init_process_group"),), True),
    ],
    ids=["nothing yet", "returned", "at work", "backward", "waits for its work", "makes the group"],
)
def test_somebody_has_to_wait(parts: Any, waits: bool, book: _Make, others: Others) -> None:
    """Ranks of which none waits for another are not said to stand still."""
    book(0, *parts)
    log = Log()
    _standstill(others, log).look()
    assert bool(log.events) == waits


def test_who_moves_is_no_standstill(book: _Make, others: Others) -> None:
    """One rank that has moved a moment ago is enough."""
    book(0, Call())
    book(1, ago=1.0)
    log = Log()
    _standstill(others, log).look()
    assert log.events == []


def test_a_verdict_that_comes_too_late_is_not_said(book: _Make, others: Others, capfd: Any) -> None:
    """If the ranks have moved on while the report was made, nothing is said."""
    late = book(0, Call())

    def verdict(_: Seen) -> str:
        late.move()
        return "They hang."

    log = Log()
    _standstill(others, log, verdict).look()
    assert (log.events, _said(capfd)) == ([], [])


def test_the_ledgers_of_an_earlier_attempt_do_not_count(book: _Make, others: Others) -> None:
    """Not a process that has ended, not another one that has its number, and not one of another host."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    book(0, Call(), pid=ended.pid)
    book(1, Call(), since=7)
    book(2, Call(), host="there")
    others.newest(0)
    assert others.alive() == []


def test_a_launcher_speaks_for_its_own_children(book: _Make, tmp_path: Path) -> None:
    """A ledger counts if its process is below the launcher."""
    book(0, Call(), pid=os.getpid())
    below = Others(str(tmp_path), "here", lambda pid: os.getppid() in ancestors(pid)[1:])
    beside = Others(str(tmp_path), "here", lambda pid: os.getpid() in ancestors(pid)[1:])
    for some in (below, beside):
        some.newest(0)
    assert (len(below.alive()), beside.alive()) == (1, [])


def test_a_rank_knows_whether_its_launcher_is_watched(tmp_path: Path) -> None:
    """A log of a launcher counts if its process is above this one."""
    log = tmp_path / "launcher.here.jsonl"
    assert not has_launcher(str(tmp_path), "here")
    log.write_text('{"event":"launcher.start","pid":%d}\n' % os.getppid())
    assert has_launcher(str(tmp_path), "here")
    assert not has_launcher(str(tmp_path), "there")
    log.write_text('{"event":"launcher.start","pid":%d}\n' % 999_999_999)
    assert not has_launcher(str(tmp_path), "here")


def test_only_the_launcher_of_the_lowest_rank_asks_for_the_report(book: _Make, others: Others, tmp_path: Path, monkeypatch: Any) -> None:
    """If a lower rank of another host has a ledger in the folder, no child is started: its launcher reads the same folder."""
    book(0, host="there", world=3)
    for rank in (1, 2):
        book(rank, Call(), world=3)
    monkeypatch.setattr(os, "posix_spawn", None)
    log = Log()
    _standstill(others, log, _Verdict(str(tmp_path)).of).look()
    said = re.sub(r"for 3\d s", "for 30 s", log.events[0].said)  # A busy machine looks a second later.
    assert said.startswith("No rank on this host has moved for 30 s. Ranks 1-2 are in all_reduce number 1 at train.py:40. Read on: ")


def _silent_for(seconds: float) -> int:
    """Return the beat of a ledger that was made 100 s before it moved last, 30 s ago."""
    return int((130 - seconds) * 10)


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """Start another process, which sleeps."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(("seconds", "held"), [(29.0, True), (0.2, False), (None, False)], ids=["silent", "beats", "unknown"])
def test_a_rank_in_which_native_code_holds_the_gil_is_named(seconds: Any, held: bool, book: _Make, others: Others, other: Any, capfd: Any) -> None:
    """A rank that runs, and whose watcher has not woken for long, is told after a second look, with its last call and what the kernel says of it."""
    book(0, Call(seq=7, site="/job/train.py:20:main"))
    made = book(1, Call(seq=6, state=schema.RETURNED, site="/job/train.py:9:main"), pid=other.pid)
    made.write(born=born(other.pid), mono_ns=time.monotonic_ns() - 130 * 10**9, beat=_silent_for(seconds) if seconds is not None else 0)
    log = Log()
    standstill = _standstill(others, log)
    standstill.look()
    assert bool(log.events) == (not held)
    standstill.look()
    (said,) = _said(capfd)
    assert ("rank 1 is in native code that holds the GIL, after all_reduce number 6 at train.py:9." in said) == held
    events = [event for event in log.events if isinstance(event, events_of.LauncherSilent)]
    assert [(event.child_rank, event.child_pid, event.paused, event.state) for event in events] == ([(1, other.pid, False, "S")] if held else [])


def test_ranks_that_are_all_stopped_do_not_hang(book: _Make, others: Others, other: Any, capfd: Any) -> None:
    """While the kernel lets none of them run, nothing is said, and afterwards the time is counted from there."""
    book(0, Call(seq=7, site="/job/train.py:20:main"), pid=other.pid, since=born(other.pid))
    other.send_signal(signal.SIGSTOP)
    while Path("/proc/%d/stat" % other.pid).read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    log = Log()
    standstill = _standstill(others, log)
    standstill.look()
    other.send_signal(signal.SIGCONT)
    standstill.look()
    assert _said(capfd) == log.events == []
    standstill.look(time.monotonic_ns() + 20 * 10**9)
    assert len(_said(capfd)) == len(log.events) == 1


def test_after_its_own_pause_a_launcher_counts_again(book: _Make, others: Others, capfd: Any) -> None:
    """What has not moved while the launcher was stopped itself is said one interval after that."""
    book(0, Call(seq=7, site="/job/train.py:20:main"))
    log = Log()
    standstill = _standstill(others, log)
    standstill.resume()
    standstill.look()
    assert _said(capfd) == log.events == []
    standstill.look(time.monotonic_ns() + 9 * 10**9)
    assert _said(capfd) == log.events == []
    standstill.look(time.monotonic_ns() + 13 * 10**9)
    assert len(_said(capfd)) == len(log.events) == 1


@pytest.mark.parametrize("variable", ["DDP_PROBE_REPORT", "DDP_PROBE_ECHO"])
def test_off_leaves_it_in_the_log(variable: str, book: _Make, others: Others, capfd: Any, monkeypatch: Any) -> None:
    """With DDP_PROBE_REPORT=off, or DDP_PROBE_ECHO=off, the event is written and stderr stays empty."""
    monkeypatch.setenv(variable, "off")
    book(0, Call())
    log = Log()
    _standstill(others, log).look()
    assert len(log.events) == 1
    assert _said(capfd) == []


def test_off_starts_no_thread(monkeypatch: Any) -> None:
    """Without ledgers, the launcher has no watcher."""
    monkeypatch.setenv("DDP_PROBE_LEDGER", "off")
    watcher: Any = LaunchWatcher()
    watcher.start(None, "here")
    assert watcher._daemon is None


def test_equal_places_are_said_together(book: _Make) -> None:
    """Ranks that stand at one line are named together, the many first."""
    places = [(rank, place(bytes(book(rank, Call(seq=3)).data))) for rank in (0, 2, 3)]
    places.append((1, place(bytes(book(1, Phase("save", site="/job/train.py:8:main")).data))))
    assert together(places) == "Ranks 0, 2-3 are in all_reduce number 3 at train.py:40; rank 1 is in save at train.py:8."


def test_a_look_at_ranks_that_move_reads_one_ledger(book: _Make, others: Others, monkeypatch: Any) -> None:
    """Of 64 ledgers one is read if its rank has moved since; and a look costs less than a thousandth of the second between two looks."""
    for rank in range(64):
        book(rank, Call(), ago=1.0, world=64)
    since = time.monotonic_ns() - int(60e9)
    for _ in range(5):
        others.newest(since)
    reads: List[Any] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *given: (reads.append(given), pread(*given))[1])
    others.newest(since)
    assert len(reads) == 1
    start = time.process_time()
    for _ in range(200):
        others.newest(since)
    assert (time.process_time() - start) / 200 < 0.001


_CHILDREN = """
import os, signal, sys, threading
from ddp_probe.traced.record import brief
print(brief.can_start())
if sys.argv[1] == "waits":
    reads, writes = os.pipe()
    os.posix_spawn("/bin/cat", ["cat"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reads, 0)])
    thread = threading.Thread(target=os.wait)
    thread.start()
    while brief.can_start():
        pass
    os.close(writes)
    thread.join()
    print(brief.can_start())
else:
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print(brief.can_start())
"""


@pytest.mark.parametrize(("how", "then"), [("waits", True), ("handles", False)])
def test_a_program_that_counts_its_children_gets_none_of_ours(how: str, then: bool, run_python: Any, clean_env: Any) -> None:
    """If the job handles SIGCHLD, or waits for whichever child ends next, no child is started."""
    done = run_python(["-c", _CHILDREN, how], env=clean_env())
    assert (done.returncode, done.stdout) == (0, "True\n%s\n" % then), done.stderr


def test_a_reader_is_ended_with_its_launcher(tmp_path: Path) -> None:
    """A child whose answer is not wanted any more is killed and waited for."""
    environ: Dict[str, str] = brief.environment()
    assert brief.Reader(brief.STANDSTILL, [str(tmp_path)], environ).lines(60.0, lambda: True) is None
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


_MAIN, _LOADS = ("/job/train.py", "main"), ("<frozen importlib._bootstrap>", "_find_and_load")
_STACKS = {
    "validate": [_MAIN, ("/job/val.py", "Runner.validate"), ("/env/site-packages/torch/nn/modules/module.py", "_call_impl")],
    "import": [_MAIN, _LOADS, ("/job/slow.py", "<module>")],
    "debugger": [_MAIN, ("/usr/lib/python3.11/bdb.py", "trace_dispatch"), ("/usr/lib/python3.11/cmd.py", "cmdloop")],
    "": [("/job/start.py", "<module>"), _LOADS, ("/job/train.py", "<module>"), ("/job/train.py", "train")],
}
_SENDS = "/env/site-packages/torch/nn/parallel/distributed.py"


@pytest.mark.parametrize("what", _STACKS)
def test_what_a_stack_is_busy_with(what: str) -> None:
    """A function that evaluates, an import and a debugger are told by the stack; a function of a module that is being imported is not an import."""
    assert own_code.task(_STACKS[what]) == what


@pytest.mark.parametrize("function", ["_distributed_broadcast_coalesced", "DistributedDataParallel._distributed_broadcast_coalesced"])
def test_an_evaluation_that_waits_for_buffers_is_no_work(function: str) -> None:
    """In DDP's forward the buffers of rank 0 are sent: a function that evaluates is not busy while it stands there, and is if it computes."""
    stack = _STACKS["validate"]
    assert own_code.task([*stack, (_SENDS, function)]) == ""
    assert own_code.task([*stack, (_SENDS, "forward")]) == "validate"


def _stands(one: Book, **fields: Any) -> None:
    """Write that a rank waits in the forward for a process."""
    event = {"event": "hang.suspected", "since": 30.0, "still": 30.0, "mono_ns": time.monotonic_ns(), **fields}
    places = (("/job/net.py", 7, "forward"), ("/usr/lib/python3.11/subprocess.py", 1196, "communicate"))
    event["threads"] = [{"frames": [{"file": file, "line": line, "function": function} for file, line, function in places]}]
    Path(str(one.path)[: -len(".ledger")] + ".jsonl").write_text(json.dumps(event, separators=(",", ":")) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("children", "said"), [(4.0, 0), (0.1, 1)])
def test_ranks_whose_processes_compute_do_not_stand(children: float, said: int, book: _Make, others: Others, capfd: Any) -> None:
    """Nothing is said of ranks that wait for a compiler at work; if it does not compute, it is said where they stand."""
    for rank in (0, 1):
        _stands(book(rank, Phase("forward", site="/job/net.py:7:forward")), children=children)
    _standstill(others, Log()).look()
    assert len(_said(capfd)) == said


def test_processes_that_compute_are_counted(run_python: Any, clean_env: Any) -> None:
    """The time of processes that threads have started, and of those that these have started, is counted while they run and once they have ended."""
    done = run_python([str(Path(__file__).parent / "programs" / "has_children.py")], env=clean_env())
    assert done.stdout == "grows\nstays\nkeeps\n", done.stderr


def test_who_evaluates_is_told_calmly_without_a_launcher(book: _Make, tmp_path: Path, capfd: Any) -> None:
    """The lowest rank says that nothing is wrong if another one evaluates, and not if it stands elsewhere or waits for buffers."""
    first = book(0, Call(site="/job/train.py:20:main"))
    second = book(1, Phase("forward", site="/job/val.py:7:validation_step"))
    sends = {"file": _SENDS, "line": 9, "function": "_distributed_broadcast_coalesced"}
    for function, inside, calm in (("validation_step", [], True), ("wait_for_lock", [], False), ("validation_step", [sends], False)):
        event = {"event": "hang.suspected", "since": 30.0, "still": 30.0, "mono_ns": time.monotonic_ns()}
        event["threads"] = [{"frames": [{"file": "/job/val.py", "line": 7, "function": function}, *inside]}]
        Path(str(second.path)[: -len(".ledger")] + ".jsonl").write_text(json.dumps(event, separators=(",", ":")) + "\n", encoding="utf-8")
        Unled(str(first.path), str(tmp_path), 5.0, Log()).look(1, time.monotonic_ns())
        said = capfd.readouterr().err
        assert "rank 1 is in forward at val.py:7 in %s" % function in said
        assert ("Nothing is wrong if" in said) == calm


@pytest.mark.parametrize(("seconds", "speaks"), [(29.0, True), (0.2, False)], ids=["silent", "beats"])
def test_if_the_lowest_rank_cannot_speak_the_next_does(seconds: float, speaks: bool, book: _Make, tmp_path: Path, other: Any, capfd: Any) -> None:
    """Without a launcher, a rank in which native code holds the GIL leaves the word to the next one of its host, which names it."""
    lowest = book(0, Call(seq=6, state=schema.RETURNED, site="/job/train.py:9:main"), pid=other.pid)
    lowest.write(born=born(other.pid), mono_ns=time.monotonic_ns() - 130 * 10**9, beat=_silent_for(seconds))
    waits = book(1, Call(seq=7, site="/job/train.py:20:main"))
    unled = Unled(str(waits.path), str(tmp_path), 5.0, Log())
    for _ in range(2):
        unled.look(1, time.monotonic_ns())
    said = capfd.readouterr().err
    assert ("Rank 0 is in native code that holds the GIL, after all_reduce number 6 at train.py:9" in said) == speaks
