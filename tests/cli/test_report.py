"""report answers in each of its forms, with the exit code that its page names."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from terminal import in_terminal

FOUND, CLEAR, OPEN = "03_submodule_left_behind", "00_healthy_ddp", "10_rank_never_started"
WARNED = "05_hardcoded_card_zero"


@pytest.fixture
def report(run_python, repo, tmp_path):
    """Run report over a recorded job, or over a path, in an empty folder."""

    def run(*args, env=None):
        places = [str(repo / "tests" / "recorded" / "new" / arg) if arg in (FOUND, CLEAR, OPEN, WARNED) else str(arg) for arg in args]
        return run_python(["-m", "ddp_probe", "report", *places], env=env, cwd=tmp_path)

    return run


@pytest.mark.parametrize("form", [(), ("--brief",), ("--json",)])
@pytest.mark.parametrize(("job", "code", "word"), [(FOUND, 1, "found"), (CLEAR, 0, "clear")])
def test_the_exit_code_is_the_verdict(report, form, job, code, word):
    """Found is 1 and clear is 0, in every form, and nothing goes to stderr."""
    done = report(job, *form)
    assert (done.returncode, done.stderr) == (code, "")
    assert ("DDP104" if word == "found" else "clear") in done.stdout


@pytest.mark.parametrize("form", [(), ("--brief",), ("--json",), ("--format", "github"), ("--format", "junit")])
def test_undecided_is_three(report, tmp_path, form):
    """A run that no rule can name a cause of is 3, in every form."""
    (tmp_path / "rank00000.node1.1.jsonl").write_text('{"event":"process.start","phase":"point","rank":0,"world_size":1}\n', encoding="utf-8")
    done = report(tmp_path, *form)
    assert (done.returncode, done.stderr) == (3, "")
    assert "undecided" in done.stdout


@pytest.mark.parametrize("form", [(), ("--brief",), ("--json",), ("--format", "github"), ("--format", "junit")])
def test_a_warning_alone_is_zero(report, form):
    """A run that ended well with a warning is 0 in every form, and 1 with --strict."""
    loose, strict = report(WARNED, *form), report(WARNED, *form, "--strict")
    assert (loose.returncode, strict.returncode, loose.stderr) == (0, 1, "")
    assert loose.stdout == strict.stdout
    assert "DDP" in loose.stdout


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ((), "No run found."),
        (("/no/such/run",), "No such file or folder: /no/such/run."),
        (("--json", "--brief"), "Argument --brief: not allowed with argument --json."),
        (("--follow", "/no/such/run"), "No such file or folder: /no/such/run."),
        (("",), "A path is empty."),
        (("\x1b[2Jgone",), "No such file or folder: \\x1b[2Jgone."),
    ],
)
def test_nothing_to_read_is_usage(report, args, what):
    """A path that is not there, no run at all, and a wrong command line are 2; stderr says what, why and what to do."""
    done = report(*args)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == what
    assert lines[-1].startswith("  what to do: ")


def test_the_newest_run_is_read_by_default(run_python, repo, tmp_path, clean_env):
    """Without a path the newest run below DDP_PROBE_DIR, or below ddp_probe_runs here, is read."""
    os.symlink(repo / "tests" / "recorded" / "new", tmp_path / "ddp_probe_runs")
    done = run_python(["-m", "ddp_probe", "report", "--json"], cwd=tmp_path)
    elsewhere = run_python(["-m", "ddp_probe", "report", "--json"], env=clean_env(DDP_PROBE_DIR=str(tmp_path / "ddp_probe_runs")))
    assert done.returncode == elsewhere.returncode
    here, there = (json.loads(each.stdout)["inventory"]["folders"][0] for each in (done, elsewhere))
    assert here == "ddp_probe_runs/" + there.rsplit("/", 1)[1]


@pytest.mark.parametrize(
    "extra",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"TERM": "dumb", "NO_COLOR": "1"},
    ],
)
def test_no_locale_stops_it(run_python, clean_env, repo, tmp_path, extra):
    """A log with characters that the locale cannot encode is reported too, in every form."""
    start = '{"event":"process.start","phase":"point","rank":0,"world_size":1,"run":"模型 é"}\n'
    failure = '{"event":"process.end","phase":"point","rank":0,"uncaught":true,"failure":{"type":"ValueError","message":"模型 é"}}\n'
    (tmp_path / "rank00000.node1.1.jsonl").write_text(start + failure, encoding="utf-8")
    code = (  # One process for all: what cannot be encoded depends on the process.
        "import sys\nfrom ddp_probe.cli import main\nfrom ddp_probe.showing import forms\n"
        "print(*[main(['report', sys.argv[1], '--format', name]) for name in forms.NAMES], file=sys.stderr)"
    )
    env = clean_env(PYTHONPATH=str(repo), **extra)  # A .pth file is read in the locale's encoding, and the checkout may lie in a folder beyond it.
    done = run_python(["-c", code, tmp_path], env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "3 3 3 3 3\n")


def test_a_terminal_gets_colours_and_no_color_takes_them_away(repo, clean_env):
    """In a terminal the verdict stands out; with NO_COLOR, and in a dumb terminal, it does without colour."""
    job = str(repo / "tests" / "recorded" / "new" / FOUND)
    code, seen = in_terminal(["report", job], clean_env(TERM="xterm-256color", NO_COLOR=None, COLUMNS=None), 100)
    assert code == 1
    assert "\x1b[1;31mDDP104 submodule-left-behind  ranks 0-1\x1b[0m" in seen
    _, plain = in_terminal(["report", job], clean_env(TERM="xterm-256color", NO_COLOR="1", COLUMNS=None), 100)
    assert "DDP104" in plain
    assert "31m" not in plain
    _, dumb = in_terminal(["report", job], clean_env(TERM="dumb", COLUMNS=None), 100)
    assert "DDP104" in dumb
    assert "\x1b" not in dumb


def test_the_width_is_the_terminals(repo, clean_env):
    """A wide terminal has the last event next to each rank, a narrow one below the table."""
    job = str(repo / "tests" / "recorded" / "new" / FOUND)
    for columns in (80, 140):
        _, seen = in_terminal(["report", job], clean_env(TERM="xterm", COLUMNS=None), columns)
        lines = [re.sub(r"\x1b\[[\d;]*m|\r", "", line) for line in seen.split("\n")]
        assert max(map(len, lines)) <= columns
        assert ("last event" in lines) == (columns == 80)


def test_a_reader_that_leaves_is_not_an_error(repo, clean_env):
    """A pipe that is closed at once ends the report without a word, and not with the code for found."""
    job = str(repo / "tests" / "recorded" / "new" / FOUND)
    command = '{ sleep 0.5; "$0" -m ddp_probe report "$1"; echo "code $?" >&2; } | true'
    done = subprocess.run(["sh", "-c", command, sys.executable, job], env=clean_env(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "code 141\n"


def test_a_report_loads_little(run_python, repo):
    """No form imports a library beyond msgspec, or anything of the traced side."""
    job = str(repo / "tests" / "recorded" / "new" / FOUND)
    for form in (["--brief"], ["--json"], ["--format", "github"], ["--format", "junit"], []):
        code = (
            "import sys; from ddp_probe.cli import main; main(%r)\n"
            "names = ('torch', 'mmengine', 'wrapt', 'structlog', 'jinja2', 'rich', 'ddp_probe.traced', 'ddp_probe.traced.probes')\n"
            "print([name for name in names if name in sys.modules], file=sys.stderr)"
        )
        assert run_python(code % ["report", job, *form]).stderr == "[]\n"


def test_a_fault_of_the_report_is_not_a_finding(run_python, repo, clean_env):
    """If the report itself fails, the exit code is that of undecided and an error says so; with DDP_PROBE_STRICT=1 it raises."""
    job = str(repo / "tests" / "recorded" / "new" / FOUND)
    code = (
        "import sys\nfrom ddp_probe.showing import brief_form\nfrom ddp_probe.cli import main\n"
        "del brief_form.show\nsys.exit(main(['report', '--brief', %r]))" % job
    )
    done = run_python(code, env=clean_env(DDP_PROBE_STRICT=None))
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == "The report could not be made."
    assert "Traceback" not in done.stderr
    assert "AttributeError" in run_python(code).stderr
    assert "Traceback" in run_python(code).stderr


def test_the_page_names_the_exit_codes(run_python):
    """report --help says what each exit code means."""
    page = run_python(["-m", "ddp_probe", "report", "--help"]).stdout
    for line in ("  0  clear:", "  1  found:", "  2  usage:", "  3  undecided:"):
        assert line in page


@pytest.mark.parametrize("command", ["report", "runs", "logs"])
def test_a_forgotten_install_is_told(run_python, tmp_path, command):
    """If there is no run because the activator was never installed, each command that needs one says so, and what to do."""
    done = run_python(["-m", "ddp_probe", command], cwd=tmp_path)
    assert done.returncode == 2
    assert "Not installed for %s: DDP_PROBE=1 alone records nothing." % sys.executable in done.stderr
    python = shlex.quote(sys.executable)
    install = "%s -m ddp_probe install" % python
    assert "  what to do: %s; or, for one launch, %s -m ddp_probe run -- COMMAND, then run the job again." % (install, python) in done.stderr


def test_run_with_a_single_process_that_records_nothing(run_python, tmp_path):
    """After `run` of a program that makes no recorded call, the page names this reason beside the missing installation, which `run` does not need."""
    (tmp_path / "train.py").write_text("import torch\nprint(torch.ones(2).sum())\n", encoding="utf-8")
    done = run_python(["-m", "ddp_probe", "run", "--", sys.executable, "train.py"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = run_python(["-m", "ddp_probe", "report"], cwd=tmp_path).stderr
    assert "'python -m ddp_probe run' needs no installation; but a program of one process has a run only once it makes a call" in told


def test_says_which_run_it_is_and_when_it_was(run_python, repo, tmp_path):
    """A report says when its run began and with which command; without a path also how old it is, and that an old run may not be the one meant."""
    run = tmp_path / "ddp_probe_runs" / "20261122-084908-3106-8800"
    shutil.copytree(repo / "tests" / "recorded" / "new" / FOUND, run)
    newest, named = (" ".join(run_python(["-m", "ddp_probe", "report", *words], cwd=tmp_path).stdout.split()) for words in ([], [run]))
    began = r"began 2026-\d\d-\d\d \d\d:\d\d:\d\d UTC%s: torchrun --nproc_per_node=2 [^\n]*03_submodule_left_behind.py read "
    assert re.search(began % r", last heard of \d+ (?:d|h|min) ago", newest)
    assert "note no path was given, so this is the newest run" in newest
    assert re.search(began % "", named)
    assert "no path was given" not in named


def test_programs_are_told_which_run_it_is_too(run_python, repo, tmp_path):
    """The JSON has when the run began and was last heard of, its command, and its age if no path was given; --brief says the same in a line."""
    run = tmp_path / "ddp_probe_runs" / "20261122-084908-3106-8800"
    shutil.copytree(repo / "tests" / "recorded" / "new" / FOUND, run)
    printed = [run_python(["-m", "ddp_probe", "report", "--json", *words], cwd=tmp_path).stdout for words in ([], [run])]
    found, named = (json.loads(text)["inventory"] for text in printed)
    assert re.fullmatch(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", found["began"])
    assert found["began"] < found["heard"]
    assert "--nproc_per_node=2" in found["command"]
    assert found["age"] > 0
    assert named["age"] is None
    newest, named = (run_python(["-m", "ddp_probe", "report", "--brief", *words], cwd=tmp_path).stdout.splitlines() for words in ([], [run]))
    assert newest[:-1] == named
    assert re.match(r"run \S+: 2026-\S+ \S+ UTC, last heard of \d+ (?:d|h|min) ago: torchrun --nproc_per_node=2 ", newest[-1])


def test_an_empty_log_is_called_empty(run_python, tmp_path):
    """A plain log without a line shows nothing of a job: the report names it, says how to keep what a job prints, and is undecided."""
    (tmp_path / "empty.log").write_text("")
    done = run_python(["-m", "ddp_probe", "report", "empty.log"], cwd=tmp_path)
    assert done.returncode == 3
    assert "empty.log is empty." in done.stdout
    assert "2>&1 | tee log" in done.stdout
