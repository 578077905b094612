"""What differs between ranks and must not, for a report: variables, versions and accelerators, as the rules about them compare these."""

from typing import List

from ddp_probe.judging import _skew
from ddp_probe.judging.rules import environment_skew, hardware_skew, version_skew
from ddp_probe.reading.model import Run

Skew = _skew.Skew


def variables(run: Run) -> List[Skew]:
    """Return the variables that differ and must not."""
    return environment_skew.skews(run)


def versions(run: Run) -> List[Skew]:
    """Return the packages whose versions differ."""
    return version_skew.skews(run)


def accelerators(run: Run) -> List[Skew]:
    """Return how the accelerators of the hosts differ, if they do."""
    found = hardware_skew.skew_of(run)
    return [] if found is None else [found]
