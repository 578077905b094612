"""Rank 0's side: accepts the hosts, says which run is wanted, keeps what they send, and finally sends the exit code to all ranks."""

import contextlib
import resource
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from ddp_probe.moving.gather import choice
from ddp_probe.moving.gather.gathering import HostFiles, HostSession, Shared
from ddp_probe.moving.gather.keep import Keep
from ddp_probe.moving.gather.messages import VERSION, ExitCode, GatherLine, Hello, RunOnHost, Wanted
from ddp_probe.shared.door import Door, Guests, refusal
from ddp_probe.shared.meeting import MeetingPlace
from ddp_probe.wording.words import size, spans

_HELLO = 10.0  # Seconds that a new connection has for its first message.
_LEAVE = 5.0  # Seconds that ranks have to take the exit code.
_MOST_NAMED = 64  # Ranks of other launches that are named.
_TURN = 0.2
_REFUSED = "a rank that does not belong to this gather came from %s: RANK %s of %s"


_LATE = "it came when rank 0 had ended its wait for other ranks"
_OTHER_VERSION = "this host has another version of ddp_probe than rank 0, and they do not understand each other"


class GatherHub:
    """One gather at rank 0."""

    def __init__(self, listening: socket.socket, place: MeetingPlace, seconds: float, *, logs: bool, most: int) -> None:
        _allow_many_connections()
        self._place, self._seconds, self._logs = place, seconds, logs
        self._door = Door(listening, place.token, self._enter)
        self._changed = threading.Condition()
        self._guests = Guests(place.world, place.run)
        self.token = self._guests.token
        self._hosts: Dict[int, HostFiles] = {}
        self._shared = Shared(most)
        self._until = time.monotonic() + seconds
        self._wanted: Optional[Wanted] = None
        self._keep: Optional[Keep] = None
        self._code: Optional[int] = None
        self._connected = 0

    def open(self) -> None:
        """Accept ranks from now on."""
        self._door.open()

    def chosen(self, alive: Callable[[], bool]) -> Optional[RunOnHost]:
        """Return the run to gather: that of rank 0's host, or the newest of the others if it has none."""
        while self._wait(lambda: 0 in self._hosts or not alive()):
            pass
        local_run = self._hosts[0].hello.found if 0 in self._hosts else None
        while local_run is None and self._waits_for_ranks() and alive():
            self._wait(lambda: not self._waits_for_ranks())
        with self._changed:
            return local_run or choice.best(files.hello.found for files in self._hosts.values() if files.hello.found is not None)

    def take(self, run: RunOnHost, keep: Keep, draw: Callable[[int, int, str], None]) -> None:
        """Receive what the hosts bring, until all are done, or do not connect within the time limit."""
        with self._changed:
            self._wanted, self._keep = Wanted("", run, self._logs), keep
            self._changed.notify_all()
        saved = time.monotonic()
        while self._wait(lambda: not self._waits_for_ranks() and all(files.over for files in self._hosts.values())):
            draw(*self._progress())
            if time.monotonic() - saved > 1.0:
                keep.save()
                saved = time.monotonic()
        with self._changed:
            self._guests.closed = True

    def tell(self, code: int) -> None:
        """Send the exit code to all ranks, and let them leave."""
        with self._changed:
            self._code, self._guests.closed = code, True
            self._changed.notify_all()
        until = time.monotonic() + _LEAVE
        while self._connected and time.monotonic() < until:
            self._wait(lambda: not self._connected)
        self._door.close()

    def _wait(self, done: Callable[[], bool]) -> bool:
        """Wait a moment; return whether it is still to be waited for."""
        with self._changed:
            return not self._changed.wait_for(done, _TURN)

    def _waits_for_ranks(self) -> bool:
        return len(self._hosts) < self._place.world and time.monotonic() < self._until

    def _progress(self) -> "tuple[int, int, str]":
        with self._changed:
            open_ones = [files for files in self._hosts.values() if not files.over]
            received = sum(files.bytes for files in self._hosts.values())
        doing = "%s %s" % (open_ones[0].host, open_ones[0].doing) if open_ones else "waiting for the others"
        return len(self._hosts) - len(open_ones), self._place.world, "%s, %s" % (size(received), doing)

    # --- the result

    def hosts(self) -> List[HostFiles]:
        """Return the ranks that bring files, by rank."""
        with self._changed:
            return [files for _, files in sorted(self._hosts.items()) if files.hello.leads]

    def lacking(self) -> List[str]:
        """Return the missing parts of the folds, one sentence each."""
        with self._changed:
            absent = sorted(set(range(self._place.world)) - set(self._hosts))
            sentences = [self._absent(absent)] if absent else []
            for _, files in sorted(self._hosts.items()):
                sentences += files.lacking()
            return sentences

    def _absent(self, ranks: List[int]) -> str:
        who = "rank%s %s of %d did not reach" % ("" if len(ranks) == 1 else "s", spans(ranks), self._place.world)
        return "%s %s:%d within %g s" % (who, self._place.address, self._place.port, self._seconds)

    def strangers(self) -> List[str]:
        """Return who was refused, one sentence each, and how many did not know the launch, in one."""
        unknown = self._door.strangers()
        with self._changed:
            refused = [_REFUSED % (stranger["host"], stranger["rank"], stranger["world"]) for stranger in self._guests.strangers[:_MOST_NAMED]]
        return refused + ([unknown] if unknown else [])

    # --- the connections, each in a separate thread

    def _enter(self, connected: socket.socket) -> None:
        line = GatherLine(connected, self._seconds)
        with self._changed:
            self._connected += 1
        threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: GatherLine) -> None:
        try:
            hello = line.hear_first(_HELLO)
            files = self._admitted(hello)
            if files is None:
                line.say(Wanted(self._why_refused(hello)))
                return
            self._bring(line, files)
            self._when(lambda: self._code is not None)
            if not files.cut:
                line.say(ExitCode(self._code or 0))
        except (OSError, ValueError):  # a rank that has ended while it waited
            pass
        finally:
            with contextlib.suppress(OSError):
                line.close()
            with self._changed:
                self._connected -= 1
                self._changed.notify_all()

    def _bring(self, line: GatherLine, files: HostFiles) -> None:
        try:
            if files.hello.leads:
                self._when(lambda: self._wanted is not None or self._code is not None)
                line.say(self._wanted or Wanted())
                if self._wanted is not None and self._keep is not None:
                    HostSession(line, files, self._keep, self._shared).run()
            else:
                line.say(Wanted())
        except socket.timeout:
            files.cut = "stopped sending for %g s" % self._seconds
        except (OSError, ValueError) as exc:
            files.cut = "was cut off" if isinstance(exc, ConnectionError) else "was cut off (%s)" % exc
        finally:
            if files.hello.leads and not files.fold:
                self._shared.give_back(files.hello.rank)
            with self._changed:
                files.over = True
                self._changed.notify_all()

    def _admitted(self, hello: Hello) -> Optional[HostFiles]:
        with self._changed:
            if hello.gather != VERSION or not self._guests.take(_as_guest(hello)):
                return None
            files = self._hosts[hello.rank] = HostFiles(hello)
            self._changed.notify_all()
            return files

    def _why_refused(self, hello: Hello) -> str:
        if hello.gather != VERSION:
            return _OTHER_VERSION
        return _LATE if self._guests.closed else str(refusal(_as_guest(hello))["refused"])

    def _when(self, done: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(done)


def _as_guest(hello: Hello) -> Dict[str, Any]:
    return {"rank": hello.rank, "world": hello.world, "run": hello.run, "token": hello.token, "host": hello.host}


def _allow_many_connections() -> None:
    """Use as many open files as this user may have: there is one for each host."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
