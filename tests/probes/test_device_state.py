"""device.state: memory of the devices that the job has initialised, and of the host, when something has changed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name

from ddp_probe.shared import schema
from ddp_probe.traced import device_states
from ddp_probe.traced.device_states import HostReader

_MIB = 1 << 20
_ON_CARDS = """
import ddp_probe
ddp_probe.activate()
import torch, torch_gcu, torch.distributed as dist
device = torch_gcu.gcu.DEVICE_TYPE
%s
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.save({"a": 1}, "x.pt")
%s
torch.load("x.pt")
print(torch_gcu.gcu.is_initialized(), torch_gcu.gcu.is_initialized() and torch_gcu.gcu.memory_allocated(3), flush=True)
"""


@pytest.fixture
def ran(run_python, clean_env, gcu_env, tmp_path, read_events):  # noqa: F811  # the fixture, by its name
    """Run a program on the simulated cards; return what it printed, and its lines of device.state."""

    def run(code, **extra):
        env = clean_env(**gcu_env, DDP_PROBE_DIR=str(tmp_path / "runs"), RANK="0", WORLD_SIZE="1", **extra)
        done = run_python(code, env=env, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout, [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "device.state"]

    return run


def test_the_memory_of_a_card_is_torchs_own_figure(ran):
    """After 64 MiB on card 3 a line names that card with what the allocator says at that moment, and no other card."""
    said, states = ran(_ON_CARDS % ("torch_gcu.gcu.set_device(3)", "kept = torch.ones(16 << 20).to(device + ':3')"))
    before, at_load = states[0], next(one for one in states if one["when"] == "checkpoint.load begin")
    assert [one["device"].split(":")[1] for one in before["devices"]] == ["3"], "the current card, which holds nothing yet"
    (card,) = at_load["devices"]
    assert at_load["current"].endswith(":3")
    assert said.split() == ["True", str(card["allocated"])]
    assert card["allocated"] == card["allocated_peak"] == card["reserved"] == 64 * _MIB
    assert states[-1]["when"] == "end"


def test_no_card_is_initialised(ran):
    """In a program that stays on the CPU no line has a device, and the cards are as untouched as they would be without the probe."""
    said, states = ran(_ON_CARDS % ("", ""))
    assert said.split() == ["False", "False"]
    assert states
    assert not [one for one in states if "devices" in one or "current" in one]
    assert all(one["system"]["rss"] > 10 * _MIB for one in states)


def test_off_writes_none(ran):
    """DDP_PROBE_STATE_EVERY=off: there is no such line."""
    assert ran(_ON_CARDS % ("", ""), DDP_PROBE_STATE_EVERY="off")[1] == []


def test_the_host_is_told_while_nothing_else_happens(run_python, clean_env, tmp_path, read_events):
    """Between two events, memory that grows is in a line of the watcher's thread."""
    code = """
import ddp_probe, time
ddp_probe.activate()
import torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
time.sleep(1.5)
kept = torch.ones(32 << 20)
time.sleep(4)
"""
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"), RANK="0", WORLD_SIZE="1")
    assert run_python(code, env=env, cwd=tmp_path).returncode == 0
    states = [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "device.state"]
    grown = [one["system"]["rss"] for one in states if one["when"] == "periodic"]
    assert grown
    assert grown[-1] - states[0]["system"]["rss"] > 100 * _MIB


def test_the_current_card_is_that_of_the_job(ran):
    """The watcher's thread has chosen no card: its lines name the one that the job has chosen, and no card 0 that nobody uses."""
    code = _ON_CARDS % ("torch_gcu.gcu.set_device(3)", "import time; kept = torch.ones(16 << 20).to(device + ':3'); time.sleep(4)")
    told = [one for one in ran(code)[1] if one["when"] == "periodic"]
    assert told
    assert {one["current"].split(":")[1] for one in told} == {"3"}
    assert {device["device"].split(":")[1] for one in told for device in one["devices"]} == {"3"}


def test_a_memory_error_always_has_a_line(ran):
    """A call that fails for lack of memory is followed by a line, also if the job catches the exception and nothing has changed."""
    code = _ON_CARDS % ("", "")
    code += """
import ddp_probe.traced.probes
def full(*_, **__):
    raise RuntimeError("GCU out of memory. Tried to allocate 2 MiB.")
from torch import nn
class Hungry(nn.Module):
    def _apply(self, *_, **__):
        full()
try:
    Hungry().to("cpu")
except RuntimeError:
    pass
"""
    assert "module.move error" in [one["when"] for one in ran(code)[1]]


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        ({}, {" rss": 1}, True),
        ({" rss": 100 * _MIB}, {" rss": 115 * _MIB}, False),
        ({" rss": 100 * _MIB}, {" rss": 117 * _MIB}, True),
        ({"gcu:0 reserved": 16384 * _MIB}, {"gcu:0 reserved": 16500 * _MIB}, False),
        ({"gcu:0 reserved": 16384 * _MIB}, {"gcu:0 reserved": 16600 * _MIB}, True),
        ({" oom_kills": 1}, {" oom_kills": 2}, True),
    ],
)
def test_what_counts_as_a_change(before, now, differs):
    """A size has to change by 16 MiB and by 1 %, a count at all."""
    assert device_states._differ(before, now, 16 << 20, 0.01) is differs


def test_a_periodic_line_needs_a_larger_change(monkeypatch):
    """What grows by 32 MiB is written at the next event, not as time passes; what grows by 128 MiB is."""
    wrote, sizes = [], iter([1000, 1032, 1032, 1160, 1160])

    def event(when):
        return SimpleNamespace(when=when, devices=[], system=SimpleNamespace(rss=next(sizes) * _MIB))

    session = SimpleNamespace(recorder=SimpleNamespace(point=lambda event: wrote.append(event.when)))
    states = device_states.DeviceStates(session)
    monkeypatch.setattr(states, "_event", event)
    for when in ("ddp.init end", "periodic", "checkpoint.save end", "periodic", "periodic"):
        states._write(when, False)
    assert wrote == ["ddp.init end", "checkpoint.save end", "periodic"]


_STATUS = b"Name:\tpython\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nRssAnon:\t  512 kB\nThreads:\t7\n"


@pytest.mark.parametrize(
    ("cgroup", "files", "told"),
    [
        (
            "0::/job.scope\n",
            {
                "job.scope/memory.current": "500",
                "job.scope/memory.max": "900",
                "job.scope/memory.events": "oom 1\noom_kill 3\n",
                "job.scope/memory.stat": "anon 300\nfile 150\nkernel 20\nshmem 50\n",
            },
            (500, 900, 3, 350),
        ),
        ("0::/outside\n", {"memory.current": "500", "memory.max": "max", "memory.events": "oom_kill 0\n"}, (500, None, 0, None)),
        (
            "3:cpu:/x\n5:memory:/docker/abc\n0::/\n",
            {
                "memory/docker/abc/memory.usage_in_bytes": "7",
                "memory/docker/abc/memory.limit_in_bytes": "9223372036854771712",
                "memory/docker/abc/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            },
            (7, None, 2, None),
        ),
        (
            "5:memory:/docker/abc\n",
            {
                "memory/docker/abc/memory.usage_in_bytes": "70",
                "memory/docker/abc/memory.limit_in_bytes": "90",
                "memory/docker/abc/memory.oom_control": "oom_kill 0\n",
                "memory/docker/abc/memory.stat": "cache 9\nrss 1\nshmem 1\ntotal_cache 40\ntotal_rss 20\ntotal_shmem 5\n",
            },
            (70, 90, 0, 25),
        ),
        ("0::/nothing\n", {}, (None, None, None, None)),
    ],
    ids=["version 2", "a container", "version 1", "version 1 with a limit", "none"],
)
def test_the_control_group_of_both_versions(tmp_path, cgroup, files, told):
    """Memory, limit and kills come from the control group of the process; a limit of max, or as large as version 1 writes it, is none."""
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "self" / "fd").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(cgroup)
    (proc / "self" / "status").write_bytes(_STATUS)
    for name, text in files.items():
        (sys / name).parent.mkdir(parents=True, exist_ok=True)
        (sys / name).write_text(text)
    state = HostReader(str(proc), str(sys)).state()
    assert (state.memory, state.memory_limit, state.oom_kills, state.memory_taken) == told
    assert (state.rss, state.rss_peak, state.anonymous, state.threads) == (1 << 20, 2 << 20, 1 << 19, 7)


def test_a_vendor_that_counts_by_single_calls(monkeypatch):
    """Without memory_stats the calls that read one counter each are asked; a module that raises takes nothing from the others."""

    def raises():
        raise RuntimeError("no driver")

    vendor = {
        "current_device": lambda: 1,
        "device_count": lambda: 2,
        "memory_allocated": lambda index: 5 * index,
        "max_memory_allocated": lambda index: 9 * index,
    }
    monkeypatch.setattr(device_states, "initialised_runtimes", lambda: [("bad", {"current_device": raises}), ("npu", vendor)])
    assert device_states.device_memory() == ("npu:1", [schema.DeviceMemory(device="npu:1", allocated=5, allocated_peak=9)])


def test_cudas_nested_counters(monkeypatch):
    """Of CUDA's allocator the nested counters are read, of each card that was used."""
    nested = {
        "allocated_bytes": {"all": {"current": 1, "peak": 2}},
        "reserved_bytes": {"all": {"current": 3, "peak": 4}},
        "num_alloc_retries": 5,
        "num_ooms": 6,
    }
    cuda = {"current_device": lambda: 0, "device_count": lambda: 8, "memory_stats_as_nested_dict": lambda index: nested if index in (0, 6) else {}}
    monkeypatch.setattr(device_states, "initialised_runtimes", lambda: [("cuda", cuda)])
    current, found = device_states.device_memory()
    assert (current, [one.device for one in found]) == ("cuda:0", ["cuda:0", "cuda:6"])
    assert found[0] == schema.DeviceMemory(device="cuda:0", allocated=1, allocated_peak=2, reserved=3, reserved_peak=4, retries=5, out_of_memory=6)


_TOO_MUCH = """
import os, torch, torch.distributed as dist, time
dist.init_process_group("gloo")
kept = []
time.sleep(2)
while os.environ["RANK"] == "1":
    kept.append(bytearray(os.urandom(1 << 20) * 64))
dist.all_reduce(torch.ones(1))
"""


@pytest.fixture
def control_group():
    """A control group with 1.5 GiB of memory, below our own: its folder."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        controllers, path = line.split(":", 2)[1:]
        if controllers in ("", "memory"):
            top = Path("/sys/fs/cgroup" + ("/memory" if controllers else "") + path)
            limit = "memory.limit_in_bytes" if controllers else "memory.max"
            group = top / ("ddp_probe_%d" % os.getpid())
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                (group / limit).write_text(str(3 << 29))
                yield group
                return
            except OSError:  # The kernel gives this group no memory controller.
                continue
            finally:
                until = time.monotonic() + 20
                while time.monotonic() < until and (group / "cgroup.procs").read_text():
                    time.sleep(0.1)
                group.rmdir()
    pytest.skip("This user may not make a control group that limits memory.")


def _launched_in(group, folder, env, port):
    """Launch job.py over two ranks in a control group; return the report."""
    enter = 'echo $$ > "$0" && exec "$@"'
    launch = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % port]
    command = ["sh", "-c", enter, str(group / "cgroup.procs"), sys.executable, *launch, str(folder / "job.py")]
    subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=150, check=False)
    report = [sys.executable, "-m", "ddp_probe", "report", "--json", str(folder / "runs" / "latest")]
    return json.loads(subprocess.run(report, env=env, capture_output=True, text=True, timeout=60, check=False).stdout)


def test_a_rank_that_the_kernel_kills_for_lack_of_memory(control_group, tmp_path, armed, free_port):
    """At the limit of a real control group rank 1 gets SIGKILL; the report names it and the count, and does not guess from the signal."""
    (tmp_path / "job.py").write_text(_TOO_MUCH)
    told = _launched_in(control_group, tmp_path, armed(tmp_path / "runs"), free_port())
    assert [(finding["id"], finding["ranks"]) for finding in told["findings"]] == [("DDP223", [1])], told["findings"]
    (finding,) = told["findings"]
    assert "the control group's 1.5 GiB on" in finding["verdict"]
    assert "rose from 0 to 1" in finding["verdict"]


_NEARLY = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
kept = []
def share():
    names = {"anon": 1, "shmem": 1} if os.path.exists(GROUP + "/memory.max") else {"total_rss": 1, "total_shmem": 1}
    return sum(int(line.split()[1]) for line in open(GROUP + "/memory.stat") if line.split()[0] in names) / (3 << 29)
while os.environ["RANK"] == "1" and share() < 0.92:
    kept.append(bytearray(os.urandom(1 << 20) * 8))
torch.save({"a": 1}, "rank%s.pth" % os.environ["RANK"])
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""


def test_a_control_group_that_is_nearly_full(control_group, tmp_path, armed, free_port):
    """A job that goes up to 92 % of a real control group's memory and ends well is told so, with what the ranks themselves hold."""
    (tmp_path / "job.py").write_text(_NEARLY.replace("GROUP", repr(str(control_group))))
    told = _launched_in(control_group, tmp_path, armed(tmp_path / "runs"), free_port())
    (finding,) = told["findings"]
    assert (finding["id"], finding["severity"], finding["ranks"]) == ("DDP231", "warning", [0, 1])
    assert "of 1.5 GiB, not counting the file cache" in finding["verdict"]


_ON_CARD_0 = """
import os, torch, torch_gcu, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank, kind = int(os.environ["LOCAL_RANK"]), torch_gcu.DEVICE_TYPE
torch_gcu.set_device(rank)
dist.init_process_group("eccl")
model = DDP(torch.nn.Linear(1024, 1024).to("%s:%d" % (kind, rank)))
mask = torch.ones(100_000).to("%s:%d" % (kind, NUMBER))
torch.save({"a": 1}, "rank%d.pth" % rank)
del model, mask
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("number", "named"), [("0", [("DDP313", [1])]), ("rank", [])], ids=["on card 0", "each on its own"])
def test_memory_on_another_ranks_card(run_python, armed, gcu_env, repo, tmp_path, torchrun, number, named):  # noqa: F811  # the fixture, by its name
    """A tensor that each rank keeps on card 0 is memory of rank 1 there, and a warning that says since when; with the right number there is none."""
    script = tmp_path / "job.py"
    script.write_text(_ON_CARD_0.replace("NUMBER", number))
    path = ":".join([str(repo / "sitecustomize_templates"), str(repo), gcu_env["PYTHONPATH"]])
    done = torchrun(script, env=armed(tmp_path / "runs", **{**gcu_env, "PYTHONPATH": path}))
    assert done.returncode == 0, done.stderr
    told = json.loads(run_python(["-m", "ddp_probe", "report", "--json", tmp_path / "runs" / "latest"]).stdout)
    assert [(finding["id"], finding["ranks"]) for finding in told["findings"]] == named
    assert all("first seen at 'checkpoint.save begin'" in finding["verdict"] for finding in told["findings"])
