"""Finds the ledgers of a run, one per rank: of a rank that was started again, the latest one."""

import glob
import os
from typing import List, Optional

from ddp_probe.reading import find, glance
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.errors import UnusableError
from ddp_probe.wording.text import say

_TRIED = 8  # At most this many of the newest runs are looked at.


def folders(run: Optional[str]) -> List[str]:
    """Return the folders of a run; of a single file, the folder that it is in. Without a name, a run that runs on this host comes first."""
    sources = find.files([run or _newest()], "This command")
    inside = [os.path.dirname(file) or "." for file in (*sources.events, *sources.texts)]
    return list(dict.fromkeys(map(os.path.abspath, sources.folders or inside)))


def _newest() -> str:
    """Return the newest of the runs that still run, else the newest: a job that hangs has written its logs longer ago than a job that has ended."""
    newest = find.newest()
    runs = find.runs(find.root())[:_TRIED]
    return newest if len(runs) < 2 else next((folder for folder in runs if glance.at(folder).ended == "running"), newest)


def logs(places: List[str]) -> List[str]:
    """Return the logs of the ranks in these folders."""
    return sorted(file for place in places for file in glob.glob(os.path.join(glob.escape(place), "rank*.jsonl")))


def ledgers(places: List[str]) -> List[str]:
    """Return the ledgers in these folders."""
    files = {file for place in places for suffix in schema.SUFFIXES for file in glob.glob(os.path.join(glob.escape(place), "rank*" + suffix))}
    return sorted(file for file in files if not (file.endswith(schema.TEXT_SUFFIX) and file[: -len(".txt")] in files))


def log_of(ledger: str) -> str:
    """Return the log of the process that writes a ledger."""
    return ledger[: ledger.rindex(schema.SUFFIX)] + ".jsonl"


def no_ledger(places: List[str]) -> UnusableError:
    """Return the error for a run whose ranks wrote none."""
    return UnusableError(
        what=say("No ledger in {folders}.", folders=places[0]),
        why=say(
            "No file in it ends in {suffix}. A rank makes its ledger when it first calls init_process_group; an older ddp_probe makes none.",
            suffix=schema.SUFFIX,
        ),
        what_to_do=say("'python -m ddp_probe report {folder}' reads its logs.", folder=places[0]),
    )
