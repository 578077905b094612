"""Look from outside at a job without the probe, and name who it waits for.

PID is any process of the job: a rank, its launcher, or a worker. Without it
the ranks on this host are found automatically: by the environment with which
they were started (torchrun, srun, mpirun, a launch by hand), by their parents
and by their connections (mp.spawn, Ray). --all looks at each job of this host.

The ranks do not take part, and none is stopped: it reads /proc, and py-spy
(pip install 'ddp-probe[attach]') reads the Python stacks while the process
runs. --native also shows the C functions in which a rank waits; for that,
py-spy stops one rank after another for some tenths of a second, which are
printed. What cannot be read is named with the reason and the command that
would allow it.

What was seen is a run of its own in DDP_PROBE_DIR: 'report', 'stacks', 'logs',
'bundle' and 'gather' read it later. Looks show less than the probe: findings
state their confidence, and a job that is at work is undecided, not clear.
docs/attach.md has more, and the lines for several hosts.

exit codes:
  0  never: looks from outside do not prove that a job is healthy
  1  found: an error; with --strict, a warning too
  2  there is no job to look at, or nothing can be read
  3  undecided, or a warning alone; the reasons are printed
"""

import argparse
import os
import sys
from typing import Any, List, Optional, Sequence

import ddp_probe
from ddp_probe.cli import report
from ddp_probe.cli._commands import FILES, Command, arguments_of
from ddp_probe.shared.errors import UsageError
from ddp_probe.showing import forms
from ddp_probe.wording.text import Text, say

COMMAND = Command("attach", order=95, summary="Look at a job without the probe, and name who it waits for.", paints=True, offers={"html": FILES})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("pid", nargs="?", metavar="PID", type=int, help="a process of the job; default: the only job on this host")
    parser.add_argument("--all", action="store_true", help="look at each job on this host")
    parser.add_argument("--looks", metavar="N", type=_looks, default=3, help="how often to look, 2 to 8; default 3")
    parser.add_argument("--within", metavar="S", type=_seconds, default=3.0, help="seconds from the first look to the last; default 3")
    parser.add_argument("--native", action="store_true", help="show C functions too; stops each rank for a moment, one after another")
    parser.add_argument("--together", action="store_true", help="with --native: stop several ranks at the same time")
    report.add_forms(parser)
    for form in forms.FILES:
        if form.option == "--html":
            parser.add_argument(form.option, metavar="FILE", help=form.help)


def _looks(text: str) -> int:
    if text.isdigit() and 2 <= int(text) <= 8:
        return int(text)
    template = "Argument --looks: {text} is not a number of looks from 2 to 8."
    raise UsageError(say(template, text=text), arguments_of("attach"))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 600:
        template = "Argument --within: {text} is not a number of seconds from 0.1 to 600."
        raise UsageError(say(template, text=text), arguments_of("attach"))
    return seconds


def run(args: argparse.Namespace) -> int:
    """Find the ranks, look, judge."""
    return report.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    files = forms.wanted_files(vars(args))
    forms.refuse_files(files)
    codes = [judged(folder, args.form, files, strict=args.strict) for folder in look(args)]
    return 1 if 1 in codes else max(codes)


def look(args: Optional[argparse.Namespace] = None, why: str = "") -> List[str]:
    """Look at the jobs, say on stderr why and what that has cost, and return the folders of the runs."""
    from ddp_probe.attaching import look as looking
    from ddp_probe.attaching import py_spy, ranks
    from ddp_probe.showing.remark import remark

    pid, every, native = (args.pid, args.all, args.native) if args is not None else (None, False, False)
    if native:
        py_spy.refuse_native()
    folders = []
    jobs = ranks.find(pid, every)
    if why:
        remark(why)
    for job in jobs:
        how = (
            {"looks": args.looks, "apart": args.within, "together": args.together}
            if args is not None
            else {"looks": 3, "apart": 3.0, "together": False}
        )
        seen = looking.look(job, native=native, **how)
        remark(_cost(seen))
        folders.append(seen.folder)
    return folders


def _cost(seen: Any) -> Text:
    from statistics import median

    pauses = [1000 * pause for pause in seen.pauses]
    how = say("none was stopped")
    if pauses:
        how = say(
            "stopped {count} times, for {usual:.1f} ms (median; worst {worst:.1f} ms)",
            count=len(pauses),
            usual=median(pauses),
            worst=max(pauses),
        )
    return say(
        "Looked at {count} processes in {seconds:.2f} s; {how}. Written: {folder}",
        count=seen.processes,
        seconds=seen.seconds,
        how=how,
        folder=os.path.relpath(seen.folder),
    )


def judged(folder: str, form: str, files: "Sequence[forms.WrittenFile]" = (), *, strict: bool = False) -> int:
    """Judge what was seen, print it, and return the exit code."""
    diagnosis = ddp_probe.diagnose(ddp_probe.read(folder))
    forms.show(diagnosis, form)
    if form == forms.TERMINAL:
        _stacks(folder)
    sys.stdout.flush()
    forms.write_files(list(files), diagnosis)
    return diagnosis.exit_code(strict)


def _stacks(folder: str) -> None:
    """Print the tree of the stacks below the verdict."""
    from ddp_probe.showing import paint, stack_page
    from ddp_probe.showing.watch import ask

    collected = ask.collect([folder], lambda _: True, 0.0)
    if collected.stacks:
        paint.write(stack_page.lines(collected._replace(silent={}), max(40, paint.width()), all_threads=False))
