"""What rank 0 knows of the files of one host: how far they have come, and what did not come and why."""

from typing import Dict, List

from ddp_probe.moving.gather import names
from ddp_probe.moving.gather.messages import Hello
from ddp_probe.showing.bundle_page import size as human


class HostFiles:
    """A rank that has come; if it leads its host, the files of the host."""

    def __init__(self, hello: Hello) -> None:
        self.hello = hello
        self.host = names.of_host(hello.host)
        self.over = False  # Nothing more comes.
        self.same = False  # All it has is what other hosts have brought.
        self.nothing = ""  # Why it brings nothing.
        self.cut = ""  # Why the connection ended before everything had come.
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
        """Return what of its fold is not here, one sentence each."""
        if not self.hello.leads or self.same:
            return []
        if self.nothing:
            return ["%s brings no fold: %s" % (self.who, self.nothing.rstrip("."))]
        if self.over and not (self.fold or self.cut or self.not_kept):
            return ["%s has ended without a fold" % self.who]
        found = [] if self.fold else self._cut()
        return found + ["the fold of %s is not kept: %s" % (self.who, why) for why, files in self.not_kept.items() if "" in files]

    def left_out(self) -> List[str]:
        """Return which other files are not here, one sentence each; the report does not need them."""
        found = self._cut() if self.fold else []
        for why, files in self.not_kept.items():
            count = len([name for name in files if name])
            found += ["%d files of %s are not kept: %s" % (count, self.who, why)] if count else []
        if self.too_many:
            size = human(sum(self.too_many.values()))
            found.append("%d files of %s, %s, are left out: --max-bytes" % (len(self.too_many), self.who, size))
        return found

    def _cut(self) -> List[str]:
        return ["%s %s: it %s" % (self.who, self.cut, self.doing)] if self.cut else []

    def refuse(self, name: str, why: str) -> None:
        """Note that a file is not here."""
        self.not_kept.setdefault(why, []).append(name)
