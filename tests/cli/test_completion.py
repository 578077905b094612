"""The completion scripts offer what the table of commands and the parsers hold, in real shells."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import pytest

from ddp_probe.cli import _completion_words, _parse, commands, completion, find, modules
from ddp_probe.cli.completion import SHELLS
from ddp_probe.doctor import checks
from ddp_probe.judging import rules

# Metavars for text that no shell can know.
_FREE_TEXT = {"PID", "B", "COLUMNS", "D", "N", "S", "TIME"}


def _absent(shell: str) -> Any:
    return pytest.mark.skipif(shutil.which(shell) is None, reason="%s is not on PATH." % shell)


def _options(name: str) -> List[str]:
    """Return the options of a command, from its parser."""
    return [text for action in _parse.parser(find(name))._actions for text in action.option_strings]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory, python: str) -> Dict[str, Path]:
    """The three scripts, as the command prints them."""
    folder, found = tmp_path_factory.mktemp("completion"), {}
    for shell in SHELLS:
        done = subprocess.run([python, "-m", "ddp_probe", "completion", shell], capture_output=True, text=True, timeout=60, check=True)
        found[shell] = folder / ("ddp-probe." + shell)
        found[shell].write_text(done.stdout, encoding="utf-8")
    return found


@pytest.mark.parametrize("shell", [pytest.param(shell, marks=_absent(shell)) for shell in SHELLS])
def test_the_file_of_a_shell_is_a_script_of_it(shell: str, scripts: Dict[str, Path]) -> None:
    """The shell reads the file in the package as it stands, and the script that is printed from it."""
    for path in (Path(completion.__file__).with_name("completions") / ("completion." + shell), scripts[shell]):
        done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_mark_of_a_script_is_filled(shell: str, scripts: Dict[str, Path]) -> None:
    """The file in the package has marks where rows of the table belong, and what is printed has none."""
    marked = (Path(completion.__file__).with_name("completions") / ("completion." + shell)).read_text(encoding="utf-8")
    assert len(re.findall(r"@[a-z]+@", marked)) >= 2
    assert re.findall(r"@[a-z]+@", scripts[shell].read_text(encoding="utf-8")) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, a folder and a log."""
    made = tmp_path_factory.mktemp("work")
    for name in ("ddp_probe_runs/20261122-a", "ddp_probe_runs/20261122-b", "a folder"):
        (made / name).mkdir(parents=True)
    (made / "ddp_probe_runs" / "latest").symlink_to("20261122-b")
    (made / "train err.log").write_text("", encoding="utf-8")
    return made


Offered = Callable[..., List[List[str]]]
_BASH = r"""
. "$1"; shift
for line; do
    eval "COMP_WORDS=($line)"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    case ${COMP_WORDS[0]} in
        ddp-probe) _ddp_probe ;;
        *) _ddp_probe_python ;;
    esac
    printf '%s\t' "${COMPREPLY[@]}"
    echo
done
"""
_FISH = r"""
source $argv[1]
for line in $argv[2..-1]
    complete -C $line | string replace -r '\t.*' '' | string join \t
    echo
end
"""


def _lines(command: Sequence[str], folder: Path) -> List[List[str]]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return [[word for word in line.split("\t") if word] for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def bash(scripts: Dict[str, Path], folder: Path) -> Offered:
    """Return what bash offers for each command line, each with its last word unfinished."""
    return lambda *lines: _lines(["bash", "--norc", "-c", _BASH, "bash", str(scripts["bash"]), *lines], folder)


@pytest.fixture(scope="module")
def fish(scripts: Dict[str, Path], folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Offered:
    """The same for fish."""
    program = tmp_path_factory.mktemp("fish") / "ask.fish"
    program.write_text(_FISH, encoding="utf-8")
    return lambda *lines: [row for row in _lines(["fish", "--no-config", str(program), str(scripts["fish"]), *lines], folder) if row]


def _in_terminal(command: Sequence[str], typed: Sequence[Tuple[str, str]], end: str, env: Dict[str, str], folder: Path) -> str:
    """Type into a shell in a terminal of its own, each piece once its mark is shown; return what is shown up to the end mark."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=env, cwd=folder, start_new_session=True)
    os.close(follower)
    seen = b""
    try:
        for mark, keys in (*typed, (end, "")):
            while mark.encode() not in seen:
                assert select.select([leader], [], [], 30)[0], seen
                seen += os.read(leader, 65536)
            os.write(leader, keys.encode())
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\x1b[=>]", " ", seen.decode("utf-8", "replace")).replace("\r", "")


def test_every_argument_is_completed_or_free_text() -> None:
    """Each argument of each command is words, files, folders or runs, or has a metavar for text that no shell can know."""
    offers = [
        offer
        for command in _completion_words.commands()
        for offer in (*command.arguments, *(option.value for option in command.options if option.value is not None))
    ]
    assert {offer.label for offer in offers if offer.kind == _completion_words.FREE} == _FREE_TEXT


def test_a_command_offers_something_for_arguments_that_it_has() -> None:
    """Each argument for which a command says what a shell offers is one of its parser."""
    for module in modules():
        assert set(module.COMMAND.offers) <= {action.dest for action in _parse.parser(module)._actions}, module.COMMAND.name


def test_bash_offers_every_command_and_option(bash: Offered) -> None:
    """bash offers every command of the table, and after each command every option of its parser, in both spellings of the program."""
    lines = ["ddp-probe ''", "python -m ddp_probe ''"]
    lines += ["%s %s -" % (program, command.name) for command in commands() for program in ("ddp-probe", "python3 -W ignore -m ddp_probe")]
    found = iter(bash(*lines))
    assert next(found) == next(found) == [command.name for command in commands()]
    for command in commands():
        assert next(found) == next(found) == _options(command.name)


_RULE = rules.rule_of(rules.modules()[0])
_CASES = {
    "ddp-probe rep": ["report"],
    "ddp-probe report --format j": ["json", "junit"],
    "ddp-probe report --color ": ["always", "auto", "never"],
    "ddp-probe explain %s" % _RULE.id: [_RULE.id],
    "ddp-probe explain %s" % checks.modules()[0].CHECK.slug: [checks.modules()[0].CHECK.slug],
    "ddp-probe logs --event ddp.i": ["ddp.init"],
    "ddp-probe logs --rank 3 --event ddp.i": ["ddp.init"],
    "ddp-probe watch 2026": ["20261122-a", "20261122-b"],
    "ddp-probe report lat": ["latest"],
    "ddp-probe completion ": ["bash", "fish", "zsh"],
    "ddp-probe schema ": ["events", "ledger", "report"],
    "ddp-probe help unin": ["uninstall"],
    "python -m ddp_probe report --br": ["--brief"],
    "ddp-probe run -- ddp-probe rep": ["report"],
    "ddp-probe report --cores ": [],
}


@pytest.mark.parametrize(("line", "offered"), [case for case in _CASES.items() if "run --" not in case[0]], ids=str)
def test_bash_offers_what_fits(bash: Offered, line: str, offered: List[str]) -> None:
    """Choices, rules, checks, events and runs are offered where they fit, and nothing after an option that takes a number."""
    assert sorted(bash(line if not line.endswith(" ") else line + "''")[0]) == offered


def test_bash_takes_an_option_and_its_value_in_one_word(bash: Offered) -> None:
    """After --format= the choices are offered; bash has made three words of it."""
    assert bash("ddp-probe report --format = j", "ddp-probe report --format =") == [
        ["json", "junit"],
        ["terminal", "json", "brief", "github", "junit"],
    ]


def test_bash_leaves_files_to_readline(scripts: Dict[str, Path], folder: Path, clean_env: Callable[..., Dict[str, str]]) -> None:
    """In an interactive bash a command is completed, then a file with a blank in its name, then a folder for an option that takes one."""
    setup = ". %s; bind 'set bell-style none'; PS1=RE'ADY>'\n" % shlex.quote(str(scripts["bash"]))
    typed = [("", setup), ("READY>", "ddp-probe repo\ttra\t; ddp-probe run --dir a\t; \x01echo \x05echo EN'D'\n")]
    seen = _in_terminal(["bash", "--norc", "-i"], typed, "END", clean_env(TERM="dumb"), folder)
    assert r"ddp-probe report train\ err.log ; ddp-probe run --dir a\ folder/" in seen


def test_bash_leaves_other_lines_of_python_alone(scripts: Dict[str, Path]) -> None:
    """What completed python before still does, unless the line is -m ddp_probe; bash-completion is asked to load it first."""
    code = r"""
        theirs() { COMPREPLY=(theirs); }
        _completion_loader() { [[ $1 != python ]] || complete -F theirs python; }
        . "$1"
        for line in 'python tra' 'python -m pip rep' 'python train.py -m ddp_probe rep' 'python -m ddp_probe rep'; do
            COMP_WORDS=($line) COMPREPLY=()
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _ddp_probe_python; echo "${COMPREPLY[*]}"
        done
    """
    done = subprocess.run(["bash", "--norc", "-c", code, "bash", str(scripts["bash"])], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout.split(), done.stderr) == (["theirs", "theirs", "theirs", "report"], "")


@_absent("fish")
def test_fish_offers_every_command_and_option(fish: Offered) -> None:
    """fish offers every command of the table, and after each command every long option of its parser, in both spellings of the program."""
    lines = ["ddp-probe ", "python -m ddp_probe "]
    lines += ["%s %s --" % (program, command.name) for command in commands() for program in ("ddp-probe", "python3 -m ddp_probe")]
    found = iter(fish(*lines))
    assert set(next(found)) == set(next(found)) == {command.name for command in commands()}
    for command in commands():
        assert set(next(found)) == set(next(found)) == {name for name in _options(command.name) if name.startswith("--")}


@_absent("fish")
@pytest.mark.parametrize(("line", "offered"), [case for case in _CASES.items() if case[1]], ids=str)
def test_fish_offers_what_fits(fish: Offered, line: str, offered: List[str]) -> None:
    """The same is offered in fish; what lies in the folder may follow a run."""
    assert [word for word in sorted(fish(line)[0]) if not word.endswith("/")] == offered


@pytest.fixture(scope="module")
def zsh(scripts: Dict[str, Path], folder: Path, clean_env: Callable[..., Dict[str, str]]) -> Offered:
    """Return the words that zsh shows when Tab is pressed at the end of each line."""

    def ask(*lines: str) -> List[List[str]]:
        setup = "autoload -U compinit; compinit -u -D; . %s; setopt no_list_ambiguous no_beep; LISTMAX=9999 KEYTIMEOUT=1 RPS1="
        setup += """; stty rows 500 cols 500; mark() { zle -M "EN""D$((count++));" }; zle -N mark; bindkey "^X" mark; PS1=RE"ADY>"\n"""
        typed = [("", setup % scripts["zsh"]), ("READY>", lines[0] + "\t\x18")]
        typed += [("END%d;" % number, "\x15%s\t\x18" % line) for number, line in enumerate(lines[1:])]
        seen = _in_terminal(["zsh", "-f", "-i"], typed, "END%d;" % (len(lines) - 1), clean_env(TERM="xterm"), folder)
        return [part.split() for part in re.split(r"END\d+;", seen.rpartition("READY>")[2])][:-1]

    return ask


@_absent("zsh")
def test_zsh_offers_every_command_and_option(zsh: Offered) -> None:
    """zsh shows every command of the table, and after each command every option of its parser."""
    found = iter(zsh("ddp-probe ", *("python -m ddp_probe %s -" % command.name for command in commands())))
    assert {command.name for command in commands()} <= set(next(found))
    for command in commands():
        assert set(_options(command.name)) <= set(next(found)), command.name


@_absent("zsh")
def test_zsh_offers_what_fits(zsh: Offered) -> None:
    """The same is offered in zsh."""
    cases = {line: offered for line, offered in _CASES.items() if len(offered) > 1}
    for (line, offered), shown in zip(cases.items(), zsh(*cases)):
        assert set(offered) <= set(shown), line


def test_bash_runs_nothing_of_a_name(scripts: Dict[str, Path], tmp_path: Path) -> None:
    """A run's name that holds a command is quoted on the line, and one that holds a line break, an escape or a dash first is not offered."""
    for name in ("20270101-$(touch hacked)", "20270101-a b;c", "20270101-x\ny", "20270101-\x1b[2J", "--strict"):
        (tmp_path / "ddp_probe_runs" / name).mkdir(parents=True)
    offered = _lines(["bash", "--norc", "-c", _BASH, "bash", str(scripts["bash"]), "ddp-probe watch 2027"], tmp_path)[0]
    assert sorted(map(shlex.split, offered)) == [["20270101-$(touch hacked)"], ["20270101-a b;c"]]
    for word in offered:
        done = subprocess.run(["bash", "-c", "printf %%s %s" % word], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout in ("20270101-$(touch hacked)", "20270101-a b;c")
    assert not (tmp_path / "hacked").exists()
