"""Bring a run from the disks of many hosts to rank 0, and print its report.

Start it as a job over the hosts that have the run's files, one process per
host. Each host folds its own files, and rank 0 prints the report:

  torchrun --nnodes=N --nproc_per_node=1 ... -m ddp_probe gather [RUN]
  srun --ntasks-per-node=1 python -m ddp_probe gather [RUN]

Under any other launcher, set MASTER_ADDR and MASTER_PORT. Without one, it
gathers from this host alone. RUN is as in 'report'; the default is the newest
run on the host of rank 0. Other hosts take the run of the same name or, if
they have none, the one with the same rendezvous.

What has arrived is kept in RUN.gathered beside the run, or in --into DIR, one
fold per host, and 'report DIR' shows the same report on any machine. If gather
is started again, it brings only what is still missing.

--logs also brings the files of the run, into DIR/logs/HOST, and completes
those that are there in part. They are what the probe has written, without
further masking: 'bundle' makes a masked archive.

Only hosts of the launch are admitted: by a token that rank 0 passes on through
torchrun's store, or that follows from MASTER_PORT and the launch's name
(rendezvous id, job of the scheduler or of MPI). Without a name, whoever knows
the port can make the token. Other connections are counted in one line, are
closed after ten seconds, and keep no host out.

A host that does not connect within --time-limit, or stops sending for that
long, is a line of the report, and its ranks are 'not seen'.

exit codes, of each rank (below torchrun 0, unless --exit-code is given):
  0  clear: every rank ended normally; warnings may be printed
  1  found: an error; with --strict, a warning too
  2  usage: the command line is wrong, or no host has a run
  3  undecided: no rule can name a cause; or a rank lost rank 0
"""

import argparse
import os
import sys
from typing import Any

import ddp_probe
from ddp_probe.cli import _launched, report
from ddp_probe.cli._commands import FILES, FOLDERS, RUNS, Command
from ddp_probe.shared.errors import UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import size

COMMAND = Command(
    "gather",
    order=60,
    summary="Bring a run from the disks of many hosts together, and report.",
    paints=True,
    offers={"run": RUNS, "into": FOLDERS, "code_file": FILES},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", nargs="?", metavar="RUN", default="", help="a run's name or folder; default: the newest run")
    parser.add_argument("--into", metavar="DIR", default="", help="where rank 0 keeps what comes; default: RUN.gathered beside the run")
    parser.add_argument("--logs", action="store_true", help="bring the files of the run too")
    parser.add_argument("--max-bytes", metavar="N", default="1G", help="most bytes that --logs brings, such as 200M; default 1G")
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="S", help="seconds to wait for a host to connect or to continue; default 60"
    )
    _launched.add_options(parser)
    report.add_forms(parser)


def run(args: argparse.Namespace) -> int:
    """Gather; print the report at rank 0."""
    from ddp_probe.moving.gather import gather_run as gather

    request = gather.GatherRequest(args.run, args.into, args.logs, _bytes(args.max_bytes), _seconds(args.time_limit))
    leads = not gather.where(os.environ).rank
    code = report.guarded(lambda: _report(request, args) if leads else gather.bring(request, os.environ))
    return _launched.ended(args, code, leads=leads)


def _report(request: Any, args: argparse.Namespace) -> int:
    from ddp_probe.moving.gather import gather_run as gather
    from ddp_probe.reading import gathered
    from ddp_probe.showing import forms
    from ddp_probe.showing.progress import Bar, Steps

    steps, bar = Steps(), Bar()
    with gather.gathered(request, os.environ, steps) as came:
        steps.clear()
        try:
            gathered_run = ddp_probe.read(came.folder + came.launch, progress=bar)
        finally:
            bar.clear()
        gathered.note_lacking(gathered_run, came.lacking)  # the folder says the same, unless its disk is full
        diagnosis = ddp_probe.diagnose(gathered_run)
        forms.show(diagnosis, args.form)
        sys.stdout.flush()
        came.code = diagnosis.exit_code(args.strict)
        _say(came)
    return came.code


def _say(came: Any) -> None:
    """Say on stderr what arrived and what did not: stdout has only the report."""
    from ddp_probe.showing.remark import remark

    remark(
        say(
            "gathered from {count} {count:host|hosts}: {size} received, in {folder}",
            count=len(came.hosts),
            size=size(came.bytes),
            folder=came.folder,
        )
    )
    for sentence in came.lacking:
        remark(say("not gathered: {what}", what=sentence))
    for sentence in came.remarks:
        remark(sentence)
    if came.lacking:
        remark(say("start gather again on all hosts to complete it; what has arrived is kept"))
    remark(say("'python -m ddp_probe report {folder}' shows this report again", folder=came.folder))


def _seconds(given: float) -> float:
    if not 0 < given < 1e6:
        raise UsageError(
            say("--time-limit {seconds:g} is not a valid time.", seconds=given),
            "Give a number of seconds, such as 60.",
        )
    return given


def _bytes(text: str) -> int:
    from ddp_probe.cli._sizes import size_of

    return size_of(text, "--max-bytes", 1, say("200M or 1G"))
