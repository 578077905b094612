"""The rows of the completion script for zsh, completions/completion.zsh."""

from typing import Dict, Iterator, Sequence

from ddp_probe.cli._completion_words import FILES, FOLDERS, FREE, RUNS, OfferedCommand, OfferedOption, OfferedValue

_ACTIONS = {FILES: "_files", FOLDERS: "_files -/", RUNS: "_ddp_probe_runs", FREE: " "}


def rows(commands: Sequence[OfferedCommand]) -> Dict[str, str]:
    """Return the replacement for each mark of the script."""
    described = ["        %s" % _quoted("%s:%s" % (command.name, command.summary.replace(":", r"\:"))) for command in commands]
    return {"commands": "\n".join(described), "rest": "\n".join(map(_command, commands))}


def _command(command: OfferedCommand) -> str:
    specs = [spec for option in command.options for spec in _option(option)]
    specs += list(_arguments(command))
    body = " \\\n                        ".join(["_arguments -s -S", *map(_quoted, specs)])
    return "                %s)\n                    %s && ret=0\n                    ;;" % (command.name, body)


def _option(option: OfferedOption) -> Iterator[str]:
    """Yield a specification for each spelling; each one rules out the others unless the option may be repeated."""
    meaning = option.help.replace("[", r"\[").replace("]", r"\]")
    for name in option.names:
        before = "(%s)" % " ".join(option.names) if "repeated" not in option.help else "*"
        taken = "=" if option.value is not None and name.startswith("--") else ""
        yield "%s%s%s[%s]%s" % (before, name, taken, meaning, "" if option.value is None else ":" + _message(option.value))


def _arguments(command: OfferedCommand) -> Iterator[str]:
    for number, offer in enumerate(command.arguments, 1):
        last = number == len(command.arguments) and command.repeats
        yield "%s:%s" % ("*" if last else "%d" % number, _message(offer))
    if command.takes_command:
        yield "*:::command:_normal"


def _message(offer: OfferedValue) -> str:
    return "%s:%s" % (offer.label, "(%s)" % " ".join(offer.words) if offer.words else _ACTIONS[offer.kind])


def _quoted(text: str) -> str:
    return "'%s'" % text.replace("'", r"'\''")
