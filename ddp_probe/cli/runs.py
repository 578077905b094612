"""List the runs, newest first: how old, how many ranks of how many, on how many hosts, how they ended, how large.

Runs are collected in DDP_PROBE_DIR, or in ddp_probe_runs below this folder;
DIR names another folder. Only the first and the last lines of the files are
read; 'report' reads all of it.

ended is one of
  well         every rank that there should be has an end line, none with a
               failure, and so have the launchers
  failed       a rank ended by an exception, or a launcher with an exit code
  killed       a launcher tells of a child that a signal ended, SIGTERM aside
  running      a process of it is alive on this host
  no end       none of these, and an end line is missing: killed, or still
               running elsewhere

--json prints a list of objects, newest first: name, folder, modified (Unix
time), age (seconds), ranks_seen, ranks_expected (null where nothing tells),
hosts (names), ended, because, files, bytes.
"""

import argparse
import json
import os
import shutil
import sys
from typing import Any, Dict, List

from ddp_probe.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the folder that collects the runs")
    parser.add_argument("--json", action="store_true", help="print one JSON list")


def run(args: argparse.Namespace) -> int:
    """Look and print."""
    if hasattr(sys.stdout, "reconfigure"):  # A folder's name may hold what this locale cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    from ddp_probe.read import find, glance
    from ddp_probe.report import safe

    folder = args.folder or find.root()
    if args.folder and not os.path.isdir(folder):
        raise UsageError("There is no folder %s." % safe.line(folder, 300), "Name the folder that collects the runs, or none for %s." % find.root())
    found = [glance.at(path) for path in find.runs(folder)]
    if args.json:
        print(json.dumps([one._asdict() for one in found], indent=2))
    elif found:
        print("\n".join(_table([one._asdict() for one in found])))
    if not found:
        raise find.no_run(folder)
    return 0


def _table(rows: List[Dict[str, Any]]) -> List[str]:
    from ddp_probe.report import event_line, layout

    lines = [["run", "age", "ranks", "hosts", "size", "ended"]]
    for row in rows:
        expected = row["ranks_expected"]
        ranks = "%d/%s" % (row["ranks_seen"], "?" if expected is None else expected)
        how = row["because"] or row["ended"] if row["ended"] != "running" else ", ".join(filter(None, ("running", row["because"])))
        lines.append([row["name"], _age(row["age"]), ranks, str(len(row["hosts"])), _size(row["bytes"]), how])
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    return [event_line.cut(line, width) if width else line for line in layout.columns(lines)]


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return "%d%s" % (seconds // size, unit)
    return "%ds" % max(seconds, 0)


def _size(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return "%d %s" % (amount, unit)
        amount /= 1000
    return "%.1f GB" % amount
