"""Show the Python stacks of all ranks as one tree, also while the job hangs.

RUN is a run as 'report' takes it, or an archive of 'bundle'; the default is
the newest one that runs on this host, else the newest. Ranks that run are
asked by a file in the run's folder (ask/stacks.N), and answer in their logs:
no signal, no ptrace. For other ranks, and for those that do not answer, it
shows the last stacks that a suspected hang left in the log, or that an older
probe's timer left next to it (rank*.stacks).

Without any run, it looks at the processes of this host from outside, as
'attach' does.

Equal stacks are one path of the tree. Each branch names its ranks, so a
thousand ranks take about ten lines. Lines of the job are bold; lines of
libraries in a row are one line, the innermost. Main threads are shown;
--threads adds the others, by name.

--folded writes each stack as one line, outermost frame first, with the number
of ranks that have it: FRAME;FRAME;FRAME COUNT, as flame graph viewers read it.
'-' is stdout.

exit codes: 0 shown, 2 no run, or no stacks of any rank
"""

import argparse
import sys
from typing import Any, List, Optional

from ddp_probe.cli._commands import FILES, RUNS, Command
from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.unwritable import UnwritableError

COMMAND = Command("stacks", order=90, summary="Show the Python stacks of all ranks, as one tree.", paints=True, offers={"run": RUNS, "folded": FILES})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's name or folder; default: the newest run that runs, else the newest")
    parser.add_argument("--rank", metavar="N", action="append", default=[], help="3, or 0,4-7; may be repeated")
    parser.add_argument("--threads", action="store_true", help="all threads, not only the main ones")
    parser.add_argument("--raw", action="store_true", help="every frame of every thread, rank by rank")
    parser.add_argument("--folded", metavar="FILE", help="write lines for a flame graph, and print no tree")
    parser.add_argument("--wait", metavar="S", type=float, default=5.0, help="seconds to wait for answers; default 5, 0 asks nobody")


def run(args: argparse.Namespace) -> int:
    """Ask, wait, print."""
    from ddp_probe.reading import bundled

    with bundled.opened([args.run] if args.run else []) as paths:
        path = paths[0] if paths else from_outside(args.run)
        return _show(args, path, 0.0 if bundled.current() is not None else min(args.wait, 3600.0))


def from_outside(run: Optional[str]) -> Optional[str]:
    """Return the run of a look from outside if there is no run at all, and say so; None if there is one, or no job to look at."""
    from ddp_probe.reading import find

    try:
        return None if run else find.newest() and None
    except find.NoRunError as nothing:
        from ddp_probe.cli import attach

        try:
            there_is_none = "There is no run here: the processes of this host are looked at from outside, as 'attach' does."
            folders = attach.look(why=say(there_is_none))
        except UsageError:  # There are several jobs.
            raise
        except UnusableError:
            raise nothing from None
        return folders[0]


def _show(args: argparse.Namespace, path: Optional[str], wait: float) -> int:
    from ddp_probe.cli._chosen_ranks import ranks_of
    from ddp_probe.showing import language, paint, stack_page
    from ddp_probe.showing.watch import ask, watched_files

    folders = watched_files.folders(path)
    collected = ask.collect(folders, ranks_of(args.rank), wait)
    if not collected.stacks:
        raise _nothing(collected, folders[0])
    if args.folded:
        _write(args.folded, collected.stacks, all_threads=args.threads)
        return 0
    width, reader = max(40, paint.width()), language.chosen(sys.stdout)
    if args.raw:
        paint.write(stack_page.raw(collected, width, reader))
    else:
        paint.write(stack_page.lines(collected, width, all_threads=args.threads, say=reader))
    return 0


def _write(path: str, stacks: List[Any], *, all_threads: bool) -> None:
    from ddp_probe.reading import rank_stacks

    threads: List[Any] = []
    for rank in stacks:
        threads += [thread for thread in rank.threads if thread.main or all_threads]
    text = "".join(line + "\n" for line in rank_stacks.folded(threads))
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as exc:
        raise UnwritableError(path, exc) from exc


def _nothing(collected: Any, folder: str) -> UnusableError:
    """Return the error for a run without any stacks, with the reason of the first rank that gave none."""
    for rank, silence in sorted(collected.silent.items()):
        others = len(collected.silent) - 1
        more = say(", and {count} other {count:rank|ranks}", count=others) if others else ""
        return UnusableError(
            what=say("There are no stacks in {folder}.", folder=folder),
            why=say("Rank {rank}{more}: it {silence}.", rank=rank, more=more, silence=silence.whole()),
            what_to_do=silence.what_to_do,
        )
    return UnusableError(
        what=say("There are no stacks in {folder}.", folder=folder),
        why="No rank was chosen.",
        what_to_do="'python -m ddp_probe watch' lists its ranks.",
    )
