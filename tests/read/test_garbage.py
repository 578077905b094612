"""Whatever a file contains, reading it ends with a Run that says what could not be read, or with one clear error."""

import json
import os
import random
import shutil
import sys
import threading
from pathlib import Path
from typing import Any, Callable, List

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run
from ddp_probe.shared.errors import ProbeError

Event = Callable[..., str]
GB = 1 << 30
_MEASURED = """
import re, sys, time
from ddp_probe.reading.load_run import load
begin = time.monotonic()
run = load(sys.argv[1:])
assert run.inventory.lines or run.texts, "nothing read"
# Not ru_maxrss: a child begins with what the process that started it once had.
print(re.findall(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[0], time.monotonic() - begin, len(run.failures), run.inventory.skipped)
"""


def _read(path: Path) -> Run:
    """Read a path and judge it: the rules see the same garbage."""
    run = load([str(path)])
    judge(run)
    return run


def _binary() -> bytes:
    return random.Random(7).getrandbits(8 * 200_000).to_bytes(200_000, "little")


_FAILURE = 'Traceback (most recent call last):\n  File "/train/t.py", line 3, in main\n    run()\nValueError: caf\u00e9 is closed\n'


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", ["train.log", "rank00000.node1.1.jsonl", "launcher.node1.jsonl"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"\0" * 70_000,
        _binary(),
        b"\xff\xfe" + _FAILURE.encode("utf-16-le"),
        _FAILURE.encode("latin-1"),
        b"{" * 100_000,
        b"[" * 2_000_000,
        b'{"event":' * 50_000,
        b'{"event":"process.start","rank":' + b"9" * 5000 + b"}\n",
        b'{"event":"process.start","mono_ns":' + b"9" * 5000 + b',"span":1e999,"pid":-1e308}\n',
        b'{"event":"process.start","ts":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"event":"process.start","host":"' + b"x" * 2_000_000 + b'"}\n',
        b'{"event":"\\ud800","rank":0}\n{"event":{"a":1}}\n[1]\n"text"\nnull\n',
        b"\x1b[2J\x1b[31m[bold red]RuntimeError[/bold red]: \x1b]8;;http://x\x07link\x1b]8;;\x07\x1b[0m\x9b31m\n" * 50,
        b"<html><script>alert(1)</script><pre>RuntimeError: &lt;b&gt;x&lt;/b&gt;</pre></html>\n",
        b"%s%d%n{0.__class__}${PATH}`id`$(id)\nRuntimeError: %s %(x)s {x}\n",
    ],
    ids=lambda content: repr(content[:24]),
)
def test_content(tmp_path: Path, name: str, content: bytes) -> None:
    """Any bytes under any name are read to the end without an exception, and the file is accounted for."""
    path = tmp_path / name
    path.write_bytes(content)
    run = _read(path)
    assert str(path) in run.inventory.files or str(path) in run.inventory.unreadable


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """A traceback is found in whatever encoding a log was written, in a long log as in a short one."""
    for lines in (0, 1000):
        path = tmp_path / ("%d.log" % lines)
        path.write_bytes(("step\n" * lines + _FAILURE + "step\n" * lines).encode(encoding))
        failures = [failure for failure in _read(path).failures if failure.uncaught]
        assert [failure.type for failure in failures] == ["ValueError"], encoding
        assert failures[0].at.line == lines + 4
        assert failures[0].message.startswith("caf")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train.log", "rank00000.node1.1.jsonl"])
def test_line_of_a_gigabyte(tmp_path: Path, run_python: Any, name: str, event: Event) -> None:
    """A line of a gigabyte is skipped in less than 200 MB of memory, and the lines after it are read."""
    path = tmp_path / name
    with path.open("wb") as stream:
        stream.write((event("process.start", rank=0) + "\n").encode() if name.endswith(".jsonl") else b"begin\n")
        stream.truncate(GB)
        stream.seek(GB)
        stream.write(b"\nRuntimeError: behind it\n")
    done = run_python(["-c", _MEASURED, path])
    assert done.returncode == 0, done.stderr
    kilobytes, seconds, failures, _ = done.stdout.split(" ", 3)
    assert int(kilobytes) < 200_000
    assert float(seconds) < 60
    assert name.endswith(".jsonl") or int(failures) == 2  # Its first line, and the failure.


def test_failure_at_the_end_of_a_progress_bar(tmp_path: Path) -> None:
    """What is printed behind a megabyte of carriage returns, on the same line, is found."""
    path = tmp_path / "train.log"
    path.write_bytes(b"".join(b"\r%6d/99999 [####]" % count for count in range(60_000)) + b"\rRuntimeError: at the end\n")
    assert [failure.message for failure in _read(path).failures if failure.type] == ["at the end"]


def test_long_log_stays_small(tmp_path: Path, run_python: Any) -> None:
    """A log of 30 000 failures is read in less than 300 MB, its first failure and its last among the few thousand that are kept."""
    path = tmp_path / "train.log"
    with path.open("w") as stream:
        stream.write("ValueError: the first\n")
        for block in range(3):
            stream.write("".join("[rank%d]: KeyError: %s\n" % (line % 999, "x" * (line % 150)) for line in range(block, block + 10_000)))
        stream.write("ValueError: the last\n")
    asserted = "assert [run.failures[0].message, run.failures[-1].message] == ['the first', 'the last']\nassert len(run.failures) < 5000\n"
    code = _MEASURED.replace("print(", asserted + "print(")
    done = run_python(["-c", code, path], timeout=240)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) < 300_000


def test_newer_schema(tmp_path: Path, event: Event) -> None:
    """Of a newer version the fields that fit are taken, and events that this version does not know are counted."""
    lines = [
        event("process.start", rank=2, world_size=4, newcomer={"a": [1]}, environment=["no longer a table"]),
        event("dist.shout", rank=2),
        event("dist.shout", rank=2),
        event("ddp.init", phase="begin", rank=2, span=1, placement="elsewhere"),
        event("ddp.init", phase="sideways", rank=2, span="one"),
        event("process.end", rank=2, exit_code="0"),
    ]
    path = tmp_path / "rank00002.node1.1.jsonl"
    path.write_text("\n".join(lines) + "\n")
    run = _read(path)
    assert (run.processes[0].rank, run.expected) == (2, 4)
    assert run.processes[0].unknown == {"dist.shout": 2}
    assert run.inventory.skipped == {}


def test_torn_last_line(tmp_path: Path, event: Event) -> None:
    """A last line without its end is counted as torn; a broken line in the middle is not."""
    path = tmp_path / "rank00000.node1.1.jsonl"
    path.write_text(event("process.start", rank=0) + '\n{"event":"ddp\n' + event("ddp.init", rank=0)[:-30])
    run = _read(path)
    assert run.inventory.skipped == {str(path): {"not JSON": 1, "torn": 1}}
    assert run.processes[0].lines == 1


def test_file_that_grows(tmp_path: Path, event: Event) -> None:
    """A file that is written while it is read gives what was there, and is read again later with the rest."""
    path = tmp_path / "rank00000.node1.1.jsonl"
    path.write_text(event("process.start", rank=0) + "\n")
    line = event("ddp.init", phase="begin", rank=0, span=1) + "\n"
    done = threading.Event()

    def write() -> None:
        with path.open("a") as stream:
            for _ in range(3000):
                stream.write(line)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    counts: List[int] = []
    while not done.is_set():
        counts.append(_read(path).processes[0].lines)
    thread.join()
    counts.append(_read(path).processes[0].lines)
    assert counts == sorted(counts)
    assert counts[-1] == 3001


def test_pipe_and_devices(tmp_path: Path) -> None:
    """A pipe without a writer and an endless device are reported as unreadable, and are not read."""
    os.mkfifo(str(tmp_path / "pipe.log"))
    os.mkfifo(str(tmp_path / "rank00000.node1.1.jsonl"))
    for path in (tmp_path / "pipe.log", tmp_path / "rank00000.node1.1.jsonl", tmp_path, Path("/dev/zero")):
        run = _read(path)
        assert run.processes == []
        assert list(run.inventory.unreadable.values()) == ["Not a regular file."]


def test_links_that_lead_nowhere(tmp_path: Path, event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to itself and a broken link are reported; the files next to them are read, and the newest run is found."""
    folder = tmp_path / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "rank00000.node1.1.jsonl").write_text(event("process.start", rank=0) + "\n")
    (folder / "rank00001.node1.2.jsonl").symlink_to("rank00001.node1.2.jsonl")
    (folder / "rank00002.node1.3.jsonl").symlink_to("nowhere")
    (tmp_path / "runs" / "r2").symlink_to(tmp_path / "runs")
    monkeypatch.setenv("DDP_PROBE_DIR", str(tmp_path / "runs"))
    run = load()
    assert list(run.ranks) == [0]
    assert sorted(os.path.basename(path) for path in run.inventory.unreadable) == ["rank00001.node1.2.jsonl", "rank00002.node1.3.jsonl"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert list(_read(loop).inventory.unreadable) == [str(loop)]


def test_no_permission(tmp_path: Path, event: Event) -> None:
    """A folder without permission is named as closed, and of a file the reason is; if the tests run as root, nothing stops them."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "rank00000.node1.1.jsonl").write_text(event("process.start", rank=0) + "\n")
    log = tmp_path / "train.log"
    log.write_text("ValueError: x\n")
    log.chmod(0)
    closed.chmod(0)
    try:
        if os.geteuid() == 0:
            assert [len(_read(path).inventory.files) for path in (closed, log)] == [1, 1]
        else:
            with pytest.raises(ProbeError, match="closed may not be read"):
                _read(closed)
            assert list(_read(log).inventory.unreadable.values()) == ["Permission denied"]
    finally:
        closed.chmod(0o700)


def test_copies_and_gaps(tmp_path: Path, event: Event) -> None:
    """A copy of a rank's file leaves one rank, and ranks without a file are missing."""
    path = tmp_path / "rank00003.node1.1.jsonl"
    path.write_text(event("process.start", rank=3, world_size=6) + "\n")
    shutil.copy(str(path), str(tmp_path / "rank00003.node1.1-copy.jsonl"))
    run = _read(tmp_path)
    assert list(run.ranks) == [3]
    assert run.missing == [0, 1, 2, 4, 5]


def test_nothing_is_executed(tmp_path: Path, event: Event) -> None:
    """What a log says is never run: neither a pickle, nor a format, nor a page's script; nothing appears beside the log."""
    mark = tmp_path / "mark"
    pickled = b"cposix\nsystem\n(S'touch %s'\ntR." % str(mark).encode()
    (tmp_path / "a.log").write_bytes(pickled + b"\nRuntimeError: $(touch %s) `touch %s` {0.__init__.__globals__}\n" % ((str(mark).encode(),) * 2))
    (tmp_path / "rank00000.node1.1.jsonl").write_text(event("process.start", rank=0, host="$(touch %s)" % mark, ts="{0.__class__}") + "\n")
    before = sorted(os.listdir(str(tmp_path)))
    modules = set(sys.modules)
    for path in (tmp_path / "a.log", tmp_path):
        _read(path)
    assert sorted(os.listdir(str(tmp_path))) == before
    assert {"pickle", "torch"} & (set(sys.modules) - modules) == set()


def test_json_lines_of_another_program(tmp_path: Path) -> None:
    """A file that bears a probe's name and holds other JSON is unreadable, with its lines counted."""
    path = tmp_path / "rank00000.node1.1.jsonl"
    path.write_text("".join(json.dumps({"step": step, "loss": 0.5}) + "\n" for step in range(10)))
    run = _read(path)
    assert run.inventory.unreadable == {str(path): "It contains no event."}
    assert run.inventory.skipped == {str(path): {"not an event": 10}}


def test_empty_name() -> None:
    """An empty path, as of a variable that is not set, is named as one."""
    with pytest.raises(ProbeError, match="A path is empty"):
        load([""])
