"""Print the help of all commands, or of one."""

import argparse
import sys

from ddp_probe.cli import _commands, _parse
from ddp_probe.cli._commands import COMMANDS, Command
from ddp_probe.showing import language

COMMAND = Command("help", order=170, summary="Print this page, or the page of a command.", offers={"name": COMMANDS})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="COMMAND", help="the command to describe")


def run(args: argparse.Namespace) -> int:
    """Print the help."""
    if args.name is None:
        print(_commands.page(language.chosen(sys.stdout).__call__), end="")
        return 0
    _parse.parser(_commands.find(args.name)).print_help()
    return 0
