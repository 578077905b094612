"""Print a run's events readably, all ranks by time; --raw as the JSON lines that were written, for grep and jq.

RUN is a run's folder, its name in DDP_PROBE_DIR (or in ddp_probe_runs below
this folder), a file of one, or a shell pattern; several are one run. Without
RUN it is the newest.

A line is: time (UTC), rank (L: a launcher), event and phase, what matters of
it, the line of the job. In a terminal it is cut to the width; in a pipe it is
whole. Hosts keep their own clocks; 'report' aligns them.

--since takes 18:26, 18:26:05.5 (on the day of the run's last event),
2026-11-21T18:26:05Z, or -90s, -5m, -2h: that long before the run's last event.
"""

import argparse
import fnmatch
import os
import re
import shutil
import sys
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ddp_probe.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_Ranks = Callable[[Optional[int]], bool]
_FILE = re.compile(r"rank(\d+)\.")
_NAMED = 30  # So many names of events are listed where nothing matches.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser._negative_number_matcher = re.compile(r"^-\d")  # argparse would take the -5m of --since for an option
    parser.add_argument("paths", nargs="*", metavar="RUN", help="folders, names, files or patterns; the newest run without it")
    parser.add_argument("--rank", metavar="N", action="append", default=[], help="3, or 0,4-7, or L for the launchers; may be repeated")
    events = "a name such as ddp.init, or a pattern such as 'checkpoint.*'; may be repeated"
    parser.add_argument("--event", metavar="E", action="append", default=[], help=events)
    parser.add_argument("--since", metavar="TIME", help="a time (UTC), or -5m")
    parser.add_argument("--raw", action="store_true", help="the lines as they were written")


def run(args: argparse.Namespace) -> int:
    """Choose, merge, print; tell on stderr what was left out."""
    if hasattr(sys.stdout, "reconfigure"):  # A log may hold what this locale cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    ranks = _ranks(args.rank)
    files = _files(args.paths)
    since = _since(args.since, files) if args.since else None
    return _print(files, ranks, args.event, since, raw=args.raw)


def _files(paths: List[str]) -> List[str]:
    from ddp_probe.read import find

    sources = find.sources(paths)
    for path, why in sources.unreadable.items():
        raise UsageError("There is nothing to read at %s: %s" % (_safe(path), _safe(why)), "'python -m ddp_probe runs' lists the runs.")
    if sources.texts:
        plain = _safe(sources.texts[0])
        raise UsageError("%s is no file that the probe wrote." % plain, "'python -m ddp_probe report %s' reads a plain log." % plain)
    return sources.events


def _print(files: List[str], ranks: _Ranks, events: List[str], since: Optional[float], *, raw: bool) -> int:
    from ddp_probe.read import events as reader
    from ddp_probe.read.model import Inventory

    inventory = Inventory()
    show = _printer(raw)
    shown = 0
    there: Tuple[Set[str], Set[int]] = (set(), set())
    for entry in reader.merged([file for file in files if _may_hold(file, ranks, there[1])], inventory):
        name, rank = entry.head.event, entry.head.rank
        if len(there[0]) < 1000:
            there[0].add(name)
        if rank is not None:
            there[1].add(rank)
        if not ranks(rank) or (since is not None and entry.when < since) or (events and not any(fnmatch.fnmatchcase(name, one) for one in events)):
            continue
        show(entry)
        shown += 1
    sys.stdout.flush()
    if not shown:
        sys.stderr.write(_nothing(inventory, len(files), there))
    _tell_skipped(inventory)
    return 0


def _may_hold(file: str, ranks: _Ranks, there: Set[int]) -> bool:
    """Pass over the files of other ranks unread; a program without a launcher may learn its rank after the file has its name."""
    from ddp_probe.read import ends

    found = _FILE.match(os.path.basename(file))
    if found is None or ranks(int(found[1])):
        return True
    last = ends.last(file).get("rank")
    if isinstance(last, int) and not ranks(last):
        there.add(last)
        return False
    return True


def _printer(raw: bool) -> Callable[[Any], None]:
    from ddp_probe.read.events import fields
    from ddp_probe.report import event_line, safe

    terminal = sys.stdout.isatty()
    if raw and not terminal:
        return _copy
    if raw:
        return lambda entry: print(safe.line(entry.line.decode("utf-8", "backslashreplace").rstrip("\n")))
    width = max(shutil.get_terminal_size().columns, 40) if terminal else 0
    return lambda entry: print(event_line.line(entry.when, fields(entry.line), width))


def _copy(entry: Any) -> None:
    sys.stdout.buffer.write(entry.line)


def _nothing(inventory: Any, files: int, there: Tuple[Set[str], Set[int]]) -> str:
    from ddp_probe.diagnose.words import named

    names, ranks = sorted(there[0]), sorted(there[1])
    listed = ", ".join(_safe(name) for name in names[:_NAMED]) + (" and %d more" % (len(names) - _NAMED) if len(names) > _NAMED else "")
    who = named(ranks) if ranks else "no rank"
    return "No event matches. In these %d files are: %s%s.\n" % (files, who, "; " + listed if listed else "")


def _tell_skipped(inventory: Any) -> None:
    totals: Dict[str, int] = {}
    for reasons in inventory.skipped.values():
        for reason, count in reasons.items():
            totals[reason] = totals.get(reason, 0) + count
    if totals:
        what = ", ".join("%d %s" % (count, reason) for reason, count in sorted(totals.items()))
        sys.stderr.write("Lines left out: %s, in %d files.\n" % (what, len(inventory.skipped)))
    for path, why in list(inventory.unreadable.items())[:10]:
        sys.stderr.write("Not read: %s: %s\n" % (_safe(path), _safe(why)))


def _safe(text: str) -> str:
    from ddp_probe.report import safe

    return safe.line(text, 300)


# --- what to choose ---------------------------------------------------------------------------------------------------


def _ranks(texts: List[str]) -> _Ranks:
    """Return what tells whether a line's rank was asked for; a launcher has none."""
    if not texts:
        return _any
    spans: List[Tuple[int, int]] = []
    launchers = False
    for part in ",".join(texts).split(","):
        found = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if found:
            spans.append((int(found[1]), int(found[2] or found[1])))
        elif part.strip().lower() in ("l", "launcher"):
            launchers = True
        else:
            raise UsageError("%r names no rank." % part, "Write --rank 3, --rank 0,4-7, or --rank L for the launchers.")
    return lambda rank: launchers if rank is None else any(low <= rank <= high for low, high in spans)


def _any(_rank: Optional[int]) -> bool:
    return True


def _since(text: str, files: List[str]) -> float:
    """Return a moment in seconds since 1970."""
    from datetime import datetime, timezone

    ago = re.fullmatch(r"-?(\d{1,9}(?:\.\d+)?)([smhd])", text)
    if ago:
        return _end(files) - float(ago[1]) * _UNITS[ago[2]]
    for form in ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f"):
        try:
            clock = datetime.strptime(text, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
        day = datetime.fromtimestamp(_end(files), tz=timezone.utc)
        return day.replace(hour=clock.hour, minute=clock.minute, second=clock.second, microsecond=clock.microsecond).timestamp()
    try:
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise UsageError("%r is no time." % text, "Write --since 18:26, --since 2026-11-21T18:26:05Z, or --since -5m.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _end(files: List[str]) -> float:
    """Return when the run's last event was."""
    from ddp_probe.read import ends
    from ddp_probe.read.fold import seconds

    return max((seconds(str(ends.last(file).get("ts", ""))) or 0.0 for file in files), default=0.0)
