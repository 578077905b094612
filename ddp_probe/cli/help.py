"""Print the help of all commands, or of one."""

import argparse

from ddp_probe.cli import _parse, commands


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="COMMAND", help="the command to describe")


def run(args: argparse.Namespace) -> int:
    """Print the help."""
    if args.name is None:
        print(commands.page(), end="")
        return 0
    command = commands.find(args.name)
    _parse.parser(command, _parse.load(command)).print_help()
    return 0
