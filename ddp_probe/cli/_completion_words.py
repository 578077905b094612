"""What a shell may offer at each place of a command line, read from what the commands declare and from their parsers."""

import argparse
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.cli import _commands, _parse
from ddp_probe.cli._commands import COMMANDS, EVENTS, FILES, FOLDERS, PAGES, RUNS, Command

__all__ = ["FILES", "FOLDERS", "FREE", "RUNS", "WORDS", "OfferedCommand", "OfferedOption", "OfferedValue", "commands"]

WORDS, FREE = "words", "free"


class OfferedValue(NamedTuple):
    """What may be typed at one place."""

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
    """Return every command."""
    return [_command(module) for module in _commands.modules()]


def _command(module: Any) -> OfferedCommand:
    command: Command = module.COMMAND
    actions = _parse.parser(module)._actions
    arguments = [action for action in actions if not action.option_strings]
    return OfferedCommand(
        command.name,
        command.summary,
        tuple(_option(command, action) for action in actions if action.option_strings),
        tuple(_offer(command, action) for action in arguments),
        any(action.nargs in ("*", "+") for action in arguments),
        command.takes_command,
    )


def _option(command: Command, action: argparse.Action) -> OfferedOption:
    meaning = " ".join((action.help or "").replace("%%", "%").split())
    return OfferedOption(tuple(action.option_strings), None if action.nargs == 0 else _offer(command, action), meaning)


def _offer(command: Command, action: argparse.Action) -> OfferedValue:
    kind = command.offers.get(action.dest, FREE)
    words = tuple(map(str, action.choices or _named(kind)))
    return OfferedValue(WORDS if words else kind, str(action.metavar or action.dest.upper()), words)


def _named(kind: str) -> Iterator[str]:
    """Yield the names that may be typed there, if they are known before any run is read."""
    if kind == COMMANDS:
        yield from (command.name for command in _commands.commands())
    elif kind == PAGES:
        yield from _rules_and_checks()
    elif kind == EVENTS:
        from ddp_probe.shared import schema

        yield from schema.EVENTS


def _rules_and_checks() -> Iterator[str]:
    from ddp_probe.doctor import checks
    from ddp_probe.judging import rules

    pages: List[Any] = [rules.rule_of(module) for module in rules.modules()]
    for part in (*pages, *(module.CHECK for module in checks.modules())):
        yield from (part.id, part.slug)
