"""The descriptors that a rank and a launcher keep open: two and one, one more for each rank, and none if the process may have few."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

_RANK = """\
import json, os, resource, sys, time
import torch, torch.distributed as dist

def there():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink("/proc/self/fd/" + name))
        except OSError:
            pass
    return found

def room():
    kept = []
    try:
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return len(kept)
    finally:
        for each in kept:
            os.close(each)

limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
alone = "RANK" not in os.environ
if alone:
    dist.init_process_group("gloo", init_method="file://%s/store" % sys.argv[1], rank=0, world_size=1)
else:
    dist.init_process_group("gloo")
for _ in range(4):
    dist.all_reduce(torch.ones(4))
    time.sleep(0.4)
parent = "" if alone else [os.readlink("/proc/%d/fd/%s" % (os.getppid(), name)) for name in os.listdir("/proc/%d/fd" % os.getppid())]
free = room() if limit else 0
with open("%s/rank%s.json" % (sys.argv[1], os.environ.get("RANK", "0")), "w") as file:
    json.dump({"there": there(), "room": free, "parent": list(parent)}, file)
if not alone:
    dist.barrier()
dist.destroy_process_group()
"""


def _ours(names: List[str]) -> List[str]:
    """Return what leads to a file of the run, by its suffix, or to the memory of a ledger."""
    return sorted(
        "memory" if "memfd:ddp_probe" in name else name.rpartition(".")[2] for name in names if "memfd:ddp_probe" in name or "/runs/" in name
    )


@pytest.mark.slow
def test_what_a_rank_and_a_launcher_keep_open(
    tmp_path: Path, torchrun: Callable[..., Any], armed: Callable[..., Dict[str, str]], free_port: Callable[[], int]
) -> None:
    """A rank keeps its log and its ledger's memory; its launcher its log and the memory of each rank."""
    program = tmp_path / "job.py"
    program.write_text(_RANK)
    done = torchrun(program, args=[str(tmp_path), "0"], env=armed(tmp_path / "runs"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        found = json.loads((tmp_path / ("rank%d.json" % rank)).read_text())
        assert _ours(found["there"]) == ["jsonl", "memory"]
        assert _ours(found["parent"]) == ["jsonl", "memory", "memory"]


def test_a_rank_that_may_open_few_files_has_them_all(tmp_path: Path, run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]]) -> None:
    """With ulimit -n 20 a job can open as many files as without the probe, nothing fails in the probe, and log and ledger are whole."""
    room = {}
    for how in ("plain", "probed"):
        folder = tmp_path / how
        folder.mkdir()
        (folder / "job.py").write_text(_RANK)
        env = armed(folder / "runs" if how == "probed" else None, DDP_PROBE_STRICT=None)
        done = run_python([folder / "job.py", folder, "20"], env=env, cwd=folder)
        assert done.returncode == 0, done.stderr
        told = json.loads((folder / "rank0.json").read_text())
        room[how] = told["room"]
        assert _ours(told["there"]) == []
    assert room["probed"] == room["plain"] > 3
    (log,) = {path.resolve() for path in (tmp_path / "probed" / "runs").rglob("rank*.jsonl")}
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events[0] == "process.start"
    assert events[-1] == "process.end"
    assert "probe.fault" not in events
    shown = run_python(["-m", "ddp_probe", "logs", log.parent, "--event", "ledger.all_reduce"]).stdout
    assert len(shown.splitlines()) == 4
