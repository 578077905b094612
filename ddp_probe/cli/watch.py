"""Show where each rank of a running job is, and for how long.

RUN is a run as 'report' takes it; the default is the newest one that runs on
this host, else the newest. Without any run, it looks from outside, as 'attach'
does, and prints what it sees. The ranks do not take part: their ledgers are
read, so a rank that hangs is seen too. Ranks at the same place share a row.
Ranks that stand out come first, marked by >: those that the report would name,
and only once others have waited for 3 s, else those that come last step after
step. The lines below the table say why. In a terminal the table is renewed
until the job ends, or until Ctrl-C; in a pipe it is printed once.

  ranks    ranks at this place
  state    stopped, gone (no end line), ended, failed, probe off (restore() was
           called), on another host, no ledger (it has made no process group:
           the line is that of its stacks); empty while it runs here
  phase    the innermost one: dataloader, backward (with the step), validate
  call     the call of torch.distributed that it is in, with its number in its
           group; 'after' the last one if it is in none
  group    ranks of the group, if rows differ in it
  for      how long the rank that is there longest has been there
  memory   that tensors hold on the card of the rank that holds the most, by
           its last device.state
  steps/s  of the slowest: backward passes since the look before; in the first
           look, of the last steps, and 0 if there was none for three times as
           long as they took
  waited   the part of the last minute in which it waited for the slowest
           rank, by the steps that have ended; '12% of 13s' if the ledger's
           256 steps reach back no further
  line     the line of the job; of a rank that stands out and is in no call,
           that of the stacks it has written since it moved last

--cards asks the vendor's tool (efsmi, nvidia-smi, npu-smi and others) at each
look what the cards of this host do: load, memory, heat, processes, and why a
clock is lowered. Output without a documented format is printed as it is.

--json prints one object: run, time (Unix time), over (all processes have
ended), absent (ranks without a ledger), problems (file to what is wrong with
it), and ranks, a list of rank, host, pid, state (as above; running while it
runs), phase, step, call, number, in_call (false: it has left that call), peer,
group (id, size, ranks), seconds, site (file, line, function), steps_per_second,
memory (bytes), waited (0 to 1, of the last waited_of seconds), stands_out
(why). What is not known is null.
With --cards also cards: the fields of a cards.state line.

--prometheus FILE writes each look as metrics for the textfile collector of
node_exporter, instead of the table, until the job ends: for each rank its
state, its steps, when it last moved, and 1 if it stands out, the verdict of
'watch'. FILE is replaced as a whole; its name must end in .prom.

exit codes: 0 shown, 2 no run or no ledger
"""

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Iterable, List

from ddp_probe.cli import attach, stacks
from ddp_probe.cli._commands import FILES, RUNS, Command, arguments_of
from ddp_probe.shared.errors import UsageError
from ddp_probe.showing import forms
from ddp_probe.wording.text import say
from ddp_probe.wording.unwritable import UnwritableError

if TYPE_CHECKING:
    from ddp_probe.showing.layout import StyledLine

_PAUSE = 0.2

COMMAND = Command(
    "watch",
    order=80,
    summary="Show where each rank of a running job stands, from its ledger.",
    paints=True,
    offers={"run": RUNS, "prometheus": FILES},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's name or folder; default: the newest run that runs, else the newest")
    parser.add_argument("--once", action="store_true", help="print one table")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--prometheus", metavar="FILE", default="", help="write each look to FILE as metrics, for node_exporter")
    parser.add_argument("--cards", action="store_true", help="ask the vendor's tool what the cards of this host do")
    parser.add_argument("--interval", metavar="S", type=_seconds, default=1.0, help="seconds between two looks; default 1")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        template = "Argument --interval: {text} is not a number of seconds between 0.1 and 3600."
        raise UsageError(say(template, text=text), arguments_of("watch"))
    return seconds


def run(args: argparse.Namespace) -> int:
    """Look once, or until the job ends."""
    from ddp_probe.doctor.card_tools import CardTool
    from ddp_probe.reading import bundled
    from ddp_probe.showing import card_table, language, paint, watch_json, watch_page, watch_screen
    from ddp_probe.showing.watch import watch_look, watched_files

    if args.prometheus and not args.prometheus.endswith(".prom"):
        raise UsageError(
            say("--prometheus {path} does not end in .prom.", path=args.prometheus),
            "The collector reads only *.prom: let the name end in that.",
        )
    bundled.refuse([args.run] if args.run else [], "'watch'")
    seen = stacks.from_outside(args.run)
    if seen is not None:
        return attach.judged(seen, forms.JSON if args.json else forms.TERMINAL)
    folders = watched_files.folders(args.run)
    _wait(folders)
    live = watch_look.LiveView(folders)
    name, reader = os.path.basename(folders[0]), language.chosen(sys.stdout)
    tool = CardTool(os.environ) if args.cards else None

    def below(width: int) -> "Iterable[StyledLine]":
        return () if tool is None else card_table.card_lines(tool.ask(), width, reader)

    if args.prometheus:
        _metrics(live, name, args)
    elif args.json:
        print(watch_json.as_json(live.look(), name, None if tool is None else tool.ask()))
    elif args.once or not watch_screen.redraws():
        width = max(40, paint.width())
        paint.write([*watch_page.table_lines(live.look(), name, width, say=reader), *below(width)])
    else:
        return watch_screen.watch(live, name, args.interval, below, reader)
    return 0


def _metrics(live: Any, name: str, args: argparse.Namespace) -> None:
    """Write the metrics of each look, until all processes have ended."""
    from ddp_probe.showing import watch_metrics

    while True:
        look = live.look()
        try:
            watch_metrics.write_metrics(args.prometheus, watch_metrics.as_metrics(look, name))
        except OSError as exc:
            raise UnwritableError(args.prometheus, exc, "Name a file in the collector's folder.") from exc
        if look.over or args.once:
            return
        time.sleep(args.interval)


def _wait(folders: List[str]) -> None:
    """Wait until there is something to show, and say for what."""
    from ddp_probe.showing.remark import remark
    from ddp_probe.showing.watch import watch_look

    last_told = ""
    for why in watch_look.waits_for(folders):
        if why != last_told:
            remark(say("Waiting: {why}. Ctrl-C ends this.", why=why))
            last_told = why
        time.sleep(_PAUSE)
