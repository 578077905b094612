"""Print a completion script for bash, zsh or fish.

It completes commands, options and their choices, files and folders, the names
of the runs in DDP_PROBE_DIR, and the rules and checks that 'explain' knows, for
'ddp-probe ...' and for 'python -m ddp_probe ...'. What completes other lines of
python stays in charge of them.

To have it in each new shell:
  bash:
    python -m ddp_probe completion bash > ~/.ddp-probe.bash
    echo '. ~/.ddp-probe.bash' >> ~/.bashrc
  zsh, in which ~/.zshrc calls compinit before:
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

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from ddp_probe.cli import _completion_words

    module = importlib.import_module("ddp_probe.cli._completion_%s" % args.shell)
    print(module.script(_completion_words.commands()), end="")
    return 0
