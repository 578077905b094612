"""The completion script for zsh."""

from typing import Iterator, Sequence

from ddp_probe.cli._completion_words import FILES, FOLDERS, FREE, RUNS, OfferedCommand, OfferedOption, OfferedValue

_ACTIONS = {FILES: "_files", FOLDERS: "_files -/", RUNS: "_ddp_probe_runs", FREE: " "}
_SCRIPT = r"""# Completes ddp-probe and python -m ddp_probe in zsh. Printed by: python -m ddp_probe completion zsh

_ddp_probe_runs() {
    local -a runs=(${DDP_PROBE_DIR:-ddp_probe_runs}/*(N-/:t))
    _alternative 'runs:run:compadd -a runs' 'files:file:_files'
}

_ddp_probe() {
    local curcontext=$curcontext context state state_descr line ret=1
    local -A opt_args
    local -a commands=(
%(commands)s
    )
    _arguments -C '(- 1 *)'{-h,--help}'[print the commands]' '(- 1 *)'{-V,--version}'[print the version]' '1: :->command' '*:: :->rest' && ret=0
    case $state in
        command) _describe -t commands command commands && ret=0 ;;
        rest)
            case $words[1] in
%(rest)s
            esac
            ;;
    esac
    return ret
}

# Other lines of python stay with the function that completes them.
_ddp_probe_python() {
    local at=${words[(ie)ddp_probe]}
    if ((at > 2 && at < CURRENT)) && [[ $words[at-1] == -m && -z ${(M)words[2,at-2]:#[^-]*} ]]; then
        words=(ddp-probe "${(@)words[at+1,-1]}")
        ((CURRENT -= at - 1))
        _ddp_probe
    elif [[ -n $_ddp_probe_before[$service] ]]; then
        ${=_ddp_probe_before[$service]}
    elif ((${+functions[_python]})); then
        _python # zsh's own, which completes each program whose name begins with python
    else
        _default
    fi
}

typeset -gA _ddp_probe_before
() {
    local name
    for name in python python3; do
        [[ $_comps[$name] == _ddp_probe_python ]] || _ddp_probe_before[$name]=$_comps[$name]
    done
}
compdef _ddp_probe ddp-probe
compdef _ddp_probe_python python python3
"""


def script(commands: Sequence[OfferedCommand]) -> str:
    """Return the script."""
    described = ["        %s" % _quoted("%s:%s" % (command.name, command.summary.replace(":", r"\:"))) for command in commands]
    return _SCRIPT % {"commands": "\n".join(described), "rest": "\n".join(map(_command, commands))}


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
