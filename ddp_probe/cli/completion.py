"""Print a completion script for bash, zsh or fish.

It completes commands, options and their choices, files and folders, the names
of the runs in DDP_PROBE_DIR, and the rules and checks that 'explain' knows, for
'ddp-probe ...' and for 'python -m ddp_probe ...'. What completes other lines of
python stays in charge of them.

To have it in each new shell:
  bash:
    python -m ddp_probe completion bash > ~/.ddp-probe.bash
    echo '. ~/.ddp-probe.bash' >> ~/.bashrc
  zsh (~/.zshrc must call compinit first):
    python -m ddp_probe completion zsh > ~/.ddp-probe.zsh
    echo '. ~/.ddp-probe.zsh' >> ~/.zshrc
  fish:
    mkdir -p ~/.config/fish/conf.d
    python -m ddp_probe completion fish > ~/.config/fish/conf.d/ddp-probe.fish

In this shell alone:
  bash:  eval "$(python -m ddp_probe completion bash)"
  zsh:   eval "$(python -m ddp_probe completion zsh)"
  fish:  python -m ddp_probe completion fish | source

The script is printed from the table of commands. Print it again after an
upgrade.
"""

import argparse
import importlib
import os
import re
from typing import Dict

from ddp_probe.cli._commands import Command
from ddp_probe.shared.regular_files import open_text

SHELLS = ("bash", "zsh", "fish")

COMMAND = Command("completion", order=160, summary="Print a completion script for bash, zsh or fish.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from ddp_probe.cli import _completion_words

    rows = importlib.import_module("ddp_probe.cli._completion_%s" % args.shell).rows(_completion_words.commands())
    print(_filled(args.shell, rows), end="")
    return 0


def _filled(shell: str, rows: Dict[str, str]) -> str:
    """Return the shell's file with what belongs at each of its marks: @name@ in a line, or a comment that holds nothing else."""
    with open_text(os.path.join(os.path.dirname(os.path.abspath(__file__)), "completions", "completion." + shell)) as file:
        script = file.read()
    marks = r"(?m)^ *# @({0})@$|@({0})@".format("|".join(rows))
    return re.sub(marks, lambda match: rows[match.group(1) or match.group(2)], script)
