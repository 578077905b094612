"""The rows of the completion script for bash, completions/completion.bash."""

import shlex
from typing import Dict, Iterator, List, Sequence

from ddp_probe.cli._completion_words import OfferedCommand, OfferedValue


def rows(commands: Sequence[OfferedCommand]) -> Dict[str, str]:
    """Return the replacement for each mark of the script."""
    return {
        "commands": shlex.quote(" ".join(command.name for command in commands)),
        "options": "\n".join(_options(commands)),
        "values": "\n".join(_values(commands)),
        "arguments": "\n".join(_arguments(commands)),
    }


def _options(commands: Sequence[OfferedCommand]) -> Iterator[str]:
    for command in commands:
        names = [name for option in command.options for name in option.names]
        yield _case([shlex.quote(command.name)], " ".join(names))


def _values(commands: Sequence[OfferedCommand]) -> Iterator[str]:
    for command in commands:
        for option in command.options:
            if option.value is not None:
                yield _case([shlex.quote("%s %s" % (command.name, name)) for name in option.names], _words(option.value))


def _arguments(commands: Sequence[OfferedCommand]) -> Iterator[str]:
    for command in commands:
        last = len(command.arguments)
        for number, offer in enumerate(command.arguments, 1):
            pattern = "'%s '*" % command.name if number == last and command.repeats else shlex.quote("%s %d" % (command.name, number))
            yield _case([pattern], _words(offer))


def _words(offer: OfferedValue) -> str:
    return " ".join((offer.kind, *offer.words))


def _case(patterns: List[str], reply: str) -> str:
    return "        %s) REPLY=%s ;;" % (" | ".join(patterns), shlex.quote(reply))
