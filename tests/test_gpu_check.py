"""scripts/gpu_check says so if there is no card, and otherwise launches, limits, judges and keeps its cases: rehearsed here on the CPU."""

import importlib.machinery
import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from ddp_probe.judging.rules import modules, rule_of


@pytest.fixture
def gpu_check(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """scripts/gpu_check as a module, taken out of sys.modules afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("gpu_check_program", str(repo / "scripts" / "gpu_check"))
    spec = importlib.util.spec_from_loader("gpu_check_program", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    yield module
    for name in [name for name in sys.modules if name.split(".")[0] in ("gpu_parts", "record_parts")]:
        del sys.modules[name]


@pytest.fixture
def program(repo: Path, clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run the program from another folder, on a host that shows no CUDA card."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(repo / "scripts" / "gpu_check"), *arguments]
        env = clean_env(CUDA_VISIBLE_DEVICES="")
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)

    return run


@pytest.mark.slow
def test_a_host_without_a_card_is_told(program: Callable[..., Any], tmp_path: Path) -> None:
    """Without a card one line on stderr says what was looked at, no case is started, and the exit code is 3."""
    done = program("--into", "kept")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1)
    assert "there is no card on this host, so no case was started" in done.stderr
    assert all(looked_at in done.stderr for looked_at in ("/dev/nvidia", "nvidia-smi", "counts 0 CUDA cards")), done.stderr
    assert not list(tmp_path.iterdir())


def test_the_list_needs_no_card(gpu_check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """--list shows each case with its ranks, its cards and what the report has to say."""
    assert gpu_check.main(["--list"]) == 0
    rows = {line.split()[0]: line.split()[1:3] for line in capsys.readouterr().out.splitlines()[1:]}
    assert rows == {case.name: [str(case.ranks), str(case.cards)] for case in gpu_check.CASES}


def test_the_cases_name_what_there_is(gpu_check: Any) -> None:
    """Each case has a name of its own, a program that exists, and expects rules that exist, or the answer that all is clear."""
    slugs = {gpu_check.check.CLEAR, *(rule_of(module).slug for module in modules())}
    assert len({case.name for case in gpu_check.CASES}) == len(gpu_check.CASES)
    for case in gpu_check.CASES:
        assert (gpu_check.check.PROGRAMS / case.program).is_file(), case.name
        assert set(case.expects) <= slugs, case.name


@pytest.mark.parametrize("arguments", [["--case", "no-such-case"], ["--fast"]])
def test_a_wrong_command_line_is_refused(gpu_check: Any, arguments: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A case or an option that does not exist is named on stderr, with exit code 2."""
    with pytest.raises(SystemExit) as ended:
        gpu_check.main(arguments)
    assert ended.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


@pytest.mark.slow
def test_a_case_is_rehearsed(program: Callable[..., Any], tmp_path: Path, repo: Path) -> None:
    """A rehearsed case is launched, judged and kept without this machine's names; one that is about cards alone is skipped, and says so."""
    names = ("cuda-stays-uninitialised", "memory-of-a-card", "duplicate-gpu")
    done = program("--rehearse", "--json", "--into", "kept", *(word for name in names for word in ("--case", name)))
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["rehearsal"] is True
    assert [(one["case"], one["status"], one["said"]) for one in told["cases"]] == [
        (names[0], "passed", "clear"),
        (names[1], "passed", "clear"),
        (names[2], "skipped", ""),
    ]
    assert told["cases"][2]["because"] == "A CPU cannot stand in for the card."
    kept = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert {path.name.split(".")[0] for path in kept} >= {"output", "launcher", "rank00000"}
    texts = [path.read_text(encoding="utf-8") for path in kept]
    assert any("/train/cuda_initialised.py" in text for text in texts)
    assert not [text for text in texts if str(repo) in text or '"host":"%s"' % socket.gethostname() in text]


@pytest.mark.slow
def test_another_answer_is_exit_code_1(gpu_check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the report says something else than a case expects, the table shows both and the exit code is 1."""
    failing = tmp_path / "failing.py"
    failing.write_text("raise SystemExit(5)\n", encoding="utf-8")
    monkeypatch.setattr(gpu_check, "CASES", (gpu_check.Case("fails", "Nothing.", str(failing), ("clear",), on_cpu=True),))
    assert gpu_check.main(["--rehearse"]) == 1
    heads, row = capsys.readouterr().out.splitlines()[:2]
    assert heads.split() == ["case", "expected", "report", "said", "result", "seconds"]
    assert row.split()[:2] == ["fails", "clear"]
    assert "failed" in row
    assert "not clear." in row


@pytest.mark.parametrize(
    ("expects", "at", "report", "problem"),
    [
        (("clear",), (), {"verdict": "clear"}, ""),
        (("a-rule", "b-rule"), (), {"verdict": "found", "findings": [{"slug": "b-rule", "ranks": [0]}]}, ""),
        (("a-rule",), (1, 2), {"verdict": "found", "findings": [{"slug": "a-rule", "ranks": [2, 1]}]}, ""),
        (("a-rule",), (1,), {"verdict": "found", "findings": [{"slug": "a-rule", "ranks": [0]}]}, "The report names other ranks."),
        (("a-rule",), (), {"verdict": "clear"}, "The report says clear, not a-rule."),
        (("clear",), (), {"verdict": "undecided", "undecided": []}, "The report says undecided, not clear."),
        (
            ("a-rule",),
            (),
            {"verdict": "found", "findings": [{"slug": "b-rule", "ranks": []}, {"slug": "a-rule", "ranks": []}]},
            "The report says b-rule, not a-rule.",
        ),
    ],
)
def test_the_first_finding_decides(gpu_check: Any, expects: Any, at: Any, report: Any, problem: str) -> None:
    """A report is as expected if its first finding is one of the expected rules, at the expected ranks, or if it is clear."""
    case = gpu_check.Case("one", "Nothing.", "healthy.py", expects, at)
    assert gpu_check.check.compare(case, report) == problem


def test_a_case_sees_as_many_cards_as_it_needs(gpu_check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the cards that a scheduler has given, a job sees as many as its case needs; a case that needs more is skipped."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    cases = {case.cards: case for case in gpu_check.CASES}
    two = gpu_check.check.Setting("cuda", "nccl", gpu_check.look.visible(2))
    assert [two.environment(cases[cards])["CUDA_VISIBLE_DEVICES"] for cards in (1, 2)] == ["3", "3,5"]
    one = two._replace(cards=two.cards[:1])
    assert [gpu_check.missing(cases[cards], one) for cards in (1, 2)] == ["", "It needs 2 cards, and there is 1."]


def test_no_process_outlives_the_limit(gpu_check: Any, tmp_path: Path) -> None:
    """At its time limit a job is killed with all that runs in its folder, what has a session of its own included."""
    folder, pipe = tmp_path / "job", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(str(pipe))
    reading = os.open(str(pipe), os.O_RDONLY | os.O_NONBLOCK)
    # Each of them holds the pipe open as long as it runs.
    command = ["bash", "-c", 'exec 3>"$1"; echo started; setsid sleep 1000 & sleep 1000 & wait', "bash", str(pipe)]
    ended = gpu_check.check.launch.bounded(command, folder, dict(os.environ), 2.0)
    assert (ended.code, gpu_check.check.launch.running_in(folder)) == (None, [])
    os.set_blocking(reading, True)
    assert os.read(reading, 1) == b""
    os.close(reading)
