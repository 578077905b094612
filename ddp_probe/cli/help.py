"""Print the help of all commands, or of one."""

import argparse

from ddp_probe.cli import _commands, _parse
from ddp_probe.cli._commands import COMMANDS, Command

COMMAND = Command("help", order=170, summary="Print this page, or the page of a command.", offers={"name": COMMANDS})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="COMMAND", help="the command to describe")


def run(args: argparse.Namespace) -> int:
    """Print the help."""
    if args.name is None:
        print(_commands.page(), end="")
        return 0
    _parse.parser(_commands.find(args.name)).print_help()
    return 0
