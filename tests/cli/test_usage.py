"""The command line answers every mistake with what and what to do, and imports only what it runs."""

import subprocess
import sys

import pytest

from ddp_probe.cli import commands, modules


@pytest.mark.parametrize(
    ("args", "what", "remedy"),
    [
        (["instal"], "Unknown command 'instal'.", "Did you mean 'python -m ddp_probe install'?"),
        (["qqq"], "Unknown command 'qqq'.", "'python -m ddp_probe help' lists the commands."),
        (["--frob"], "Unknown option '--frob'.", "'python -m ddp_probe help' lists the commands."),
        (["status", "--frob"], "Unrecognized arguments: --frob.", "'python -m ddp_probe status --help' lists its arguments."),
        (["uninstall", "--", "x"], "Nothing may follow --.", "'python -m ddp_probe uninstall --help' lists its arguments."),
        (["run"], "The command to run is missing.", "Write it after two dashes: python -m ddp_probe run -- torchrun train.py"),
        (["run", "--"], "The command to run is missing.", "Write it after two dashes: python -m ddp_probe run -- torchrun train.py"),
        (["run", "torchrun", "-n=2", "a b.py"], "The command to run follows two dashes.", "python -m ddp_probe run -- torchrun -n=2 'a b.py'"),
        (["run", "--dir", "x", "python", "t.py"], "The command to run follows two dashes.", "python -m ddp_probe run --dir x -- python t.py"),
        (["report", "--jsn"], "Unrecognized arguments: --jsn.", "Did you mean --json? 'python -m ddp_probe report --help' lists its arguments."),
        (["report", "--wrong"], "Unrecognized arguments: --wrong.", "'python -m ddp_probe report --help' lists its arguments."),
        (["logs", "--ranks"], "Unrecognized arguments: --ranks.", "Did you mean --rank? 'python -m ddp_probe logs --help' lists its arguments."),
        (["help", "statsu"], "Unknown command 'statsu'.", "Did you mean 'python -m ddp_probe status'?"),
    ],
)
def test_a_mistake_is_two_lines(run_python, args, what, remedy):
    """A mistake ends with exit code 2, one line what and one line what to do, on stderr."""
    done = run_python(["-m", "ddp_probe", *args])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [what, "  what to do: " + remedy]


def test_a_wrong_choice_is_two_lines(run_python):
    """A value that an option does not take ends with exit code 2 and two lines."""
    done = run_python(["-m", "ddp_probe", "install", "--via", "magic"])
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 2)
    assert "'magic'" in done.stderr


def test_help_lists_every_command(run_python):
    """help, --help and -h print the same page, with every command on it, within 80 columns."""
    pages = {run_python(["-m", "ddp_probe", word]).stdout for word in ("help", "--help", "-h")}
    assert len(pages) == 1
    page = pages.pop()
    assert all("  %-10s %s" % (command.name, command.summary) in page for command in commands())
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("name", [command.name for command in commands()])
def test_every_command_has_a_page(run_python, clean_env, name):
    """COMMAND --help and help COMMAND print the same page, within 80 columns, and end with 0."""
    pages = [run_python(["-m", "ddp_probe", *words], env=clean_env(COLUMNS="80")) for words in ((name, "--help"), ("help", name))]
    assert [page.returncode for page in pages] == [0, 0]
    assert pages[0].stdout == pages[1].stdout
    assert pages[0].stdout.startswith("usage: python -m ddp_probe %s" % name)
    assert [line for line in pages[0].stdout.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.COMMAND.name)
def test_every_command_declares_itself(module):
    """Each public file of the folder is a command with its own name and place, and has a docstring, arguments and a run."""
    assert module.__name__ == "ddp_probe.cli." + module.COMMAND.name
    assert [other.name for other in commands() if other.order == module.COMMAND.order] == [module.COMMAND.name]
    assert module.__doc__
    assert callable(module.add_arguments)
    assert callable(module.run)


def test_the_version_is_printed(run_python):
    """--version prints the package's version."""
    import ddp_probe

    assert run_python(["-m", "ddp_probe", "--version"]).stdout == "ddp_probe %s\n" % ddp_probe.__version__


@pytest.mark.parametrize("args", [["uninstall", "--help"], ["install", "--help"], ["run", "--help"], ["status", "--help"], ["help"]])
def test_nothing_beyond_the_standard_library_is_imported(run_python, args):
    """install, uninstall, run, status and help import neither a dependency, nor torch, nor what runs in a rank."""
    code = (
        "import sys; from ddp_probe.cli import main; main(%r)\n"
        "heavy = ('wrapt', 'structlog', 'msgspec', 'rich', 'jinja2', 'torch', 'mmengine')\n"
        "names = (*heavy, 'ddp_probe.traced.probes', 'ddp_probe.traced.patching', 'ddp_probe.traced.record')\n"
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )
    done = run_python(code % args)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_reader_that_leaves_is_not_an_error(clean_env):
    """help into a pipe that is closed at once ends without a word."""
    command = '{ "$0" -m ddp_probe help; echo "code $?" >&2; } | true'
    done = subprocess.run(["sh", "-c", command, sys.executable], env=clean_env(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr in ("code 0\n", "code 141\n")


def test_the_entry_point_is_the_same_program(run_python):
    """ddp_probe.cli:main is what python -m ddp_probe runs."""
    done = run_python("import sys; sys.argv = ['ddp-probe', '--version']; from ddp_probe.cli import main; sys.exit(main())")
    assert (done.returncode, done.stdout.split()[0]) == (0, "ddp_probe")


def test_schema_prints_json(run_python):
    """schema prints one JSON document."""
    import json

    done = run_python(["-m", "ddp_probe", "schema"])
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_without_a_command_the_help_is_printed(run_python):
    """It is the page of `help`; the exit code says that nothing was done."""
    done, helped = (run_python(["-m", "ddp_probe", *words]) for words in ([], ["help"]))
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == helped.stdout


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.COMMAND.name)
def test_the_options_are_on_the_first_screen(module, monkeypatch, capsys):
    """On 80 columns every list of options begins within the first ten lines and ends before the long text does."""
    from ddp_probe.cli import main

    monkeypatch.setenv("COLUMNS", "80")
    main([module.COMMAND.name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(("options:", "optional arguments:")))
    assert begin < 10
    rest = str(module.__doc__).strip().partition("\n\n")[2]
    assert not rest or next(number for number, line in enumerate(lines) if line and rest.startswith(line)) > begin


@pytest.mark.parametrize("words", [["help"], ["report", "--help"]], ids=" ".join)
def test_a_page_without_docstrings_says_why_it_is_shorter(run_python, words):
    """Under python -OO there are no docstrings; the options are still there."""
    page = run_python(["-OO", "-m", "ddp_probe", *words]).stdout
    assert "None" not in page.split()
    assert "python -OO leaves out what is described here." in page
    assert any(head in page for head in ("options:", "optional arguments:", "commands:"))  # Python 3.8 has the second.
