"""List the runs, newest first: age, number of ranks, verdict, end, command.

DIR is the folder of all runs. The default is DDP_PROBE_DIR, or ddp_probe_runs
in this folder. Of each run, only the first and last lines of the files are
read. The verdict is that of 'report': found and the rule, clear, or undecided.
It is kept in the run's folder, in .verdict.json, until a file of the run
changes. In a terminal, a long command is cut in the middle.

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
(names), ended, because, files, bytes, command, verdict (empty if the run is
gone), rules (the findings), parts (the folders of the launch, if it has
several).
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
from functools import lru_cache
from typing import Any, Callable, Dict, Iterator, List, Set

import ddp_probe
from ddp_probe.cli._commands import FOLDERS, Command
from ddp_probe.shared.errors import UsageError
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.whole_file import whole_file
from ddp_probe.wording.text import say

_SHORTEST = 12  # Columns of a command.
_KEPT, _LARGEST = ".verdict.json", 65_536  # The file of the verdict in a run, and its most bytes.

COMMAND = Command("runs", order=130, summary="List the runs, newest first.", offers={"folder": FOLDERS})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the folder of all runs")
    parser.add_argument("--json", action="store_true", help="print one JSON list")


def run(args: argparse.Namespace) -> int:
    """Collect and print."""
    from ddp_probe.reading import find, glance
    from ddp_probe.showing import language, safe
    from ddp_probe.showing.progress import Steps

    folder = args.folder or find.root()
    if args.folder and not os.path.isdir(folder):
        raise UsageError(
            say("No such folder: {folder}.", folder=safe.line(folder, 300)),
            say("Name the folder of all runs, or none for {root}.", root=find.root()),
        )
    rows = [seen._asdict() for seen in _glances(find.runs(folder), glance.at)]
    steps = Steps()
    for number, row in enumerate(rows):
        steps(number + 1, len(rows), safe.line(row["name"]))
        row.update(_kept(row))
    steps.clear()
    if args.json:
        print(json.dumps(rows, indent=2))
    elif rows:
        print("\n".join(_table(rows, language.chosen(sys.stdout))))
    if not rows:
        raise find.no_run(folder)
    return 0


def _glances(folders: List[str], look: Callable[[str], Any]) -> Iterator[Any]:
    """Yield each run once, even if it has several folders."""
    taken: Set[str] = set()
    for folder in folders:
        if os.path.realpath(folder) not in taken:
            seen = look(folder)
            taken.update(map(os.path.realpath, seen.parts))
            yield seen


def _kept(row: Dict[str, Any]) -> Dict[str, Any]:
    """Return the verdict that is kept, else judge, and keep it. A run that goes on ends without a change of its files if it is killed."""
    place, now = os.path.join(row["folder"], _KEPT), _state(row["parts"] or [row["folder"]])
    kept = _read(place)
    if kept.get("of") == now and row["ended"] != "running":
        return {"verdict": str(kept.get("verdict", "")), "rules": [str(rule) for rule in kept["rules"]]}
    verdict = _verdict(row)
    if verdict["verdict"] and row["ended"] != "running":
        text = json.dumps({"of": now, **verdict})
        with contextlib.suppress(OSError), whole_file(place, 0o600) as file:  # It may not be ours to write.
            file.write(text.encode("utf-8"))
    return verdict


def _state(folders: List[str]) -> str:
    """Return a digest that changes with the files of a run, and with the rules: in a checkout, the version stays the same."""
    import hashlib

    from ddp_probe.judging import site_rules

    state: List[Any] = [ddp_probe.__version__, _rules(), site_rules.state()]
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            stats = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries if not entry.name.startswith(".")]
            state.append(sorted((name, status.st_size, status.st_mtime_ns) for name, status in stats))
    return hashlib.sha256(repr(state).encode("utf-8", "surrogateescape")).hexdigest()


_JUDGING = ("judging", "standing", "reading", "checkpoints", "wording")
"""The rooms that a verdict depends on."""


@lru_cache(maxsize=None)
def _rules() -> int:
    """Return when what judges was changed last."""
    top = os.path.dirname(os.path.abspath(str(ddp_probe.__file__)))
    folders = [at for part in _JUDGING for at, _, _ in os.walk(os.path.join(top, part))]
    return max(entry.stat().st_mtime_ns for folder in folders for entry in os.scandir(folder) if entry.name.endswith(".py"))


def _read(place: str) -> Dict[str, Any]:
    with contextlib.suppress(OSError, ValueError), open_bytes(place) as file:
        kept = json.loads(file.read(_LARGEST))
        return kept if isinstance(kept, dict) and isinstance(kept.get("rules"), list) else {}
    return {}


def _verdict(row: Dict[str, Any]) -> Dict[str, Any]:
    """Return the verdict of `report`."""
    from ddp_probe.shared.errors import ProbeError

    try:
        diagnosis = ddp_probe.diagnose(ddp_probe.read(row["folder"]))
    except ProbeError:  # it was removed in the meantime
        return {"verdict": "", "rules": []}
    return {"verdict": diagnosis.verdict, "rules": [finding.id for finding in diagnosis.findings]}


def _table(rows: List[Dict[str, Any]], say: Any) -> List[str]:
    from ddp_probe.showing import event_line, layout, safe

    how_it_ended = say("ended ").strip()  # The heading: "ended" without the space is one of the ends.
    lines = [[say("run"), say("age"), say("ranks"), say("verdict"), how_it_ended]]
    for row in rows:
        expected = row["ranks_expected"]
        ranks = "%d/%s" % (row["ranks_seen"], "?" if expected is None else expected)
        how = [say.text(row["because"])] if row["because"] else []
        if row["ended"] == "running" or not how:
            how.insert(0, say(row["ended"]))
        name = say("%s and %d more") % (row["name"], len(row["parts"]) - 1) if row["parts"] else row["name"]
        verdict = " ".join([say(row["verdict"]), *row["rules"][:1]])
        lines.append([name, _age(row["age"]), ranks, verdict, say(", ").join(how)])
    table = layout.columns(lines)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if any(row["command"] for row in rows):  # last, because it may be long
        size = max(map(safe.width, table))
        room = max(width - size - 2, _SHORTEST) if width else 0
        texts = [say("command"), *(event_line.cut_inside(safe.line(row["command"]), room) for row in rows)]
        table = [(line + " " * (size - safe.width(line)) + "  " + text).rstrip() for line, text in zip(table, texts)]
    return [event_line.cut(line, width) if width else line for line in table]


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return "%d%s" % (seconds // size, unit)
    return "%ds" % max(seconds, 0)
