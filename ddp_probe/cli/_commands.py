"""The commands: each public file of this folder is one, and says what it is in its COMMAND."""

import importlib
import os
import shlex
import sys
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Tuple

import ddp_probe
from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

PROG = "python -m ddp_probe"

# What a shell offers for an argument. If a command says nothing about it, as for a number or a time, a shell offers nothing.
FILES, FOLDERS, RUNS, COMMANDS, PAGES, EVENTS = "files", "folders", "runs", "commands", "pages", "events"


class Command(NamedTuple):
    """What a command is. Its arguments are in add_arguments() and what it does in run(), in the same file; the docstring there is its page."""

    name: str  # That of its file.
    order: int  # Its place on the page of all commands.
    summary: str  # One line of that page.
    paints: bool = False  # It prints with colours, and has --color.
    takes_command: bool = False  # A command follows it, after two dashes.
    usage: Optional[str] = None  # What argparse cannot say.
    offers: Mapping[str, str] = {}  # What a shell offers for an argument, by the argument's name in the code.


PAGE = """\
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


def page(say: Callable[[str], str] = str) -> str:
    """Return what ``help`` prints."""
    from ddp_probe.showing.layout import wrap

    rows = ["  %-10s %s" % (command.name, say(command.summary)) for command in commands()]
    about = " ".join(described(ddp_probe)[0].split())
    template = "\n\n".join(map(say, PAGE.split("\n\n")))
    return template % {"prog": PROG, "about": "\n".join(wrap(say(about), 78)), "commands": "\n".join(rows)}


def described(module: Any) -> Tuple[str, str]:
    """Return the first paragraph of a module's docstring, and the others, which python -OO leaves out."""
    about, _, others = str(module.__doc__ or "python -OO leaves out what is described here.").strip().partition("\n\n")
    return about, others


def names() -> List[str]:
    """Return the names of all commands; nothing is imported."""
    folder = os.path.dirname(__file__)
    return sorted(file[:-3] for file in os.listdir(folder) if file.endswith(".py") and not file.startswith("_"))


def load(name: str) -> Any:
    """Import the module of a command, and name a missing dependency."""
    try:
        return importlib.import_module("%s.%s" % (__package__, name))
    except (ImportError, SyntaxError) as exc:
        raise incomplete(exc, name) from exc


def modules() -> Tuple[Any, ...]:
    """Return the modules of all commands, in the order of the page."""
    return tuple(sorted(map(load, names()), key=lambda module: int(module.COMMAND.order)))


def commands() -> List[Command]:
    """Return what each command says of itself, in the order of the page."""
    return [module.COMMAND for module in modules()]


def find(name: str) -> Any:
    """Return the module of the command with this name, or suggest a similar one; no other is imported."""
    commands = names()
    if name in commands:
        return load(name)
    import difflib

    close = difflib.get_close_matches(name, commands, n=1)
    what_to_do = say("'{program} help' lists the commands.", program=PROG)
    if close:
        what_to_do = say("Did you mean '{program} {command}'?", program=PROG, command=close[0])
    raise UsageError(say("Unknown command {command}.", command=quoted(repr(name))), what_to_do)


def arguments_of(name: str) -> Text:
    """Return where the arguments of a command are described."""
    return say("'{program} --help' lists its arguments.", program="%s %s" % (PROG, name))


def incomplete(exc: Exception, name: str) -> UnusableError:
    """Return the error for a missing or broken dependency or part of the package."""
    lacking = (exc.name or "").partition(".")[0] if isinstance(exc, ModuleNotFoundError) else ""
    why = quoted("%s: %s" % (type(exc).__name__, exc))
    if lacking and lacking != "ddp_probe":
        why = say("{package} is not installed.", package=lacking)
    return UnusableError(
        what=say("The command {command} cannot run.", command=quoted(repr(name))),
        why=why,
        what_to_do=say(
            "Reinstall ddp-probe with its dependencies: {python} -m pip install ddp-probe. 'uninstall' works without them.",
            python=shlex.quote(sys.executable),
        ),
    )
