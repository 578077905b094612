"""The rows of the completion script for fish, completions/completion.fish."""

from typing import Dict, Iterator, Sequence

from ddp_probe.cli._completion_words import FILES, FOLDERS, FREE, RUNS, WORDS, OfferedCommand, OfferedOption, OfferedValue


def rows(commands: Sequence[OfferedCommand]) -> Dict[str, str]:
    """Return the replacement for each mark of the script."""
    valued = sorted({name for command in commands for option in command.options if option.value is not None for name in option.names})
    return {"valued": " ".join(valued), "commands": "\n".join(line for command in commands for line in _command(command))}


def _command(command: OfferedCommand) -> Iterator[str]:
    first = "complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1'"
    yield "%s -a %s -d %s" % (first, command.name, _quoted(command.summary))
    own = "complete -c ddp-probe -n '__ddp_probe_in %s" % command.name
    for option in command.options:
        yield "%s' %s" % (own, _option(option))
    for number, offer in enumerate(command.arguments, 1):
        repeated = number == len(command.arguments) and command.repeats
        place = "" if repeated and number == 1 else " %d" % number
        yield "%s%s' %s" % (own, place, _place(offer))
    if not command.arguments:
        yield "%s' -f" % own
    if command.takes_command:
        yield "complete -c ddp-probe -n 'contains -- -- (commandline -opc)' -fa '(__ddp_probe_after_dashes)'"


def _option(option: OfferedOption) -> str:
    words = ["-s %s" % name[1:] if not name.startswith("--") else "-l %s" % name[2:] for name in option.names]
    return " ".join([*words, *([_value(option.value)] if option.value is not None else []), "-d %s" % _quoted(option.help)])


def _value(offer: OfferedValue) -> str:
    """Return what an option takes: -x is required and rules out files, -r is required."""
    return {
        FILES: "-rF",
        FOLDERS: "-xa '(__fish_complete_directories)'",
        RUNS: "-ra '(__ddp_probe_runs)'",
        WORDS: "-xa %s" % _quoted(" ".join(offer.words)),
        FREE: "-x",
    }[offer.kind]


def _place(offer: OfferedValue) -> str:
    return {
        FILES: "-F",
        FOLDERS: "-fa '(__fish_complete_directories)'",
        RUNS: "-Fa '(__ddp_probe_runs)'",
        WORDS: "-fa %s" % _quoted(" ".join(offer.words)),
        FREE: "-f",
    }[offer.kind]


def _quoted(text: str) -> str:
    return "'%s'" % text.replace("\\", "\\\\").replace("'", "\\'")
