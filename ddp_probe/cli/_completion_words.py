"""What a shell may offer at each place of a command line, read from the table of commands and from their parsers."""

import argparse
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.cli import _parse
from ddp_probe.cli.commands import COMMANDS, Command

FILES, FOLDERS, RUNS, WORDS, FREE = "files", "folders", "runs", "words", "free"
# What a metavar stands for; any other one, such as N or TIME, is text that nobody can complete.
_KINDS = {"FILE": FILES, "OTHER": FILES, "DIR": FOLDERS, "RUN": RUNS, "PATH": RUNS}
_WITHOUT_RUNS = ("checkpoint",)  # Its PATH is a file.


class OfferedValue(NamedTuple):
    """What may stand at one place."""

    kind: str
    label: str
    words: Tuple[str, ...] = ()


class OfferedOption(NamedTuple):
    """One option of a command: its spellings, what it takes (None if it takes nothing), and what it means."""

    names: Tuple[str, ...]
    value: Optional[OfferedValue]
    help: str


class OfferedCommand(NamedTuple):
    """One command with its options and arguments; the last argument may be repeated if the command takes several."""

    name: str
    summary: str
    options: Tuple[OfferedOption, ...]
    arguments: Tuple[OfferedValue, ...]
    repeats: bool
    takes_command: bool


def commands() -> List[OfferedCommand]:
    """Return every command of the table."""
    return [_command(command) for command in COMMANDS]


def _command(command: Command) -> OfferedCommand:
    module = _parse.load(command)
    actions = _parse.parser(command, module)._actions
    arguments = [action for action in actions if not action.option_strings]
    return OfferedCommand(
        command.name,
        command.summary,
        tuple(_option(action) for action in actions if action.option_strings),
        tuple(_argument(command, action) for action in arguments),
        any(action.nargs in ("*", "+") for action in arguments),
        bool(getattr(module, "TAKES_COMMAND", False)),
    )


def _option(action: argparse.Action) -> OfferedOption:
    meaning = " ".join((action.help or "").replace("%%", "%").split())
    return OfferedOption(tuple(action.option_strings), None if action.nargs == 0 else _offer(action), meaning)


def _argument(command: Command, action: argparse.Action) -> OfferedValue:
    offer = _offer(action)
    return offer._replace(kind=FILES) if offer.kind == RUNS and command.name in _WITHOUT_RUNS else offer


def _offer(action: argparse.Action) -> OfferedValue:
    label = str(action.metavar or action.dest.upper())
    words = tuple(map(str, action.choices)) if action.choices else tuple(_named(label))
    return OfferedValue(WORDS, label, words) if words else OfferedValue(_KINDS.get(label, FREE), label)


def _named(label: str) -> Iterator[str]:
    """Yield the names that a metavar stands for, if they are known before any run is read."""
    if label == "COMMAND":
        yield from (command.name for command in COMMANDS)
    elif label == "NAME":
        yield from _rules_and_checks()
    elif label == "E":
        from ddp_probe import schema

        yield from schema.EVENTS


def _rules_and_checks() -> Iterator[str]:
    from ddp_probe.diagnose import rules
    from ddp_probe.doctor import checks

    pages: List[Any] = [rules.rule_of(module) for module in rules.modules()]
    for each in (*pages, *(module.CHECK for module in checks.modules())):
        yield from (each.id, each.slug)
