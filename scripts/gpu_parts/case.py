"""A case: a program, how many ranks and cards it takes, and what the report has to say about it. And what came of it."""

from typing import Any, Dict, NamedTuple, Tuple

CLEAR = "clear"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Case(NamedTuple):
    """A program that runs under the probe, and the answer that the report owes."""

    name: str
    shows: str  # What only a card shows.
    program: str  # A file in programs/, or a path.
    expects: Tuple[str, ...]  # The rules one of which has to be the first finding, or CLEAR.
    at: Tuple[int, ...] = ()  # The ranks that the finding names; empty: any.
    ranks: int = 1
    cards: int = 1  # How many cards the job sees.
    on_cpu: bool = False  # Whether a rehearsal with gloo on the CPU owes the same answer.
    seconds: int = 120  # The time limit of one launch.
    environment: Dict[str, str] = {}
    has_cost: bool = False  # It also runs without the probe, and prints how long a step takes.

    @property
    def expected(self) -> str:
        """Return what the report has to say, as one text."""
        return " or ".join(self.expects) + of_ranks(self.at)


class Outcome(NamedTuple):
    """What came of a case."""

    case: Case
    status: str
    said: str = ""  # What the report said.
    because: str = ""  # Why it is not passed, or what was measured.
    seconds: float = 0.0

    def as_json(self) -> Dict[str, Any]:
        """Return it for --json."""
        case = self.case
        known = {"case": case.name, "ranks": case.ranks, "needs_cards": case.cards, "expected": case.expected}
        return {**known, "status": self.status, "said": self.said, "because": self.because, "seconds": round(self.seconds, 1)}


def of_ranks(ranks: Tuple[int, ...]) -> str:
    """Return the ranks as the end of an answer."""
    return " at %s" % ", ".join(map(str, ranks)) if ranks else ""
