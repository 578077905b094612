"""Print a run's events readably, all ranks by time; --raw as the JSON lines that were written, for grep and jq.

RUN is the name of a run in DDP_PROBE_DIR (or in ddp_probe_runs below this
folder), the beginning of one, latest, a run's folder, a file of one, or a shell
pattern; several are one run. Without RUN it is the newest.

A line is: time (UTC), rank (L: a launcher), event and phase, what matters of
it, the line of the job. In a terminal it is cut to the width; in a pipe it is
whole. Hosts keep their own clocks; 'report' aligns them.

Coverage lines (probe.coverage) are shown where --event asks for them, and with
--raw. --errors shows calls that failed, ranks that ended badly, and warnings.
--follow goes on while the job runs, and ends with it or by Ctrl-C.

--since takes 18:26, 18:26:05.5 (on the day of the run's last event),
2026-11-21T18:26:05Z, or -90s, -5m, -2h: that long before the run's last event.
"""

import argparse
import fnmatch
import os
import re
import shutil
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ddp_probe.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_Ranks = Callable[[Optional[int]], bool]
_FILE = re.compile(r"rank(\d+)\.")
_PAUSE, _SETTLED = 0.5, 2.0  # Seconds between two looks at the files, and until nobody is taken to come any more.
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
    parser.add_argument("--errors", action="store_true", help="only what failed, and warnings")
    parser.add_argument("--follow", action="store_true", help="go on with what is written while the job runs")
    parser.add_argument("--raw", action="store_true", help="the lines as they were written")


def run(args: argparse.Namespace) -> int:
    """Choose, merge, print; tell on stderr what was left out."""
    if hasattr(sys.stdout, "reconfigure"):  # A log may hold what this locale cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    files = _files(args.paths)
    choice = _Choice(_ranks(args.rank), args.event, _since(args.since, files) if args.since else None, errors=args.errors, raw=args.raw)
    show = _printer(args.raw)
    read = _print(files, choice, show, quiet=args.follow)
    if args.follow:
        _follow(args.paths or [os.path.dirname(files[0])], read, choice, show)
    return 0


class _Choice:
    """Which lines were asked for."""

    def __init__(self, ranks: _Ranks, events: List[str], since: Optional[float], *, errors: bool, raw: bool) -> None:
        self.ranks = ranks
        self._events = events
        self._since = since
        self._errors = errors
        self._raw = raw

    def takes(self, entry: Any) -> bool:
        """Tell whether a line is shown."""
        name = entry.head.event
        if not self.ranks(entry.head.rank) or (self._since is not None and entry.when < self._since):
            return False
        if self._events:
            return any(fnmatch.fnmatchcase(name, one) for one in self._events) and (not self._errors or _failed(entry))
        return _failed(entry) if self._errors else self._raw or name != "probe.coverage"


def _failed(entry: Any) -> bool:
    """Tell a line that a person would look for who asks what went wrong."""
    from ddp_probe.read.events import fields

    if entry.head.event in ("probe.warning", "probe.fault"):
        return True
    told = fields(entry.line)
    return bool(told.get("phase") == "error" or told.get("failure") or told.get("uncaught") or told.get("exit_code") or told.get("signal"))


def _files(paths: List[str]) -> List[str]:
    from ddp_probe.read import find

    sources = find.sources(paths)
    for path, why in sources.unreadable.items():
        raise UsageError("There is nothing to read at %s: %s" % (_safe(path), _safe(why)), "'python -m ddp_probe runs' lists the runs.")
    if sources.texts:
        plain = _safe(sources.texts[0])
        raise UsageError("%s is no file that the probe wrote." % plain, "'python -m ddp_probe report %s' reads a plain log." % plain)
    return sources.events


def _print(files: List[str], choice: _Choice, show: Callable[[Any], None], *, quiet: bool) -> Dict[str, int]:
    """Print what is there; return how many lines of each file that were."""
    from ddp_probe.read import events as reader
    from ddp_probe.read.model import Inventory

    inventory = Inventory()
    shown = 0
    read: Dict[str, int] = {}
    there: Tuple[Set[str], Set[int]] = (set(), set())
    for entry in reader.merged([file for file in files if _may_hold(file, choice.ranks, there[1])], inventory):
        read[entry.file] = entry.number
        if len(there[0]) < 1000:
            there[0].add(entry.head.event)
        if entry.head.rank is not None:
            there[1].add(entry.head.rank)
        if choice.takes(entry):
            show(entry)
            shown += 1
    sys.stdout.flush()
    if not quiet:
        sys.stderr.write(_nothing(inventory, len(files), there) if not shown else "")
        _tell_skipped(inventory)
    return read


def _follow(paths: List[str], read: Dict[str, int], choice: _Choice, show: Callable[[Any], None]) -> None:
    """Print what is added, until every process has written its last line and nothing has come for a while."""
    from ddp_probe.read import tail

    files, quiet = tail.Tail(read), 0.0
    while True:
        now = _files(paths)
        new = files.more(now)
        for entry in new:
            if choice.takes(entry):
                show(entry)
        sys.stdout.flush()
        quiet = 0.0 if new else quiet + _PAUSE
        if quiet >= _SETTLED and tail.over(now):
            return
        time.sleep(_PAUSE)


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
