"""Finds the ledgers of a run, one per rank: of a rank that was started again, the latest one."""

import glob
import os
import re
from typing import List, Optional

from ddp_probe import ledger_schema as schema
from ddp_probe.errors import UnusableError
from ddp_probe.read import find

_RANK = re.compile(r"rank(\d+)\.")


def folders(run: Optional[str]) -> List[str]:
    """Return the folders of a run; of a single file, the folder that it is in."""
    sources = find.sources([run] if run else [])
    inside = [os.path.dirname(file) or "." for file in (*sources.events, *sources.texts)]
    return list(dict.fromkeys(map(os.path.abspath, sources.folders or inside)))


def logs(places: List[str]) -> List[str]:
    """Return the logs of the ranks in these folders."""
    return sorted(file for place in places for file in glob.glob(os.path.join(glob.escape(place), "rank*.jsonl")))


def ledgers(places: List[str]) -> List[str]:
    """Return the ledgers in these folders."""
    return sorted(file for place in places for file in glob.glob(os.path.join(glob.escape(place), "rank*" + schema.SUFFIX)))


def log_of(ledger: str) -> str:
    """Return the log of the process that writes a ledger."""
    return ledger[: -len(schema.SUFFIX)] + ".jsonl"


def rank_of(file: str) -> int:
    """Return the rank in a file's name; -1 for none."""
    found = _RANK.match(os.path.basename(file))
    return int(found[1]) if found else -1


def no_ledger(places: List[str]) -> UnusableError:
    """Return the error for a run whose ranks wrote none."""
    return UnusableError(
        what="There is no ledger in %s." % places[0],
        why="No file in it ends in %s: its ranks have made none, or they ran under an older ddp_probe." % schema.SUFFIX,
        what_to_do="'python -m ddp_probe report %s' reads its logs." % places[0],
    )
