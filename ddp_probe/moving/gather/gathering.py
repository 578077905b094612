"""Rank 0's side of one host: receives its fold and the files of its run, within bounds, and knows what did not arrive and why."""

import threading
from typing import Dict, List, Sequence

from ddp_probe.moving.gather import choice
from ddp_probe.moving.gather.keep import Keep, KeptFile
from ddp_probe.moving.gather.messages import MOST_FILES, Begin, Finished, Folding, GatherLine, Hello, Holds, Leave, Nothing, Offer, Sent
from ddp_probe.wording.words import size


class HostFiles:
    """A rank that has connected; if it leads its host, the files of the host."""

    def __init__(self, hello: Hello) -> None:
        self.hello = hello
        self.host = choice.name_of_host(hello.host)
        self.over = False  # Nothing more arrives.
        self.same = False  # All it has is what other hosts have brought.
        self.nothing = ""  # Why it brings nothing.
        self.cut = ""  # Why the connection ended before everything had arrived.
        self.doing = "had not said what it has"
        self.bytes = 0  # Received.
        self.fold = False  # Its fold is here.
        self.logs = 0  # Files of its run that are here.
        self.not_kept: Dict[str, List[str]] = {}  # Why files are not here, to their names; its fold has an empty name.
        self.too_many: Dict[str, int] = {}  # Files that --max-bytes leaves out, to their sizes.

    @property
    def who(self) -> str:
        """The host and its rank, as a sentence names it."""
        return "%s (rank %d)" % (self.host, self.hello.rank)

    def lacking(self) -> List[str]:
        """Return the missing parts of its fold, one sentence each."""
        if not self.hello.leads or self.same:
            return []
        if self.nothing:
            return ["%s brings no fold: %s" % (self.who, self.nothing.rstrip("."))]
        if self.over and not (self.fold or self.cut or self.not_kept):
            return ["%s has ended without a fold" % self.who]
        sentences = [] if self.fold else self._cut()
        return sentences + ["the fold of %s is not kept: %s" % (self.who, why) for why, files in self.not_kept.items() if "" in files]

    def left_out(self) -> List[str]:
        """Return which other files are missing, one sentence each; the report does not need them."""
        sentences = self._cut() if self.fold else []
        for why, files in self.not_kept.items():
            count = len([name for name in files if name])
            sentences += ["%d files of %s are not kept: %s" % (count, self.who, why)] if count else []
        if self.too_many:
            more = size(sum(self.too_many.values()))
            sentences.append("%d files of %s, %s, are left out: --max-bytes" % (len(self.too_many), self.who, more))
        return sentences

    def _cut(self) -> List[str]:
        return ["%s %s: it %s" % (self.who, self.cut, self.doing)] if self.cut else []

    def refuse(self, name: str, why: str) -> None:
        """Note that a file is not here."""
        self.not_kept.setdefault(why, []).append(name)


LARGEST_FOLD = 1 << 30


class Shared:
    """What the hosts of one gather share: the logs that have been brought, and the room for files."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._left = most
        self._brought: Dict[str, int] = {}  # Names of logs, to the rank whose host brings them.

    def claim(self, rank: int, logs: Sequence[str]) -> "list[str]":
        """Return which of these logs another host already brings; the others belong to this host. Hosts may share one folder."""
        with self._lock:
            out = [log for log in logs if log in self._brought]
            self._brought.update((log, rank) for log in logs if log not in self._brought)
            return out

    def give_back(self, rank: int) -> None:
        """Let another host bring the logs of a host whose fold has not arrived."""
        with self._lock:
            self._brought = {log: by for log, by in self._brought.items() if by != rank}

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
        """Receive everything until the end."""
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
            self._files.doing = "had folded %d %% of its %s" % (min(percent, 100), size(message.everything))
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
        if offer.name and not choice.accepted(offer.name):
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
            self._files.refuse("", "it has %s" % size(offer.size))
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
                self._files.doing = "had sent %s of %s of %s" % (size(kept.size), size(offer.size), what)
            kept.end(self._line.hear(Sent).sha256)
        finally:
            kept.close()
        if kept.fault:
            far = "" if offer.name or kept.is_damaged else ", after %s of %s" % (size(kept.size), size(offer.size))
            self._files.refuse(offer.name, kept.fault + far)
        elif offer.name:
            self._files.logs += 1
        else:
            self._files.fold = True
        self._files.doing = "had sent %s" % what
