"""What a check is made of: its page, and its answer: ok, warn, fail, or skipped because."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

OK, WARN, FAIL, SKIPPED, UNKNOWN = "ok", "warn", "fail", "skipped", "unknown"
ORDER = (FAIL, UNKNOWN, WARN, OK, SKIPPED)
"""The worst first."""
TEXTS = ("title", "looks_at", "remedy")
"""What a person reads of a check, in each language."""


class Answer(NamedTuple):
    """What a check says of this host."""

    status: str  # ok, warn (a job may start and do something else than intended), fail, skipped, unknown (the check could not look).
    saw: str  # One sentence, with names and numbers; why, if the check was skipped.
    remedy: str = ""  # What to do; empty if nothing is to be done.
    details: Sequence[str] = ()  # Further lines, such as the card that each rank got.
    blocks: bool = False  # What needs this check cannot look either.


class Check(NamedTuple):
    """One thing that a job needs from a host, and how to look at it. Its check() is in the same file."""

    id: str  # DOC101; it never changes.
    slug: str  # torch-imports; it never changes.
    title: str  # One sentence: what it looks like when it is right.
    looks_at: str  # What is read, started or tried.
    remedy: str  # What to do in general; an answer says it with names and numbers.
    needs: Tuple[str, ...] = ()  # Slugs of checks that this check depends on: it is skipped if one of them fails.
    live: bool = False  # It uses cards, or starts ranks: left out with --static.
    of_hosts: bool = False  # It compares the hosts of a launch.

    def ok(self, saw: str, *details: str) -> Answer:
        """Return that all is well."""
        return Answer(OK, saw, "", details)

    def warn(self, saw: str, remedy: str = "", details: Sequence[str] = ()) -> Answer:
        """Return that a job may start, and not do what was intended."""
        return Answer(WARN, saw, remedy or self.remedy, details)

    def fail(self, saw: str, remedy: str = "", details: Sequence[str] = ()) -> Answer:
        """Return that a job will fail."""
        return Answer(FAIL, saw, remedy or self.remedy, details, blocks=True)

    def skipped(self, because: str) -> Answer:
        """Return that there is nothing to look at."""
        return Answer(SKIPPED, because)

    def blocked(self, because: str) -> Answer:
        """Return that it was skipped as something that it needs is not there; what needs this check is skipped as well."""
        return Answer(SKIPPED, because, blocks=True)

    def unknown(self, because: str, remedy: str = "") -> Answer:
        """Return that the check could not look, and what to try next."""
        return Answer(UNKNOWN, because, remedy or self.remedy, blocks=True)


class Result(NamedTuple):
    """A check with its answer."""

    check: Check
    answer: Answer
    seconds: float

    def as_json(self) -> Dict[str, Any]:
        """Return it as `doctor --json` prints it."""
        return {
            "id": self.check.id,
            "slug": self.check.slug,
            "title": self.check.title,
            "looks_at": self.check.looks_at,
            "status": self.answer.status,
            "saw": self.answer.saw,
            "remedy": self.answer.remedy,
            "details": list(self.answer.details),
            "seconds": round(self.seconds, 3),
        }


def verdict(results: List[Result]) -> str:
    """Return found if a check failed, undecided if one could not look, else clear."""
    statuses = {result.answer.status for result in results}
    return "found" if FAIL in statuses else "undecided" if UNKNOWN in statuses else "clear"
