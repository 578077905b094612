"""Prints docs/cli.md from the commands in ddp_probe/cli."""

import argparse
import textwrap

from ddp_probe import cli
from ddp_probe.cli import _parse
from docs_parts.markdown import NOTE, prose


def cli_page() -> str:
    """Return docs/cli.md."""
    lines = [
        NOTE % "ddp_probe/cli",
        "# Commands",
        "",
        "`python -m ddp_probe COMMAND`, or `ddp-probe COMMAND`. Exit codes: 0 done, 1 refused, with what, why and what to do on stderr; 2 a",
        "command line that cannot be understood. `run` passes on the exit code of what it runs.",
    ]
    for module in cli.modules():
        arguments = [action for action in _parse.parser(module)._actions if "-h" not in action.option_strings]
        about, _, more = str(module.__doc__).strip().partition("\n\n")
        lines += ["", "## %s" % module.COMMAND.name, "", prose(about)]
        if more:
            lines += ["", "```", textwrap.dedent(more), "```"]
        if arguments:
            lines += ["", "| argument | meaning |", "|---|---|"]
            lines += ["| `%s` | %s |" % (spelling(action), prose(" ".join((action.help or "").split()))) for action in arguments]
    return "\n".join(lines) + "\n"


def spelling(action: argparse.Action) -> str:
    """Return how an argument is written on the command line."""
    name = action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)
    if not action.option_strings or action.nargs == 0:
        return name
    choices = " or ".join(str(choice) for choice in action.choices) if action.choices else str(action.metavar or action.dest.upper())
    return "%s %s" % (name, choices)
