"""Rank 0's side of one host: takes its fold, and the files of its run, within bounds."""

import threading
from typing import Dict, Sequence

from ddp_probe.moving.gather import names
from ddp_probe.moving.gather.host_files import HostFiles
from ddp_probe.moving.gather.keep import Keep, KeptFile
from ddp_probe.moving.gather.line import GatherLine
from ddp_probe.moving.gather.messages import MOST_FILES, Begin, Finished, Folding, Holds, Leave, Nothing, Offer, Sent
from ddp_probe.showing.bundle_page import size as human

LARGEST_FOLD = 1 << 30


class Shared:
    """What the hosts of one gather share: the logs that have been brought, and the room for files."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._left = most
        self._brought: Dict[str, int] = {}  # Names of logs, to the rank whose host brings them.

    def claim(self, rank: int, logs: Sequence[str]) -> "list[str]":
        """Return which of these logs another host brings already; the others are this one's. Hosts may share one folder."""
        with self._lock:
            out = [log for log in logs if log in self._brought]
            self._brought.update((log, rank) for log in logs if log not in self._brought)
            return out

    def give_back(self, rank: int) -> None:
        """Let another host bring the logs of one whose fold has not come."""
        with self._lock:
            self._brought = {log: each for log, each in self._brought.items() if each != rank}

    def take(self, size: int) -> bool:
        """Take room for a file."""
        with self._lock:
            fits = size <= self._left
            self._left -= size if fits else 0
            return fits


class HostSession:
    """One host that brings its files."""

    def __init__(self, line: GatherLine, files: HostFiles, keep: Keep, shared: Shared) -> None:
        self._line, self._files, self._keep, self._shared = line, files, keep, shared
        self._name = ""
        self._offers = 0

    def run(self) -> None:
        """Take what comes until its end."""
        message = self._line.hear_any()
        if isinstance(message, Nothing):
            self._files.nothing = message.why
            return
        if not isinstance(message, Holds):
            raise ValueError("it sends files before their names")
        out = self._shared.claim(self._files.hello.rank, message.logs)
        self._files.same = len(out) == len(message.logs)
        mine = set(message.logs).difference(out)
        if mine:
            self._name = self._keep.name_for(self._files.host, sorted(mine))
        self._files.doing = "was about to fold"
        self._line.say(Leave(out))
        while self._next():
            pass

    def _next(self) -> bool:
        message = self._line.hear_any()
        if isinstance(message, Folding):
            percent = 100 * message.read // max(message.everything, 1)
            self._files.doing = "had folded %d %% of its %s" % (min(percent, 100), human(message.everything))
        elif isinstance(message, Nothing):
            self._files.nothing = message.why
            return False
        elif isinstance(message, Offer):
            self._offer(message)
        elif isinstance(message, Holds):
            raise ValueError("it sends the names of its files twice")
        return not isinstance(message, Finished)

    def _offer(self, offer: Offer) -> None:
        """Answer an offer, and take the file if it is wanted."""
        self._offers += 1
        if self._offers > MOST_FILES or not self._name:
            raise ValueError("it offers more files than it has")
        if offer.name and not names.accepted(offer.name):
            raise ValueError("it offers a file of a name that no run has")
        kept = KeptFile(self._keep.log_of(self._name, offer.name) if offer.name else self._keep.fold_of(self._name))
        have, why = kept.have(), self._why_not(offer)
        if why:
            have.not_wanted = why
        self._line.say(have)
        if not why:
            self._take(offer, kept)

    def _why_not(self, offer: Offer) -> str:
        if not offer.name and offer.size > LARGEST_FOLD:
            self._files.refuse("", "it has %s" % human(offer.size))
            return "too large"
        if offer.name and not self._shared.take(offer.size):
            self._files.too_many[offer.name] = offer.size
            return "--max-bytes"
        return ""

    def _take(self, offer: Offer, kept: KeptFile) -> None:
        what = offer.name or "its fold"
        try:
            kept.begin(self._line.hear(Begin).at)
            for piece in self._line.pieces(offer.size - kept.size):
                kept.add(piece)
                self._files.bytes += len(piece)
                self._files.doing = "had sent %s of %s of %s" % (human(kept.size), human(offer.size), what)
            kept.end(self._line.hear(Sent).sha256)
        finally:
            kept.close()
        if kept.fault:
            far = "" if offer.name or kept.is_damaged else ", after %s of %s" % (human(kept.size), human(offer.size))
            self._files.refuse(offer.name, kept.fault + far)
        elif offer.name:
            self._files.logs += 1
        else:
            self._files.fold = True
        self._files.doing = "had sent %s" % what
