"""Launches with and without remedies, and small programs that arm themselves."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest
from accelerator.fixtures import gcu_env
from remedy_runs import JOBS, PROGRAMS, SEEDED, Ended, Run, source

__all__ = ["gcu_env"]


@pytest.fixture(scope="session")
def old_torch() -> bool:
    """Whether this is torch 1.12, whose cards are named xla."""
    return metadata.version("torch").startswith("1.")


@pytest.fixture(scope="module")
def launched(
    request: pytest.FixtureRequest,
    run_python: Callable[..., Any],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    read_events: Callable[..., List[Dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Run], Ended]:
    """Answers how a launch has ended; the tests of a file share it."""

    def launch(run: Run) -> Ended:
        folder = tmp_path_factory.mktemp(run.program)
        env = armed(folder / "runs", DDP_PROBE_FIX=run.fix or None)
        if run.cards:
            env["PYTHONPATH"] += ":" + request.getfixturevalue("gcu_env")["PYTHONPATH"]
        start = ["-m", "torch.distributed.run", "--nproc_per_node=%d" % run.ranks, "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
        done = run_python([*(start if run.ranks else []), SEEDED, source(run.program)], env=env, cwd=folder, timeout=150)
        told = sorted(folder.glob("rank?.json"))
        events = read_events(folder / "runs" / "latest") if (folder / "runs").exists() else []
        return Ended(done.returncode, done.stdout + done.stderr, folder, [json.loads(path.read_text()) for path in told], events)

    ended: Dict[Run, Ended] = {}

    def ask(run: Run) -> Ended:
        if run not in ended:
            ended[run] = launch(run)
        return ended[run]

    return ask


@pytest.fixture
def rank_program(run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], tmp_path: Path) -> Callable[..., Any]:
    """Run code as a process of its own with remedies, in a folder of its own; it must end well. Its events are in runs/."""

    def run(code: str, fix: str = "auto", timeout: float = 100, **extra: Any) -> Any:
        env = armed(tmp_path / "runs", DDP_PROBE_FIX=fix or None, **extra)
        env["PYTHONPATH"] += ":%s" % JOBS
        done = run_python(code, env=env, cwd=tmp_path, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def remedy_events(read_events: Callable[..., List[Dict[str, Any]]], tmp_path: Path) -> Callable[..., List[Dict[str, Any]]]:
    """Return what the remedies of rank_program's process recorded: applied, declined, and faults."""

    def read(*kinds: str) -> List[Dict[str, Any]]:
        wanted = kinds or ("remedy.applied", "remedy.declined", "probe.fault")
        return [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] in wanted]

    return read


@pytest.fixture(scope="module")
def checked(
    request: pytest.FixtureRequest,
    run_python: Callable[..., Any],
    armed: Callable[..., Dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., None]:
    """Asserts that a check of one of this folder's programs holds; a program's checks run in one process, once. fix None: it arms itself."""
    outcomes: Dict[str, Dict[str, str]] = {}

    def run(program: str, fix: Optional[str], cards: bool, **extra: Any) -> Dict[str, str]:
        folder = tmp_path_factory.mktemp(program)
        options = {"DDP_PROBE_DIR": str(folder / "runs"), "DDP_PROBE_ECHO": "off", **extra}
        env = armed(None if fix is None else folder / "runs", **{**options, "DDP_PROBE_FIX": fix})
        env["PYTHONPATH"] += ":%s" % JOBS
        if cards:
            env["PYTHONPATH"] += ":" + request.getfixturevalue("gcu_env")["PYTHONPATH"]
        done = run_python([PROGRAMS / (program + ".py")], env=env, cwd=folder, timeout=120)
        if done.returncode != 0:
            return {"": done.stdout + done.stderr}
        found: Dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return found

    def ask(program: str, check: str, fix: Optional[str], cards: bool = False, **extra: Any) -> None:
        if program not in outcomes:
            outcomes[program] = {"": "The program has not come to its end."}
            outcomes[program] = run(program, fix, cards, **extra)
        told = outcomes[program].get(check, outcomes[program].get("", ""))
        if told.startswith("skipped: "):
            pytest.skip(told)
        assert told == "", told

    return ask
