"""List the runs, newest first: age, number of ranks, verdict, end, command.

DIR is the folder of all runs. The default is DDP_PROBE_DIR, or ddp_probe_runs
in this folder. Only the first and last lines of the files are read; 'report'
reads them completely. The verdict is the one of 'report', for the newest eight
runs unless they are large: found and the rule, clear, or undecided.

ended is one of
  well         every expected rank and every launcher has an end line without a
               failure
  failed       a rank ended with an exception, or a launcher with an exit code
  killed       a launcher reports a child ended by a signal other than SIGTERM
  running      one of its processes is alive on this host
  no end       none of these, and an end line is missing: killed, or still
               running elsewhere

--json prints a list of objects, newest first: name, folder, modified (Unix
time), age (seconds), ranks_seen, ranks_expected (null if unknown), hosts
(names), ended, because, files, bytes, command, verdict (empty if the run was
not judged), rules (the findings), parts (the folders of the launch, if it has
several).
"""

import argparse
import json
import os
import shutil
import sys
from typing import Any, Callable, Dict, Iterator, List, Set

from ddp_probe.cli._commands import FOLDERS, Command
from ddp_probe.shared.errors import UsageError

_JUDGED, _LARGE = 8, 4_000_000  # Maximum number of runs that are judged, and maximum bytes of each.

COMMAND = Command("runs", order=130, summary="List the runs, newest first.", offers={"folder": FOLDERS})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the folder of all runs")
    parser.add_argument("--json", action="store_true", help="print one JSON list")


def run(args: argparse.Namespace) -> int:
    """Collect and print."""
    if hasattr(sys.stdout, "reconfigure"):  # A folder's name may contain characters that this locale cannot encode.
        sys.stdout.reconfigure(errors="backslashreplace")
    from ddp_probe.reading import find, glance
    from ddp_probe.showing import safe

    folder = args.folder or find.root()
    if args.folder and not os.path.isdir(folder):
        raise UsageError("There is no folder %s." % safe.line(folder, 300), "Name the folder of all runs, or none for %s." % find.root())
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
    """Yield each run once, even if it has several folders."""
    taken: Set[str] = set()
    for folder in folders:
        if os.path.realpath(folder) not in taken:
            one = look(folder)
            taken.update(map(os.path.realpath, one.parts))
            yield one


def _verdict(row: Dict[str, Any]) -> Dict[str, Any]:
    """Return the verdict of `report`."""
    from ddp_probe.judging.judge import judge
    from ddp_probe.reading.load_run import load
    from ddp_probe.shared.errors import ProbeError

    try:
        diagnosis = judge(load([row["folder"]]))
    except ProbeError:  # it was removed in the meantime
        return {"verdict": "", "rules": []}
    return {"verdict": diagnosis.verdict, "rules": [finding.id for finding in diagnosis.findings]}


def _table(rows: List[Dict[str, Any]]) -> List[str]:
    from ddp_probe.showing import event_line, layout, safe

    lines = [["run", "age", "ranks", "verdict", "ended"]]
    for row in rows:
        expected = row["ranks_expected"]
        ranks = "%d/%s" % (row["ranks_seen"], "?" if expected is None else expected)
        how = row["because"] or row["ended"] if row["ended"] != "running" else ", ".join(filter(None, ("running", row["because"])))
        name = "%s and %d more" % (row["name"], len(row["parts"]) - 1) if row["parts"] else row["name"]
        lines.append([name, _age(row["age"]), ranks, " ".join([row["verdict"], *row["rules"][:1]]), how])
    table = layout.columns(lines)
    if any(row["command"] for row in rows):  # last, because it may be long
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
