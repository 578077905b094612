"""A command of the command line, which reads runs."""

import argparse
from typing import Any

from ddp_probe.cli import commands
from new_parts.files import PRINT, PYTHON, Plan, RefusedError, snake

_COMMAND = '''"""Say in one sentence what the command prints.

Say here what a person has to know to use it.
"""

import argparse

from ddp_probe.cli._commands import RUNS, Command

COMMAND = Command("%(name)s", order=%(order)d, summary="Say in one line what it prints.", offers={"paths": RUNS})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a run's folder, or files of one")


def run(args: argparse.Namespace) -> int:
    """Print how many processes have left a log."""
    import ddp_probe
    from ddp_probe.wording.words import counted

    run = ddp_probe.read(*args.paths)
    print(counted(len(run.processes), "process", "processes"))
    return 0
'''

_TEST = '''"""The command %(name)s."""


def test_it_prints_what_a_run_holds(run_python, repo):
    """Over a recorded run the command prints one line."""
    done = run_python(["-m", "ddp_probe", "%(name)s", repo / "tests" / "recorded" / "new" / "00_healthy_ddp"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 processes\\n", "")
'''


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the command's name, one word, such as report")


def plan(options: Any) -> Plan:
    """Return what is written for a command."""
    name = snake("a command", options.name, "report")
    known = commands()
    if name in [command.name for command in known]:
        raise RefusedError("There is a command %s already. Choose another name." % name)
    orders = {command.name: command.order for command in known}
    place = next(number for number in range(orders["runs"] + 1, orders["uninstall"]) if number not in orders.values())
    words = {"name": name, "order": place}
    file, test = "ddp_probe/cli/%s.py" % name, "tests/cli/test_%s_command.py" % name
    return Plan(
        {file: _COMMAND % words, test: _TEST % words},
        (),
        [
            PRINT,
            "%s -m pytest %s    # the command, over a recorded run" % (PYTHON, test),
            "Write COMMAND, add_arguments and run in %s, as fold.py does; `order` is the command's place on the page of help." % file,
            "%s -m pytest tests/cli/test_usage.py -k %s    # its page, with lines of at most 80 characters" % (PYTHON, name),
            "%s -m pytest tests/cli    # every command's page, its colours, Ctrl-C and its completion; some minutes" % PYTHON,
        ],
    )
