"""explain prints a rule's page, or all rules."""

import os
import shutil
import subprocess
import sys

import pytest

from ddp_probe.judging import examples
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.showing.rule_page import HUNDREDS


def test_every_rule_is_listed_once(run_python):
    """With --all each rule has a line with its id and name, in order, below its hundred."""
    done = run_python(["-m", "ddp_probe", "explain", "--all"])
    lines = done.stdout.splitlines()
    rules = [rule_of(module) for module in modules()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in lines if line.startswith("  DDP")] == ["  %s  %s" % (rule.id, rule.slug) for rule in rules]
    assert [line[:6] for line in lines if line.startswith("DDP")] == sorted({rule.id[:4] + "xx" for rule in rules})
    assert max(map(len, lines)) <= 80


def test_without_a_name_the_groups_fit_on_a_screen(run_python):
    """Each hundred of rules and checks is one line with its number of them, and how to read on follows."""
    lines = run_python(["-m", "ddp_probe", "explain"]).stdout.splitlines()
    counts = [int(line.split()[1]) for line in lines if line.startswith("DDP")]
    assert sum(counts) == len(modules())
    assert len(lines) <= 24
    assert [line.split()[-1] for line in lines[-1:]] == ["all"]


@pytest.mark.parametrize(
    ("name", "found", "others"),
    [
        ("DDP7", ["DDP701", "DDP705"], ["DDP801"]),
        ("doc3xx", ["DOC301"], ["DOC201"]),
        ("hang", ["DDP629", "DDP635"], ["DDP101"]),  # In their symptoms, and not as a part of "change".
        ("out of memory", ["DDP221", "DDP223"], ["DDP629"]),
        ("\u5361\u4f4f", ["DDP629", "DDP635"], ["DDP101"]),  # Chinese for hang, which no Chinese text has.
        ("stuck", ["DDP629", "DDP635"], ["DDP101"]),
        ("\u663e\u5b58", ["DDP221", "DDP313"], ["DDP629"]),
    ],
)
def test_rules_and_checks_are_found_by_words_and_by_group(name, found, others, capsys):
    """A beginning of an id lists its group; words list what has all of them, in English or Chinese."""
    from ddp_probe.cli import main

    assert main(["explain", name]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  D")]
    assert set(found) <= set(listed)
    assert not set(others) & set(listed)


def test_every_hundred_has_a_name():
    """Each hundred that a rule is in says what it is about."""
    assert {rule_of(module).id[:4] for module in modules()} <= set(HUNDREDS)


@pytest.mark.parametrize("module", modules(), ids=lambda module: rule_of(module).slug)
def test_every_rule_has_a_readable_page(module, monkeypatch, capsys):
    """A rule's page has its title, what is seen, what proves it, what to change and its examples, within 80 columns but for what has no space."""
    from ddp_probe.cli import main

    monkeypatch.setenv("COLUMNS", "80")
    rule = rule_of(module)
    assert main(["explain", rule.slug]) == 0
    page = capsys.readouterr().out
    assert page.startswith("%s %s\n" % (rule.id, rule.slug))
    flat = " ".join(page.split())
    for text in (rule.title, rule.symptom, rule.evidence, rule.remedy, rule.cause, *(example.name for example in examples.of(rule.slug))):
        assert " ".join(text.split()) in flat
    for line in page.splitlines():
        assert len(line) <= 80 or " " not in line.strip(), line


@pytest.mark.parametrize("name", ["DDP104", "ddp104", "submodule-left-behind", "submodule_left_behind", "Submodule-Left-Behind"])
def test_a_rule_is_found_by_id_and_name(run_python, name):
    """Upper and lower case, dash and underscore are the same."""
    done = run_python(["-m", "ddp_probe", "explain", name])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("DDP104 submodule-left-behind\n")


@pytest.mark.parametrize(
    ("name", "what", "remedy"),
    [
        ("submodule-left-behnd", "No rule or check matches 'submodule-left-behnd'", "Did you mean submodule-left-behind?"),
        ("zzz", "No rule or check matches 'zzz'", "'python -m ddp_probe explain' lists the groups."),
        ("DDP698", "No rule or check matches 'DDP698'", "'python -m ddp_probe explain DDP6' lists what is about ranks that diverge."),
        ("DDP9999", "No rule or check matches 'DDP9999'", "'python -m ddp_probe explain' lists the groups."),
        ("\x1b[2J", "No rule or check matches '\\x1b[2J'", "'python -m ddp_probe explain' lists the groups."),
    ],
)
def test_an_unknown_rule_is_two_lines(run_python, name, what, remedy):
    """A name that no rule has ends with 2, and with the names that are close."""
    done = run_python(["-m", "ddp_probe", "explain", name])
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == what + "."
    assert lines[1].startswith("  what to do: " + remedy.rstrip("?"))


def test_a_retired_rule_is_told(monkeypatch, capsys):
    """The id and the name of a rule that is gone say so."""
    from ddp_probe.cli import main
    from ddp_probe.judging import rules

    monkeypatch.setitem(rules.RETIRED, "DDP999", "gone-rule")
    for name in ("DDP999", "gone-rule"):
        assert main(["explain", name]) == 0
        assert capsys.readouterr().out == "DDP999 gone-rule is retired: no rule has this name now.\n"


def test_with_a_run_the_page_begins_with_what_is_special_to_it(run_python, repo):
    """The finding in the run, and what to change, come before the rule's own page."""
    job = repo / "tests" / "recorded" / "new" / "03_submodule_left_behind"
    done = run_python(["-m", "ddp_probe", "explain", "DDP104", str(job)])
    lines = done.stdout.splitlines()
    assert lines[0].startswith("DDP104 submodule-left-behind in 2026")
    assert lines[1].startswith("2 of 4 parameters (head.weight, head.bias) are on cpu")
    assert lines.index("  change") < lines.index("DDP104 submodule-left-behind") < lines.index("what you see")


@pytest.fixture
def moved(tmp_path, repo):
    """A recorded run whose program lies in this folder, as old as the run is not: older."""
    job = shutil.copytree(str(repo / "tests" / "recorded" / "new" / "03_submodule_left_behind"), str(tmp_path / "ddp_probe_runs" / "run"))
    source = shutil.copy(str(repo / "tests" / "jobs" / "03_submodule_left_behind.py"), str(tmp_path))
    for name in os.listdir(job):
        if name.endswith(".jsonl"):
            place = os.path.join(job, name)
            with open(place, encoding="utf-8") as file:
                text = file.read().replace('"/train/', '"%s/' % tmp_path)
            with open(place, "w", encoding="utf-8") as file:
                file.write(text)
    os.utime(source, (1, 1))
    return tmp_path


def test_the_diff_alone_is_what_git_applies(moved, run_python):
    """--diff prints nothing but the change, git applies it to a file without a newline at its end, and a source that has changed since is said."""
    program = moved / "03_submodule_left_behind.py"
    program.write_bytes(program.read_bytes().rstrip(b"\n"))
    os.utime(str(program), (1, 1))
    done = run_python(["-m", "ddp_probe", "explain", "DDP104", "--diff"], cwd=moved)
    assert (done.returncode, done.stderr) == (0, "")
    applied = subprocess.run(["git", "apply"], check=False, input=done.stdout.encode(), cwd=str(moved), stderr=subprocess.PIPE)
    assert (applied.returncode, applied.stderr) == (0, b"")
    again = run_python(["-m", "ddp_probe", "explain", "DDP104", "--diff", "run"], cwd=moved)
    assert (again.returncode, again.stdout) == (2, "")
    assert "03_submodule_left_behind.py changed at" in again.stderr
    page = run_python(["-m", "ddp_probe", "explain", "DDP104", "run"], cwd=moved).stdout
    assert "No diff: 03_submodule_left_behind.py changed at" in " ".join(page.split())
    assert "--- a/" not in page


def test_a_diff_with_escapes_is_refused(moved, run_python):
    """Lines that would control a terminal are not printed raw into a pipe, which may end in one: no diff is made, and the page is named."""
    program = moved / "03_submodule_left_behind.py"
    lines = program.read_bytes().split(b"\n")
    program.write_bytes(b"\n".join(line + b"  # \x1b[2J" if line.strip() and not line.startswith(b'"') else line for line in lines))
    os.utime(str(program), (1, 1))
    done = run_python(["-m", "ddp_probe", "explain", "DDP104", "--diff"], cwd=moved)
    assert (done.returncode, done.stdout) == (2, "")
    assert "would control a terminal" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("width", ["44", "80"])
def test_the_hint_below_a_finding_keeps_the_run(moved, run_python, clean_env, width):
    """At any width, and for the newest run, the last line of a finding is a command that a shell can run."""
    report = run_python(["-m", "ddp_probe", "report"], cwd=moved, env=clean_env(COLUMNS=width)).stdout
    (command,) = [text.split("\n\n")[0] for text in report.replace("\\\n", "").split("  more: ")[1:]]
    assert command.split() == ["python", "-m", "ddp_probe", "explain", "DDP104", "run"]
    words = [sys.executable if word == "python" else word for word in command.split()]
    assert subprocess.run(words, check=False, cwd=str(moved), stdout=subprocess.DEVNULL).returncode == 0


def test_the_page_of_a_rule_loads_nothing_that_finds_runs(run_python):
    """explain with a rule alone loads neither what finds and opens runs nor what parses the job's source."""
    code = (
        "import sys; from ddp_probe.cli import main; main(['explain', 'DDP101'])\n"
        "names = ('ddp_probe.reading.find', 'ddp_probe.reading.bundled', 'ddp_probe.judging.job_calls')\n"
        "sys.stderr.write(str([name for name in names if name in sys.modules]))\n"
    )
    assert run_python(code).stderr == "[]"
