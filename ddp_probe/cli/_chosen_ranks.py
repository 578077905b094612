"""Reads the ranks that --rank names: 3, or 0,4-7, or L for the launchers."""

import re
from typing import Callable, List, Optional, Tuple

from ddp_probe.shared.errors import UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

Ranks = Callable[[Optional[int]], bool]


def ranks_of(texts: List[str]) -> Ranks:
    """Return a function that says whether a rank was requested; a launcher has no rank."""
    if not texts:
        return _any
    spans: List[Tuple[int, int]] = []
    launchers = False
    for part in ",".join(texts).split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match:
            spans.append((int(match[1]), int(match[2] or match[1])))
        elif part.strip().lower() in ("l", "launcher"):
            launchers = True
        else:
            raise UsageError(
                say("{text} is not a valid rank.", text=quoted(repr(part))),
                "Write --rank 3, --rank 0,4-7, or --rank L for the launchers.",
            )
    return lambda rank: launchers if rank is None else any(low <= rank <= high for low, high in spans)


def _any(_rank: Optional[int]) -> bool:
    return True
