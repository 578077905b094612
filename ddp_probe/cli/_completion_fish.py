"""The completion script for fish."""

from typing import Iterator, Sequence

from ddp_probe.cli._completion_words import FILES, FOLDERS, FREE, RUNS, WORDS, OfferedCommand, OfferedOption, OfferedValue

_SCRIPT = r"""# Completes ddp-probe and python -m ddp_probe in fish. Printed by: python -m ddp_probe completion fish

# The options that take a value in the next word.
set -g __ddp_probe_valued %(valued)s

# __ddp_probe_in COMMAND [NUMBER]: whether an option or an argument of this command comes next; the argument with this number.
function __ddp_probe_in
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = $argv[1]; and not contains -- -- $words; or return 1
    set -q argv[2]; or return 0
    set -l number 1
    set -l taking
    for word in $words[3..-1]
        if set -q taking[1]
            set -e taking
        else if contains -- $word $__ddp_probe_valued
            set taking $word
        else if not string match -q -- '-*' $word
            set number (math $number + 1)
        end
    end
    test $number -eq $argv[2]
end

function __ddp_probe_runs
    set -q DDP_PROBE_DIR; and set -l root $DDP_PROBE_DIR; or set -l root ddp_probe_runs
    for folder in $root/*/
        string replace -r '^.*/(.+)/$' '$1' -- $folder
    end
end

# The command line after the two dashes, completed as one of its own.
function __ddp_probe_after_dashes
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return
    set -l rest (string escape -- $words[(math $at + 1)..-1]) (commandline -ct)
    complete -C "$rest"
end

# python -m ddp_probe: the words after it, completed as those of ddp-probe.
function __ddp_probe_module
    set -l words (commandline -opc)
    set -l at (contains -i -- ddp_probe $words); and test $at -gt 2; or return 1
    set -l before $words[(math $at - 1)]
    test $before = -m
end

function __ddp_probe_of_module
    set -l words (commandline -opc)
    set -l at (contains -i -- ddp_probe $words)
    set -l rest ddp-probe (string escape -- $words[(math $at + 1)..-1]) (commandline -ct)
    complete -C "$rest"
end

complete -c ddp-probe -e
complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1' -f
complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1' -s h -l help -d 'print the commands'
complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1' -s V -l version -d 'print the version'
%(commands)s
for program in python python3
    complete -c $program -n __ddp_probe_module -fa '(__ddp_probe_of_module)'
end
"""


def script(commands: Sequence[OfferedCommand]) -> str:
    """Return the script."""
    valued = sorted({name for command in commands for option in command.options if option.value is not None for name in option.names})
    return _SCRIPT % {"valued": " ".join(valued), "commands": "\n".join(line for command in commands for line in _command(command))}


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
