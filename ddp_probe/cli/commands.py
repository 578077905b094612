"""The table of commands: their names, modules and summaries."""

from typing import NamedTuple, Tuple

import ddp_probe
from ddp_probe.errors import UsageError

PROG = "python -m ddp_probe"


class Command(NamedTuple):
    """One command: its name, its module, and what it does."""

    name: str
    module: str
    summary: str


COMMANDS: Tuple[Command, ...] = (
    Command("install", "ddp_probe.cli.install", "Install the activator for this Python, and prove that it works."),
    Command("status", "ddp_probe.cli.status", "Show what is installed, and what would be patched."),
    Command("doctor", "ddp_probe.cli.doctor", "Check this host before a job starts, up to ranks that compute."),
    Command("run", "ddp_probe.cli.run", "Run one command under the probe; nothing is installed."),
    Command("report", "ddp_probe.cli.report", "Show what failed first, on which ranks, why, and what to change."),
    Command("gather", "ddp_probe.cli.gather", "Bring a run from the disks of many hosts together, and report."),
    Command("bundle", "ddp_probe.cli.bundle", "Write one masked archive of a run, to attach to an issue."),
    Command("watch", "ddp_probe.cli.watch", "Show where each rank of a running job stands, from its ledger."),
    Command("stacks", "ddp_probe.cli.stacks", "Show the Python stacks of all ranks, as one tree."),
    Command("checkpoint", "ddp_probe.cli.checkpoint", "Tell whether checkpoints are whole, and what they hold."),
    Command("explain", "ddp_probe.cli.explain", "Print the page of a rule or a check, or list all."),
    Command("logs", "ddp_probe.cli.logs", "Print a run's events in readable form; with --raw as JSON lines."),
    Command("runs", "ddp_probe.cli.runs", "List the runs, newest first."),
    Command("uninstall", "ddp_probe.cli.uninstall", "Remove exactly what install wrote."),
    Command("schema", "ddp_probe.cli.schema", "Print the schema of the events, the report or the ledger."),
    Command("completion", "ddp_probe.cli.completion", "Print a completion script for bash, zsh or fish."),
    Command("help", "ddp_probe.cli.help", "Print this page, or the page of a command."),
)

_PAGE = """\
usage: %(prog)s COMMAND [...]

%(about)s

commands:
%(commands)s

every day:
  %(prog)s install
  %(prog)s status
  DDP_PROBE=1 torchrun --nproc_per_node=8 train.py config.py
  %(prog)s report
  %(prog)s uninstall

also:
  %(prog)s run -- torchrun --nproc_per_node=8 train.py config.py
  %(prog)s report err1.log    # of a job without the probe
  DDP_PROBE=1 DDP_PROBE_FIX=auto torchrun --nproc_per_node=8 train.py config.py

%(prog)s COMMAND --help lists the arguments of a command.
Each command exits with 130 at Ctrl-C, and with 2 if it cannot write its output.
%(prog)s --version prints the version.
"""


def page() -> str:
    """Return what ``help`` prints."""
    import textwrap

    rows = ["  %-10s %s" % (command.name, command.summary) for command in COMMANDS]
    return _PAGE % {"prog": PROG, "about": textwrap.fill(str(ddp_probe.__doc__), 78), "commands": "\n".join(rows)}


def find(name: str) -> Command:
    """Return the command of this name, or suggest a similar one."""
    for command in COMMANDS:
        if command.name == name:
            return command
    import difflib

    close = difflib.get_close_matches(name, [command.name for command in COMMANDS], n=1)
    raise UsageError(
        "There is no command %r." % name,
        "Did you mean '%s %s'?" % (PROG, close[0]) if close else "'%s help' lists the commands." % PROG,
    )
