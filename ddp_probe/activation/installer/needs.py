"""The packages that a traced process needs to record anything, and what to say when they are missing."""

import shlex
import sys
from typing import List, Tuple

from ddp_probe.shared.errors import UnusableError

# tests/packaging/test_built_files.py holds them against the dependencies of the package.
TO_RECORD: Tuple[str, ...] = ("wrapt", "structlog", "msgspec", *(() if sys.version_info >= (3, 9) else ("typing_extensions",)))


def missing(names: List[str], what: str) -> UnusableError:
    """Return what to say when an interpreter lacks these packages."""
    return UnusableError(
        what=what,
        why=sentence(names),
        what_to_do="%s -m pip install %s    # or ddp-probe, which brings them" % (shlex.quote(sys.executable), " ".join(names)),
    )


def sentence(names: List[str]) -> str:
    """Name the packages."""
    return "%s %s not installed." % (", ".join(names), "is" if len(names) == 1 else "are")
