"""The rows of the completion script for bash, completions/completion.bash."""

import shlex
from typing import Dict, Iterator, Sequence, Tuple

from ddp_probe.cli._completion_words import OfferedCommand, OfferedValue


def rows(commands: Sequence[OfferedCommand]) -> Dict[str, str]:
    """Return the replacement for each mark of the script."""
    offers = ["    [%s]=%s" % (shlex.quote(place), shlex.quote(offer)) for place, offer in _offers(commands)]
    return {"commands": shlex.quote(" ".join(command.name for command in commands)), "offers": "\n".join(offers)}


def _offers(commands: Sequence[OfferedCommand]) -> Iterator[Tuple[str, str]]:
    """Yield what may follow a command and a dash, an option of it, and as its argument with a number or any."""
    for command in commands:
        names = [name for option in command.options for name in option.names]
        yield "%s -" % command.name, " ".join(["words", *names])
        for option in command.options:
            if option.value is not None:
                for name in option.names:
                    yield "%s %s" % (command.name, name), _words(option.value)
        for number, offer in enumerate(command.arguments, 1):
            last = number == len(command.arguments) and command.repeats
            yield "%s %s" % (command.name, "*" if last else number), _words(offer)


def _words(offer: OfferedValue) -> str:
    return " ".join((offer.kind, *offer.words))
