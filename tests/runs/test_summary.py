"""What the launcher says once a launch has failed: the finding in its own table, further ones, and how to read on."""

import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

_JOB = """
import signal, sys
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
if sys.argv[1:] == ["fails"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Each rank fails by itself, however early the other one has failed.
    nn.parallel.DistributedDataParallel(nn.Linear(2, 2), device_ids=[0])
dist.barrier()
dist.destroy_process_group()
"""


_ONE_RANK = """
import os, signal, sys
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

def main():
    dist.init_process_group("gloo")
    if sys.argv[1] == "is_killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("the loss is nan")

(record(main) if sys.argv[1] == "records" else main)()
"""


@pytest.fixture
def launch(tmp_path: Path, torchrun: Callable[..., Any], armed: Callable[..., Dict[str, str]]) -> Callable[..., Any]:
    """Launch the job over two ranks in tmp_path, runs in the default folder."""
    script = tmp_path / "job.py"
    script.write_text(_JOB)

    def run(*args: str, **extra: str) -> Any:
        return torchrun(script, args=args, env=armed(tmp_path / "ddp_probe_runs", **extra), cwd=tmp_path)

    return run


@pytest.fixture(scope="module")
def failed(
    tmp_path_factory: pytest.TempPathFactory, run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], free_port: Callable[[], int]
) -> Any:
    """What a launch that fails has said."""
    folder = tmp_path_factory.mktemp("failed")
    (folder / "job.py").write_text(_JOB)
    command = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
    return run_python([*command, folder / "job.py", "fails"], env=armed(folder / "ddp_probe_runs"), cwd=folder, timeout=240)


def _said(done: Any) -> List[str]:
    return [line for line in done.stderr.splitlines() if re.match(r"ddp_probe: (DDP\d|The whole|found|clear|undecided)", line)]


def _root_cause(done: Any) -> str:
    """Return the last text of torchrun's table, with what follows it."""
    return str(done.stderr.rpartition("traceback : ")[2])


def test_says_the_finding_and_how_to_read_on(failed: Any) -> None:
    """The finding is in torchrun's table, the command for the report below; exit code and stdout are torchrun's."""
    assert (failed.returncode, failed.stdout) == (1, "")
    finding, border, *below = _root_cause(failed).splitlines()
    assert re.match(r"ddp_probe: DDP\d{3} .*ranks 0-1", finding)
    assert set(border) == {"="}
    assert below == ["ddp_probe: The whole report: python -m ddp_probe report"]


def _table(done: Any) -> List[str]:
    """Return torchrun's table, less what differs between two launches of one job."""
    lines = done.stderr[done.stderr.index("\n====") :].splitlines()
    differs = r"pid: \d+|PID \d+|time      : .*|^=+$|^-+$|torchelastic_\S+"
    return [re.sub(differs, "*", line) for line in lines if not line.startswith("ddp_probe: ")]


@pytest.mark.parametrize("way", ["fails", "is_killed", "records"])
def test_nothing_else_of_the_table_changes(
    way: str,
    tmp_path: Path,
    run_python: Callable[..., Any],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
) -> None:
    """A signal is named before the finding; a traceback that the rank has recorded stays alone, the finding below."""
    (tmp_path / "job.py").write_text(_ONE_RANK, encoding="utf-8")
    done = []
    for variables in ({"DDP_PROBE": "0"}, {}):
        launch = ["-m", "torch.distributed.run", "--nproc_per_node=1", "--master_addr=127.0.0.1"]
        command = [*launch, "--master_port=%d" % free_port(), tmp_path / "job.py", way]
        environment = {**armed(tmp_path / "ddp_probe_runs"), **variables}
        done.append(run_python(command, env=environment, cwd=tmp_path, timeout=240))
    bare, probed = done
    assert bare.returncode == probed.returncode == 1
    assert "ddp_probe: " not in bare.stderr
    tables = _table(bare), _table(probed)
    differ = [pair for pair in zip(*tables) if pair[0] != pair[1]]
    assert len(tables[0]) == len(tables[1])
    if way == "records":
        assert differ == []
        assert re.match(r"ddp_probe: DDP\d{3} ", _said(probed)[0])
        return
    ((before, after),) = differ
    known = "" if way == "fails" else before + "; "
    assert after.partition("ddp_probe: DDP")[0] == (known or "  traceback : ")
    assert _said(probed) == ["ddp_probe: The whole report: python -m ddp_probe report"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("variable", [{"DDP_PROBE_REPORT": "off"}, {"DDP_PROBE_ECHO": "off"}], ids=str)
def test_is_switched_off(launch: Callable[..., Any], variable: Dict[str, str]) -> None:
    """DDP_PROBE_REPORT=off, or DDP_PROBE_ECHO=off, and nothing is said."""
    done = launch("fails", **variable)
    assert _said(done) == []
    assert _root_cause(done).startswith("To enable traceback see: ")


def test_says_nothing_of_a_launch_that_went_well(launch: Callable[..., Any]) -> None:
    """A launch that ends well is not spoken of."""
    done = launch("works")
    assert done.returncode == 0, done.stderr
    assert "ddp_probe" not in done.stderr


def test_warning_names_the_command(failed: Any) -> None:
    """What both ranks warn of is one line that says so and ends with the command that reads on."""
    (warned,) = [line for line in failed.stderr.splitlines() if "the wrap is about to fail" in line]
    assert re.match(r"ddp_probe: rank [01] \(said once for all ranks of this host that see the same\) at ", warned)
    assert warned.endswith("Read on: python -m ddp_probe report")


def test_is_bounded(run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """A run that takes longer to read than the limit is left unread, and only the command is said."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank00000.node1.1.jsonl").write_text("{}\n" * 1000, encoding="utf-8")
    done = run_python(_IN_NO_TIME % str(tmp_path / "run"), env=clean_env())
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "ddp_probe: The whole report: python -m ddp_probe report %s\n" % (tmp_path / "run")


_IN_NO_TIME = """
from types import SimpleNamespace
from ddp_probe.shared import schema
from ddp_probe.traced import last_word

last_word._SECONDS = 0.01  # The interpreter that reads takes longer to start.
word = last_word.LastWord(SimpleNamespace(process=SimpleNamespace(folder=%r)))
word.ask(schema.LauncherEnd(exit_code=1))
word.say()
"""


_STARTS_ITSELF = """
import os, subprocess, sys
import torch.distributed as dist

rank = int(os.environ.get("LOCAL_RANK", "0"))
if rank == 0:
    other = subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "NODE_RANK": "0", "LOCAL_RANK": "1", "WORLD_SIZE": "2"})
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + sys.argv[1], rank=rank, world_size=2)
dist.barrier()
try:
    if rank == 1 and sys.argv[2:] == ["fails"]:
        raise ValueError("the loss is nan")
    dist.barrier()
    dist.destroy_process_group()
finally:
    if rank == 0:
        other.wait()
"""


@pytest.mark.parametrize("more", [["fails"], []], ids=["fails", "works"])
def test_a_program_that_starts_the_other_rank_itself_says_why_it_failed(
    more: List[str], run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path
) -> None:
    """Under `run -- python`, a job that is its own launcher ends with the finding and the command; of one that ends well nothing is said."""
    (tmp_path / "job.py").write_text(_STARTS_ITSELF, encoding="utf-8")
    command = ["-m", "ddp_probe", "run", "--", sys.executable, "job.py", str(free_port()), *more]
    done = run_python(command, env=clean_env(), cwd=tmp_path, timeout=120)
    said = _said(done)
    if not more:
        assert (done.returncode, said) == (0, []), done.stderr
        return
    assert (done.returncode, done.stdout) == (1, "")
    assert said, done.stderr
    for line in said[:-1]:  # On a host that is busy the reader is ended before it has said the finding.
        assert re.search(r"DDP\d{3} .*rank 1.*ValueError.*job\.py:12", line), said
    assert done.stderr.rstrip().endswith("ddp_probe: The whole report: python -m ddp_probe report")
