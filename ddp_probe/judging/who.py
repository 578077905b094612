"""Which ranks and failures a finding is about, and which lines of a log are failures: torch warns of every attempt to connect."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

from ddp_probe.judging.printed import Match, matches
from ddp_probe.judging.rule import Rule
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run


def ranks(processes: Iterable[Optional[LoggedProcess]]) -> List[int]:
    """Return the ranks of a launch among these processes."""
    return sorted({process.rank for process in processes if process is not None and process.rank is not None and not process.alone})


def ranks_of(members: Iterable[Union[LoggedProcess, Failed]]) -> List[int]:
    """Return the ranks of processes or failures in their order, without those that have none."""
    return [member.rank for member in members if member.rank is not None]


def deaths(run: Run) -> Dict[int, Death]:
    """Return how ranks ended according to their launchers, by rank."""
    return {death.rank: death for death in reversed(run.deaths) if death.rank is not None}


def through(run: Run, calls: "Iterable[LoggedCall[Any]]") -> List[Failed]:
    """Return the failures that went through one of these calls."""
    known = set(calls)
    return [failure for failure in run.failures if any(call in known for call in failure.calls)]


def told(rule: Rule, run: Run) -> Iterator[Match]:
    """Yield the failures with one of the rule's texts that a probe recorded: the judge asks about plain logs."""
    return (match for match in matches(rule, run) if match.failure.process is not None)


# Tells a logged failure from a logged warning: torch warns of every attempt to connect, in jobs that go on to do well.

# The beginning of a pattern that must match within one line, other than a warning of torch's C++ or Python log.
NO_WARNING = r"(?m:^)(?!(?:\[rank\d+\]: ?)?\[?W(?:\d{4})? )[^\n]*?"
# The beginning of a pattern that must match within an exception.
RAISED = r"(?:Error|Exception|Assertion\w*|Exit)\b: .*?"
