"""Jobs in the shapes that people write: a healthy one is clear and runs as it does without the probe, a broken one is never clear."""

import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from client_table import ALONE, CLIENTS, ENDED, FRAMEWORK_BASES, WAYS, WIDE_WAYS, Client, lines

_COMPARED = ("elastic.py", "process_tuto.py")  # Besides the frameworks', these are compared to their run without the probe also without --all.
# Ways in which the rank writes no line of its own, or has logged it and goes on: only how it ended is known.
_LINELESS = ("_exit", "kill", "swallow")
_bare: Dict[str, List[Any]] = {}  # By program: how its healthy launch ends and what it prints without the probe.


def _case(*values: Any) -> Any:
    """Give the clients of one program to one worker: they share its launch without the probe."""
    client = values[0]
    return pytest.param(*values, id="-".join([client.name, *values[1:]]), marks=pytest.mark.xdist_group(client.program))


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each client in the ways that its row names, or in all of them with --all."""
    if "way" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--all")
        metafunc.parametrize(
            ("client", "way"), [_case(client, way) for client in CLIENTS for way in WAYS if client.has(way) and (whole or way in client.always)]
        )
    elif "broken" in metafunc.fixturenames:
        pairs = [(client, way) for client in FRAMEWORK_BASES for way in (*WIDE_WAYS, *client.further) if way]
        metafunc.parametrize(("base", "broken"), [_case(*pair) for pair in pairs])
    elif "ended" in metafunc.fixturenames:
        metafunc.parametrize("ended", ENDED, ids=[client.name for client in ENDED])
    elif "client" in metafunc.fixturenames:
        metafunc.parametrize("client", [_case(client) for client in (*CLIENTS, *FRAMEWORK_BASES)])


def _outcome(done: Any) -> List[Any]:
    """Return exit code and the letters of stdout, less the seconds that pytest counts.

    torchrun's `python -u` writes a line and its end apart, so that the lines of two ranks may join.
    """
    return [done.code, sorted("".join(re.sub(r" in [\d.]+s$", "", line) for line in done.out))]


@pytest.mark.sample(16)
def test_healthy(client: Client, launch: Callable[..., Any], whole: bool) -> None:
    """A client in which nothing is wrong ends with 0, prints what it prints without the probe, and the report's verdict is clear."""
    probed = launch(client)
    if client.same and (whole or client.program in _COMPARED or client.program.startswith("with_")):
        if client.program not in _bare:
            _bare[client.program] = _outcome(launch(client, probe=False))
        same = _outcome(probed) == _bare[client.program]  # Not in the assert: pytest would compare the lists letter by letter, for minutes.
        assert same, (probed.out, probed.err)
    assert probed.code == 0, probed.err
    assert (probed.report.get("verdict"), probed.report_code) == (("clear", 0) if client.proven else ("undecided", 3)), probed.report
    _is_one_run(client, probed)


def _is_one_run(client: Client, done: Any) -> None:
    """Check that the launch has one name, or one for each host, and that the report is about all of it as one launch."""
    assert len(done.runs) == client.folders, done.runs
    assert all(re.fullmatch(client.named, name) for name in done.runs), done.runs
    assert sorted(rank["rank"] for rank in done.report["ranks"]) == [0, 1]
    assert len(done.report["inventory"]["folders"]) == client.folders, done.report["inventory"]
    assert not any("launches" in note for note in done.report["inventory"]["notes"]), done.report["inventory"]


@pytest.mark.sample(10)
def test_broken(client: Client, way: str, launch: Callable[..., Any], lacks: Callable[..., List[str]], tmp_path: Path) -> None:
    """A broken client is never clear, and the report names the line of the job that is at fault and says at least what the job's stderr says."""
    done = launch(client, way)
    assert done.report.get("verdict") in ("found", "undecided"), done.report
    wanted = lines(client.program, way)
    assert not wanted or any(line in done.named() for line in wanted), (wanted, done.named())
    assert len(done.runs) == client.folders, done.runs
    assert len(done.report["inventory"]["folders"]) == client.folders, done.report["inventory"]
    (tmp_path / "stderr.txt").write_text(done.err, encoding="utf-8")
    assert lacks([done.here / one for one in done.report["inventory"]["folders"]], tmp_path / "stderr.txt") == [], done.err


@pytest.mark.sample(3)
def test_a_broken_code_base(base: Client, broken: str, launch: Callable[..., Any]) -> None:
    """A code base on a framework that is broken is never clear, and the first finding or question has the line of the job that is at fault."""
    done = launch(base, broken)
    assert done.report.get("verdict") in ("found", "undecided"), done.report
    said = json.dumps([done.report["findings"][:1], done.report["undecided"]])
    wanted = lines(base.program, broken) + lines("pieces.py", broken)
    assert broken in _LINELESS or any(line in said for line in wanted), (wanted, said)
    assert not any("lightning/pytorch/" in one["verdict"] for one in done.report["findings"]), said
    assert "ank 1" in said or "anks 0" in said or [0, 1] in [one["ranks"] for one in done.report["findings"][:1]], said


def test_fewer_processes_than_asked_for(launch: Callable[..., Any]) -> None:
    """A launch that is asked for two processes and runs one is not clear, though the job ends with 0: the report says that it trains alone."""
    done = launch(ALONE)
    assert (done.code, done.report.get("verdict")) == (0, "found"), done.report
    assert "DDP311" in done.named()


@pytest.mark.sample(1)
def test_a_healthy_job_that_is_ended_has_no_guilty_line(ended: Client, launch: Callable[..., Any]) -> None:
    """A training that SIGTERM ends was ended from outside: the report says who got the signal, although Lightning then makes a broadcast."""
    done = launch(ended, "goes_on")
    assert [one["slug"] for one in done.report["findings"]] == ["ended-from-outside"], (done.report, done.err)
    (found,) = done.report["findings"]
    to = "The launcher" if "torchrun" in ended.name else "Rank [01]"
    assert re.match(to + " got SIGTERM at ", found["verdict"]), found["verdict"]
    assert sorted(found["ranks"]) == [0, 1]
