"""List the runs, newest first: how old, how many ranks of how many, the verdict, how they ended, the command.

Runs are collected in DDP_PROBE_DIR, or in ddp_probe_runs below this folder;
DIR names another folder. Only the first and the last lines of the files are
read; 'report' reads all of it. The verdict is that of 'report', for the newest
eight runs that are not large: found and the rule, clear, or undecided.

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
hosts (names), ended, because, files, bytes, command, verdict (empty where it
was not asked for), rules (what was found), parts (the folders of one launch,
where it has several).
"""

import argparse
import json
import os
import shutil
import sys
from typing import Any, Callable, Dict, Iterator, List, Set

from ddp_probe.errors import UsageError

_JUDGED, _LARGE = 8, 4_000_000  # So many runs are judged, and none of more bytes.


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
    found = [one._asdict() for one in _glances(find.runs(folder), glance.at)]
    for number, row in enumerate(found):
        row.update(_verdict(row) if number < _JUDGED and row["bytes"] <= _LARGE else {"verdict": "", "rules": []})
    if args.json:
        print(json.dumps(found, indent=2))
    elif found:
        print("\n".join(_table(found)))
    if not found:
        raise find.no_run(folder)
    return 0


def _glances(folders: List[str], look: Callable[[str], Any]) -> Iterator[Any]:
    """Yield each run once, also one of several folders."""
    taken: Set[str] = set()
    for folder in folders:
        if os.path.realpath(folder) not in taken:
            one = look(folder)
            taken.update(map(os.path.realpath, one.parts))
            yield one


def _verdict(row: Dict[str, Any]) -> Dict[str, Any]:
    """Return what `report` would say, in a word."""
    from ddp_probe import read
    from ddp_probe.diagnose import judge
    from ddp_probe.errors import ProbeError

    try:
        diagnosis = judge(read.load([row["folder"]]))
    except ProbeError:  # it has gone meanwhile
        return {"verdict": "", "rules": []}
    return {"verdict": diagnosis.verdict, "rules": [finding.id for finding in diagnosis.findings]}


def _table(rows: List[Dict[str, Any]]) -> List[str]:
    from ddp_probe.report import event_line, layout, safe

    lines = [["run", "age", "ranks", "verdict", "ended"]]
    for row in rows:
        expected = row["ranks_expected"]
        ranks = "%d/%s" % (row["ranks_seen"], "?" if expected is None else expected)
        how = row["because"] or row["ended"] if row["ended"] != "running" else ", ".join(filter(None, ("running", row["because"])))
        name = "%s and %d more" % (row["name"], len(row["parts"]) - 1) if row["parts"] else row["name"]
        lines.append([name, _age(row["age"]), ranks, " ".join([row["verdict"], *row["rules"][:1]]), how])
    table = layout.columns(lines)
    if any(row["command"] for row in rows):  # last, as it may be long
        size = max(map(safe.width, table))
        texts = ["command", *(safe.line(row["command"]) for row in rows)]
        table = [(line + " " * (size - safe.width(line)) + "  " + text).rstrip() for line, text in zip(table, texts)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    return [event_line.cut(line, width) if width else line for line in table]


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return "%d%s" % (seconds // size, unit)
    return "%ds" % max(seconds, 0)
