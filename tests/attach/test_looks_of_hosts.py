"""Looks that were taken on several hosts are one run for the readers."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest
from unarmed import Running

from ddp_probe.attaching import py_spy
from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load

RECORDED = Path(__file__).parent / "recorded" / "attach-20261125-130344-935"


def test_looks_of_two_hosts_are_one_run(tmp_path: Path) -> None:
    """Folders of looks that two hosts have written of one job are read together: who waits on one host waits for the rank on the other."""
    for log in RECORDED.iterdir():
        host = "node2" if log.name.startswith("rank00001") else "node1"
        folder = tmp_path / ("attach-20261125-130344-" + host[-1])
        folder.mkdir(exist_ok=True)
        text = log.read_text(encoding="utf-8").replace("node1", host).replace('"MASTER_ADDR":"127.0.0.1"', '"MASTER_ADDR":"10.0.0.1"')
        (folder / log.name.replace("node1", host)).write_text(text, encoding="utf-8")
    diagnosis = judge(load([str(folder) for folder in sorted(tmp_path.iterdir())]))
    assert [(one.slug, one.ranks) for one in diagnosis.findings] == [("seen-elsewhere", [1])]
    alone = judge(load([str(tmp_path / "attach-20261125-130344-1")]))
    assert sorted(alone.run.ranks) == [0, 1, 2]


_PARTS = """
import os, time, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("loss", flush=True)
time.sleep(600) if os.environ["RANK"] == "1" else dist.barrier()
"""
_OWN = ["unshare", "--pid", "--fork", "--mount-proc", "--uts"]  # As a container has them.


@pytest.mark.slow
@pytest.mark.skipif(not py_spy.program(), reason="py-spy is not installed.")
def test_the_same_command_on_each_host_and_once_outside_of_containers(tmp_path: Path, clean_env, free_port, run_python) -> None:
    """Ranks in containers: looks taken in each of them are read as one run, and a look from their host sees all; both name the rank that sleeps."""
    if os.geteuid() or not shutil.which("nsenter") or subprocess.run([*_OWN, "true"], check=False, capture_output=True).returncode:
        pytest.skip("PID namespaces cannot be made here.")
    program = tmp_path / "train.py"
    program.write_text(_PARTS)
    own = {"MASTER_ADDR": "127.0.0.2", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    start = "%s bash -c %s" % (shlex.join(_OWN), shlex.quote("hostname node$RANK; %s train.py; true" % shlex.quote(sys.executable)))
    hosts = [Running(start, tmp_path, clean_env(RANK=str(rank), OMP_NUM_THREADS="1", **own), 1, tmp_path / ("log%d" % rank)) for rank in (0, 1)]
    env = {"DDP_PROBE_DIR": str(tmp_path / "looks")}
    try:
        for host in hosts:
            host.settle_moving()
        members = hosts[0].settle()
        outside = run_python(["-m", "ddp_probe", "attach", str(members[0].pid), "--json"], env={"DDP_PROBE_DIR": str(tmp_path / "outside")})
        codes = [_inside(member.pid, {**os.environ, **env}) for member in members]
    finally:
        for host in hosts:
            host.kill()
    assert codes == [3, 1]  # The second look is read together with the first.
    folders = [str(path) for path in sorted((tmp_path / "looks").glob("attach-*"))]
    read = run_python(["-m", "ddp_probe", "report", "--json", *folders], env=env)
    for told in (json.loads(read.stdout), json.loads(outside.stdout)):
        assert [(found["slug"], found["ranks"]) for found in told["findings"]] == [("seen-elsewhere", [1])], told
    logs = {path.name.rsplit(".", 2)[0] for path in (tmp_path / "looks").rglob("rank*.jsonl")}
    assert {"rank00000.node0", "rank00001.node1"} <= logs


def _inside(pid: int, env: Any) -> int:
    """Look from inside of the namespaces of a process, as `kubectl exec` and `srun --overlap` do."""
    words: List[str] = ["nsenter", "--target", str(pid), "--pid", "--mount", "--uts", sys.executable, "-m", "ddp_probe", "attach", "--json"]
    done = subprocess.run(words, check=False, env=env, capture_output=True, text=True)
    return done.returncode
