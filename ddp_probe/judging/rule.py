"""What a rule is made of: its page and the texts it knows; and what it answers: found, or undecided because."""

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import msgspec

from ddp_probe.judging import change as changes
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import Failed
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import command, quoted

ERROR, WARNING = "error", "warning"
HIGH, MEDIUM, LOW = "high", "medium", "low"
NO, YES, ELSEWHERE, AFTER, UNKNOWN = "no", "yes", "elsewhere", "after", "unknown"
RESTARTS = (NO, YES, ELSEWHERE, AFTER, UNKNOWN)
"""Whether a restart helps. No: the code or its settings fail again. Yes: it was chance. Elsewhere: it is this
host or card. After: something has to be freed or waited for first. Unknown: none of these is sure.
"""
SITE = "SITE"
"""The id of every rule that a site has written itself; its slug tells it from the others."""
TEXTS = ("title", "symptom", "evidence", "remedy")
"""What a person reads of a rule, in each language."""


class Evidence(msgspec.Struct, omit_defaults=True, frozen=True):
    """A line of a log, the line of the job that it is about, and what it shows."""

    file: str = ""
    line: int = 0
    site: Optional[Site] = None
    text: str = ""


class HostCard(NamedTuple):
    """A card of a host; or a host without one, or a card of a host that is not known."""

    host: str
    card: str


@dataclass(frozen=True)
class Finding:
    """One cause that a rule has identified in a run, with the evidence and the change to make."""

    id: str
    slug: str
    cause: str
    severity: str  # error: it ended or hung the job, or will; warning: the job goes on, and does not do what it seems to.
    ranks: List[int]  # The guilty ranks; empty if the whole job is.
    verdict: str  # One sentence, with numbers.
    evidence: List[Evidence]
    remedy: str  # The exact change to make.
    fix: str = ""  # The remedy's name for DDP_PROBE_FIX.
    confidence: str = HIGH
    consequences: List[str] = field(default_factory=list)  # What followed from it.
    when: float = field(default=0.0, repr=False)  # Time of its first sign.
    explains: List[Any] = field(default_factory=list, repr=False)  # Failures that it accounts for, which need no other finding.
    edits: List[Any] = field(default_factory=list, repr=False)  # What `remedy` says, as far as it can be applied by a program: change.Edit, each.
    restart: str = UNKNOWN  # Whether a restart without that change helps: one of RESTARTS.
    without: Sequence[HostCard] = ()  # Which hosts and cards to leave out, if the text names them.

    @property
    def page(self) -> str:
        """Return what `explain` calls its rule."""
        return self.slug if self.id == SITE else self.id


class Undecided(NamedTuple):
    """A question that the logs leave open."""

    slug: str
    because: str
    explains: Tuple[Any, ...] = ()  # Failures and deaths that the sentence already mentions.
    next: str = ""  # What a person tries next: never end on "undecided" without it.


def explained(answers: "Iterable[Union[Finding, Undecided]]") -> List[Any]:
    """Return the failures and deaths that these answers account for."""
    return list(chain.from_iterable(answer.explains for answer in answers))


class Printed(NamedTuple):
    r"""What a job prints, or an exception says, if this rule's cause is at work; each is a regular expression.

    `printed.py` searches for it, in time that grows with the text, and finds what re.search finds, with two
    differences. A gap (`.*` or `[^\n]*`) is as short as possible, as if it were written `.*?`. Any other repetition
    without an end has one: `\s+` matches at most 60 characters, `\d+` 30, a class 300, and a group 20 times.

    A named group `rank` (rank1, rank2 …) names the guilty ones; without it they are the ranks that printed it, if a
    log shows them. Groups `host` and `card` name what to leave out, if a restart helps elsewhere.
    """

    pattern: str  # In "Type: message" of one exception, or in one passage of a plain log. Dots match line breaks; case matters.
    beside: str = ""  # Also there: in the exception, its frames ("file:line in function: source"), or anywhere in the plain log.
    unless: str = ""  # Not there: neither in the exception nor in its frames.
    nowhere: str = ""  # Nor there: neither in the exception, nor in its frames, nor anywhere in the plain log.
    says: str = ""  # The verdict; {name} stands for a named group. Without it the rule's title is said.
    next: str = ""  # These words fit other causes as well, so the rule is undecided: what decides.
    ranks: bool = True  # Whether who printed it is guilty of it.
    restart: str = ""  # Whether a restart helps, if these words tell more than the rule does.


class Rule(NamedTuple):
    """One known cause of failure: how to recognise it and what to change.

    Its check() is in the same file; without one, the texts in `printed` decide. Its examples are in tests/rules.
    """

    id: str  # DDP101; it never changes.
    slug: str  # model-never-moved; it never changes.
    cause: str  # A key of the vocabulary of causes.
    title: str  # One sentence: what is wrong.
    symptom: str  # What a person sees.
    evidence: str  # What in the logs proves it, and what distinguishes it from similar causes.
    remedy: str  # What to change, with the lines to write.
    restart: str  # Whether a restart helps if nothing is changed: one of RESTARTS; a comment says why.
    needs: Tuple[str, ...] = ()  # The events that prove it.
    severity: str = ERROR
    fix: str = ""  # The remedy of DDP_PROBE_FIX that helps; a finding that it does not help has none.
    printed: Tuple[Printed, ...] = ()
    yields_to: Tuple[str, ...] = ()  # Slugs of rules that are the better answer if they also have a finding.
    last_resort: bool = False  # It says only which rank was first, not why: any other finding is the better answer.
    needs_all: bool = False  # It needs the files of all ranks: if a file or a line is missing, it is undecided.

    def found(
        self,
        *,
        ranks: Sequence[int],
        verdict: str,
        evidence: Sequence[Evidence],
        when: float,
        remedy: str = "",
        change: changes.Change = (),
        explains: Sequence[Any] = (),
        confidence: str = HIGH,
        severity: str = "",
        fix: Optional[str] = None,
        cause: str = "",
        restart: str = "",
        without: Sequence[HostCard] = (),
    ) -> Finding:
        """Return a finding of this rule. What to change is a change, which becomes words, or words alone."""
        from ddp_probe.judging import job_calls  # It reads the job's source; the page of a rule needs none.

        return Finding(
            self.id,
            self.slug,
            cause or self.cause,
            severity or self.severity,
            sorted(set(ranks)),
            verdict,
            list(evidence),
            changes.words(change, job_calls.names) or remedy or constant(self.remedy),
            self.fix if fix is None else fix,
            confidence,
            [],
            when,
            list(explains),
            changes.edits(change),
            restart or self.restart,
            tuple(without),
        )

    def undecided(self, because: str, explains: Sequence[Any] = (), then: str = "") -> Undecided:
        """Return that the logs leave this rule's question open, and what to try next."""
        explain = say("{explain} says what would settle it.", explain=command("explain", self.id))
        return Undecided(self.slug, because, tuple(explains), then or explain)


def constant(text: str) -> Text:
    """Return a text of a rule's page, which has no places: what looks like one in it is code."""
    return Text(text.replace("{", "{{").replace("}", "}}"), {})


def shown(call: "LoggedCall[Any]", text: str) -> Evidence:
    """Return a call as evidence, by the line written before it."""
    return Evidence(call.at.file, call.at.line, call.site, text)


def first_of(items: Sequence[Evidence], limit: int = 4) -> List[Evidence]:
    """Return the first pieces of evidence, and the number of the others: many ranks may show the same."""
    if len(items) <= limit:
        return list(items)
    following = items[limit]
    others = say("and {more} more", more=len(items) - limit)
    return [*items[:limit], Evidence(following.file, following.line, following.site, others)]


def failed(failure: Failed, text: str = "") -> Evidence:
    """Return a failure as evidence."""
    return Evidence(failure.at.file, failure.at.line, failure.site, text or quoted(failure.said(300)))


def line(at: LogLine, text: str) -> Evidence:
    """Return a line of a log as evidence."""
    return Evidence(at.file, at.line, None, text)
