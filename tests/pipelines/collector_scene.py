"""What every collector has to get through: runs that appear and grow while it reads, a file cut in mid-line, a long line, a restart.

A collector that is run by a test delivers to a server on the loopback interface that takes what Loki takes.
"""

import calendar
import contextlib
import http.server
import json
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from pipeline_pages import Place, configured, recorded

OLD, NEW = "03_model_on_cpu_on_one_rank", "08_long_validation_on_rank0"
_PATIENCE = 90.0
Key = Tuple[str, int, int]


class Entry(NamedTuple):
    """One entry as Loki gets it."""

    labels: Dict[str, str]
    ns: int
    line: str
    metadata: Dict[str, str]


def key(event: Dict[str, Any]) -> Key:
    """Return what no two events share."""
    return (event["run"], event["pid"], event["seq"])


class Scene:
    """Two runs of one folder: one that is complete but for half a line, and one that is written while the collector reads."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.expected: Dict[Key, Dict[str, Any]] = {}
        self._later: List[Tuple[Path, str]] = []

    def before(self) -> None:
        """Write the run that is there when the collector starts; its first file has lost the end of its last line."""
        files = recorded(OLD)
        for number, (name, lines) in enumerate(files.items()):
            path = self._folder(lines) / name
            whole = lines if number else lines[:-1]
            self._write(path, whole)
            if not number:
                _append(path, lines[-1][: len(lines[-1]) // 2])

    def during(self) -> None:
        """Write most of a new run a piece at a time, with one line in two halves and one of a megabyte; keep the rest for later."""
        for name, lines in recorded(NEW).items():
            path = self._folder(lines) / name
            long = json.dumps({**json.loads(lines[0]), "argv": ["x" * (1 << 20)]}, separators=(",", ":"))
            self._write(path, [long])
            _append(path, lines[1][:40])
            time.sleep(0.3)  # so that the collector meets the half
            _append(path, lines[1][40:] + "\n")
            self._expect(lines[1])
            self._write(path, lines[2:-2])
            self._later += [(path, line) for line in lines[-2:]]

    def later(self) -> None:
        """Write the rest, while no collector runs."""
        for path, line in self._later:
            self._write(path, [line])

    def _folder(self, lines: Sequence[str]) -> Path:
        folder = self.runs / json.loads(lines[0])["run"]
        if not folder.exists():
            folder.mkdir(parents=True)
            latest = self.runs / "latest"
            if latest.is_symlink():
                latest.unlink()
            latest.symlink_to(folder.name)
        return folder

    def _write(self, path: Path, lines: Sequence[str]) -> None:
        for line in lines:
            _append(path, line + "\n")
            self._expect(line)

    def _expect(self, line: str) -> None:
        event = json.loads(line)
        self.expected[key(event)] = event


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


@contextlib.contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen]:  # type: ignore[type-arg]  # not generic on Python 3.8
    """Run a collector until the block ends, then ask it to stop."""
    with log.open("ab") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL)
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def wait_for(condition: Callable[[], bool], log: Path) -> None:
    """Wait until something is so; show the collector's own words if it never is."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, log.read_text(errors="replace")[-4000:]
        time.sleep(0.1)


class Received:
    """A server that keeps what is pushed to it; `entries_of` reads the body of a push."""

    def __init__(self, entries_of: Callable[[bytes], Iterable[Entry]]) -> None:
        self.entries: List[Entry] = []
        received = self.entries

        class Handler(http.server.BaseHTTPRequestHandler):
            """Takes a push."""

            def do_POST(self) -> None:
                """Keep the entries."""
                received.extend(entries_of(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


def entries_of_json(body: bytes) -> Iterator[Entry]:
    """Yield the entries of a push in JSON."""
    for stream in json.loads(body)["streams"]:
        for ns, line, *more in stream["values"]:
            yield Entry(stream["stream"], int(ns), line, dict(*more))


class Outcome(NamedTuple):
    """What was written, what arrived in Loki's place, and what the collector printed."""

    expected: Dict[Key, Dict[str, Any]]
    entries: List[Entry]
    printed: str

    def events(self) -> List[Dict[str, Any]]:
        """Return what arrived, as events."""
        return [json.loads(entry.line) for entry in self.entries]


def collect(work: Path, name: str, command: Sequence[str], entries_of: Callable[[bytes], Iterable[Entry]]) -> Outcome:
    """Let a collector with a configuration of the pages read both runs, with a restart in it; `command` ends before the configuration's path."""
    server, scene, log = Received(entries_of), Scene(work / "runs"), work / "log.txt"
    config = work / name
    (work / "state").mkdir()
    config.write_text(configured(name, Place(scene.runs, work / "state", server.port)), encoding="utf-8")
    started = [*command[:-1], command[-1] + str(config)]
    try:
        scene.before()
        with running(started, log):
            wait_for(lambda: bool(server.entries), log)
            scene.during()
            wait_for(lambda: len(server.entries) >= len(scene.expected), log)
        scene.later()
        with running(started, log):
            wait_for(lambda: len(server.entries) >= len(scene.expected), log)
    finally:
        server.close()
    return Outcome(scene.expected, server.entries, log.read_text(errors="replace"))


def nanoseconds(text: str) -> int:
    """Return the Unix time of an event's ``ts``."""
    seconds, fraction = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(fraction.ljust(9, "0"))
