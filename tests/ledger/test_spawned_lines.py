"""The lines of a child that an installed library has spawned, in its ledger and in its log."""

from pathlib import Path
from typing import Any

import pytest

from ddp_probe.reading import whole_ledger
from ddp_probe.reading.load_run import load

pytestmark = pytest.mark.slow
_LIBRARY = """import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port):
    dist.init_process_group("gloo", "tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def launch(how, port):
    mp.start_processes(work, (port,), 2, start_method=how)
"""
_JOB = """import sys
import spawning_trainer

if __name__ == "__main__":
    spawning_trainer.launch(sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_no_line_is_the_command_line_of_multiprocessing(how: str, armed: Any, run_python: Any, free_port: Any, tmp_path: Path) -> None:
    """A collective stands at the library's line, and what failed or began at the line of the job that started the children."""
    library = tmp_path / "lib" / "site-packages" / "spawning_trainer" / "__init__.py"
    library.parent.mkdir(parents=True)
    library.write_text(_LIBRARY, encoding="utf-8")
    (tmp_path / "train.py").write_text(_JOB, encoding="utf-8")
    env = armed(tmp_path / "runs")
    env["PYTHONPATH"] += ":%s" % library.parents[1]
    done = run_python(["train.py", how, str(free_port())], env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    calls = [
        call for path in sorted((tmp_path / "runs").glob("2*/rank*.ledger")) for call in whole_ledger.read(path).records if call.op == "all_reduce"
    ]
    assert [(Path(call.site.file).parent.name, call.site.line) for call in calls if call.site] == [("spawning_trainer", 8)] * 2
    processes = load([str(tmp_path / "runs")]).processes
    sites = {
        (Path(event.site.file).name, event.site.line) for process in processes for event in process.kept.events if event is not None and event.site
    }
    assert sites == {("train.py", 5)}
