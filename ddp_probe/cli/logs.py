"""Print a run's events in readable form, all ranks by time.

RUN is the name of a run in DDP_PROBE_DIR (default: ddp_probe_runs in this
folder), the beginning of a name, latest, a run's folder, a file of one, a
shell pattern, or an archive of 'bundle'; several are read as one run. The
default is the newest run. --raw prints the original JSON lines, for grep and
jq.

A line has: time with its zone (Z is UTC), rank (L: a launcher), event and
phase, the important fields, and the line of the job. In a terminal it is cut to
the width; in a pipe it is complete, unless -w says how wide it may be. Times
are by each host's own clock; 'report' aligns them.

Coverage (probe.coverage), and calls that the ledger has too (dist.collective),
are shown only with --raw, if they failed, or if --event names them.
--errors shows failed calls, ranks that ended badly, and warnings.
The records of a ledger are shown as ledger.all_reduce and so on, one for each
call at the time of its beginning; --event 'ledger.*' shows nothing else.
--follow continues until the job ends or you press Ctrl-C.

JSON lines that the job itself writes to *.jsonl files in the run's folder are
shown by time beside them, if they have an event and a timestamp, as structlog
writes them.

--since takes 18:26, 18:26:05.5Z, 18:26+08:00 (on the day of the run's last
event), 2026-11-21T18:26:05Z, or -90s, -5m, -2h: that long before the run's last
event. A time without a zone is in the zone of the printed times (DDP_PROBE_TZ,
or that of this host).
"""

import argparse
import fnmatch
import os
import re
import shutil
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ddp_probe.cli._chosen_ranks import Ranks, ranks_of
from ddp_probe.cli._commands import EVENTS, RUNS, Command
from ddp_probe.shared.errors import UsageError
from ddp_probe.wording.text import Text, say

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FILE = re.compile(r"rank(\d+)\.")
_PAUSE, _SETTLED = 0.5, 2.0  # Seconds between two checks of the files, and without a new line before the job counts as over.
_LEFT_OUT = ("probe.coverage", "dist.collective")
_NARROWEST = 40  # Columns.
_NAMED = 30  # Maximum event names listed if nothing matches.

COMMAND = Command(
    "logs",
    order=120,
    summary="Print a run's events in readable form; with --raw as JSON lines.",
    paints=True,
    offers={"paths": RUNS, "event": EVENTS},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser._negative_number_matcher = re.compile(r"^-\d")  # argparse would treat the -5m of --since as an option
    parser.add_argument("paths", nargs="*", metavar="RUN", help="folders, names, files or patterns; default: the newest run")
    parser.add_argument("--rank", metavar="N", action="append", default=[], help="3, or 0,4-7, or L for the launchers; may be repeated")
    events = "a name such as ddp.init, or a pattern such as 'checkpoint.*'; may be repeated"
    parser.add_argument("--event", metavar="E", action="append", default=[], help=events)
    parser.add_argument("--since", metavar="TIME", help="a time, or -5m")
    parser.add_argument("--errors", action="store_true", help="only failures and warnings")
    parser.add_argument("--follow", action="store_true", help="continue with new lines while the job runs")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--raw", action="store_true", help="the original JSON lines")
    columns = "cut each line to at most this width, as in 'logs -w 120 | less'"
    forms.add_argument("-w", "--width", metavar="COLUMNS", help=columns)


def run(args: argparse.Namespace) -> int:
    """Select, merge, print; report omitted lines on stderr."""
    from ddp_probe.reading import bundled

    if args.follow:
        bundled.refuse(args.paths, "--follow")
    with bundled.opened(args.paths) as paths:
        return _show(args, paths)


def _show(args: argparse.Namespace, paths: List[str]) -> int:
    files = _files(paths)
    choice = _Choice(ranks_of(args.rank), args.event, _since(args.since, files) if args.since else None, errors=args.errors, raw=args.raw)
    show = _printer(args.raw, _columns(args.width))
    read = _print(files, choice, show, quiet=args.follow)
    if args.follow:
        _follow(paths or [os.path.dirname(files[0])], read, choice, show)
    return 0


class _Choice:
    """Which lines were requested."""

    def __init__(self, ranks: Ranks, events: List[str], since: Optional[float], *, errors: bool, raw: bool) -> None:
        self.ranks = ranks
        self._events = events
        self._since = since
        self._errors = errors
        self._raw = raw

    def takes(self, entry: Any) -> bool:
        """Return whether a line is shown."""
        name = entry.head.event
        if not self.ranks(entry.head.rank) or (self._since is not None and entry.when < self._since):
            return False
        if self._events:
            return any(fnmatch.fnmatchcase(name, event) for event in self._events) and (not self._errors or _failed(entry))
        return _failed(entry) if self._errors else self._raw or name not in _LEFT_OUT


def _failed(entry: Any) -> bool:
    """Return whether a line reports a failure or a warning."""
    from ddp_probe.reading.events import fields
    from ddp_probe.showing import event_line

    return entry.head.event in ("probe.warning", "probe.fault") or event_line.failed(fields(entry.line))


def _files(paths: List[str]) -> List[str]:
    from ddp_probe.reading import find

    sources = find.files(paths, "logs")
    for path, why in sources.unreadable.items():
        what = say("There is nothing to read at {path}: {reason}", path=_safe(path), reason=why)
        raise UsageError(what, "'python -m ddp_probe runs' lists the runs.")
    if sources.texts:
        plain = _safe(sources.texts[0])
        raise UsageError(
            say("{path} was not written by the probe.", path=plain),
            say("'python -m ddp_probe report {path}' reads a plain log.", path=plain),
        )
    return sources.events + find.jobs_logs(sources.folders)


def _print(files: List[str], choice: _Choice, show: Callable[[Any], None], *, quiet: bool) -> Dict[str, int]:
    """Print the existing lines; return how many lines of each file were read."""
    from ddp_probe.reading import events as reader
    from ddp_probe.reading.inventory import Inventory
    from ddp_probe.shared import ledger_schema
    from ddp_probe.showing.remark import remark

    inventory = Inventory()
    shown = 0
    read: Dict[str, int] = {}
    there: Tuple[Set[str], Set[int]] = (set(), set())
    for entry in reader.merged([file for file in files if _may_hold(file, choice.ranks, there[1])], inventory):
        if not entry.file.endswith(ledger_schema.SUFFIXES):  # --follow goes on with the logs alone.
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
        if not shown:
            remark(_nothing(choice, len(files), there), by="")
        _report_skipped(inventory)
    return read


def _follow(paths: List[str], read: Dict[str, int], choice: _Choice, show: Callable[[Any], None]) -> None:
    """Print new lines until every process has written its last line and nothing new arrives for a while."""
    from ddp_probe.reading import events, find

    files, quiet = events.Tail(read), 0.0
    while True:
        now = _files(paths)
        new = files.more(now)
        for entry in new:
            if choice.takes(entry):
                show(entry)
        sys.stdout.flush()
        quiet = 0.0 if new else quiet + _PAUSE
        if quiet >= _SETTLED and events.over([file for file in now if find.is_ours(file)]):
            return
        time.sleep(_PAUSE)


def _may_hold(file: str, ranks: Ranks, there: Set[int]) -> bool:
    """Return whether a file may contain a requested rank, to skip others unread. A solo program may get its rank after its file is named."""
    from ddp_probe.reading import log_lines

    match = _FILE.match(os.path.basename(file))
    if match is None or ranks(int(match[1])):
        return True
    last = log_lines.last(file).get("rank")
    if isinstance(last, int) and not ranks(last):
        there.add(last)
        return False
    return True


def _columns(width: Optional[str]) -> int:
    """Return how wide a line may be: what was asked for, or the terminal's width; 0 if there is no bound."""
    if width is not None:
        if not re.fullmatch(r"[0-9]{1,6}", width) or int(width) < _NARROWEST:
            what = say("{text} is not a valid width.", text=repr(width))
            template = "Write -w and a number of columns, {least} at least."
            raise UsageError(what, say(template, least=_NARROWEST))
        return int(width)
    return max(shutil.get_terminal_size().columns, _NARROWEST) if sys.stdout.isatty() else 0


def _printer(raw: bool, width: int) -> Callable[[Any], None]:
    from ddp_probe.reading.events import fields
    from ddp_probe.showing import event_line, paint, safe
    from ddp_probe.showing.masker import Masker

    if raw and not sys.stdout.isatty():
        return _copy
    if raw:
        masker = Masker(os.environ)
        return lambda entry: print(safe.visible(masker.event(entry.line).decode("utf-8", "backslashreplace").rstrip("\n")))
    if not width and not paint.colours(sys.stdout):
        return lambda entry: print(event_line.line(entry.when, fields(entry.line)))
    return lambda entry: paint.write([event_line.styled(entry.when, fields(entry.line), width)])


def _copy(entry: Any) -> None:
    sys.stdout.buffer.write(entry.line)


def _nothing(choice: _Choice, files: int, there: Tuple[Set[str], Set[int]]) -> Text:
    from ddp_probe.wording.words import listed, named

    names, ranks = sorted(there[0]), sorted(there[1])
    events = listed(names, _NAMED)
    who = named(ranks) if ranks else say("no rank")
    has_rank = any(map(choice.ranks, ranks)) or choice.ranks(None)
    no_match = say("No event matches.") if has_rank else say("No such rank.")
    contents = say("{who}; {events}", who=who, events=events) if names else who
    if files == 1:
        return say("{no_match} This file contains: {contents}.", no_match=no_match, contents=contents)
    template = "{no_match} These {files} files contain: {contents}."
    return say(template, no_match=no_match, files=files, contents=contents)


def _report_skipped(inventory: Any) -> None:
    from ddp_probe.showing.remark import remark
    from ddp_probe.wording.words import listed

    totals: Dict[str, int] = {}
    for reasons in inventory.skipped.values():
        for reason, count in reasons.items():
            totals[reason] = totals.get(reason, 0) + count
    if totals:
        kinds = sorted(totals.items())
        what = listed([say("{count} {reason}", count=count, reason=say(reason)) for reason, count in kinds])
        files = len(inventory.skipped)
        remark(say("Lines skipped: {what}, in {files} {files:file|files}.", what=what, files=files), by="")
    for path, why in list(inventory.unreadable.items())[:10]:
        remark(say("Not read: {path}: {reason}", path=_safe(path), reason=why), by="")


def _safe(text: str) -> str:
    from ddp_probe.showing import safe

    return safe.line(text, 300)


def _since(text: str, files: List[str]) -> float:
    """Return a time in seconds since 1970."""
    from datetime import datetime, timezone

    from ddp_probe.shared import settings

    ago = re.fullmatch(r"-?(\d{1,9}(?:\.\d+)?)([smhd])", text)
    if ago:
        return _end(files) - float(ago[1]) * _UNITS[ago[2]]
    zoned = re.fullmatch(r"(.*?:.*?)(Z|[+-]\d\d:\d\d)?", text) or ("", text, None)
    zone = settings.get(settings.TZ, {settings.TZ.name: zoned[2]} if zoned[2] else None)
    for form in ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f"):
        try:
            clock = datetime.strptime(zoned[1], form).time()  # noqa: DTZ007  # the zone is that of the day
        except ValueError:
            continue
        day = datetime.fromtimestamp(_end(files), tz=timezone.utc).astimezone(zone)
        return datetime.combine(day, clock, day.tzinfo).timestamp()
    try:
        moment = datetime.fromisoformat(zoned[1])
    except ValueError:
        raise UsageError(
            say("{text} is not a valid time.", text=repr(text)),
            "Write --since 18:26, --since 2026-11-21T18:26:05Z, or --since -5m.",
        ) from None
    return (moment if zone is None else moment.replace(tzinfo=zone)).timestamp()


def _end(files: List[str]) -> float:
    """Return the time of the run's last event."""
    from ddp_probe.reading import log_lines
    from ddp_probe.reading.log_lines import seconds

    return max((seconds(str(log_lines.last(file).get("ts", ""))) or 0.0 for file in files), default=0.0)
