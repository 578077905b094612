"""Variables of the rendezvous follow from what a launcher or a scheduler has set, or nothing is done."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from ddp_probe.traced.remedies.rendezvous import first_host, follow

SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "8",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "4711",
    "SLURM_NODELIST": "node[03-06]",
}
OMPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


def without(variables, *names):
    """Return the variables less some."""
    return {name: value for name, value in variables.items() if name not in names}


def test_a_step_of_slurm():
    """A step of SLURM tells everything; all ranks of the step find the same port, and another step finds another."""
    found = follow(SLURM)
    port = found.pop("MASTER_PORT")
    assert found == {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "node03"}
    assert follow({**SLURM, "SLURM_PROCID": "7", "SLURM_LOCALID": "1"})["MASTER_PORT"] == port
    assert follow({**SLURM, "SLURM_STEP_ID": "1"})["MASTER_PORT"] != port
    assert 20000 <= int(port) < 32768


def test_a_step_of_a_part_of_the_job():
    """A step on some of the job's nodes has its own size and its own first node."""
    found = follow({**SLURM, "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NODELIST": "node05"})
    assert (found["WORLD_SIZE"], found["MASTER_ADDR"]) == ("4", "node05")


def test_what_is_set_stays():
    """A value that somebody has set is not replaced by the scheduler's."""
    found = follow({**SLURM, "MASTER_ADDR": "10.0.0.7", "MASTER_PORT": "4000"})
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("10.0.0.7", "4000")


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        (without(SLURM, "SLURM_NTASKS"), {"WORLD_SIZE"}),
        (without(SLURM, "SLURM_NODELIST"), {"MASTER_ADDR"}),
        (without(SLURM, "SLURM_JOB_ID"), {"MASTER_PORT"}),
        (without(SLURM, "SLURM_STEP_ID"), {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}),
        ({**SLURM, "SLURM_NODELIST": "rack[1-2]n[1-4]"}, {"MASTER_ADDR"}),
        ({"SLURM_NTASKS": "8"}, {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}),
        (OMPI, {"MASTER_PORT"}),
        ({**OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, {"MASTER_ADDR", "MASTER_PORT"}),
        ({"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4000"}, {"WORLD_SIZE"}),
        ({"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4000"}, {"RANK"}),
        ({"RANK": "1", "WORLD_SIZE": "2"}, {"MASTER_ADDR", "MASTER_PORT"}),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "4"}, {"RANK", "MASTER_ADDR", "MASTER_PORT"}),
        ({"MASTER_ADDR": "10.0.0.7", "MASTER_PORT": "4000"}, {"RANK", "WORLD_SIZE"}),
    ],
)
def test_what_nobody_tells_stays_unknown(variables, missing):
    """A half-set environment leaves the values unknown that do not follow."""
    found = {**variables, **follow(variables)}
    assert {name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if name not in found} == missing


def test_all_of_it_comes_from_one_launcher():
    """Under mpirun inside a job of SLURM the numbers are MPI's: SLURM's are those of the daemons that mpirun has started."""
    found = follow({**SLURM, **OMPI, "PMIX_NAMESPACE": "prterun-17@1"})
    assert (found["RANK"], found["WORLD_SIZE"], found["LOCAL_RANK"], found["MASTER_ADDR"]) == ("1", "2", "1", "127.0.0.1")
    assert found["MASTER_PORT"] == follow({**OMPI, "PMIX_NAMESPACE": "prterun-17@1", "OMPI_COMM_WORLD_RANK": "0"})["MASTER_PORT"]


def test_all_ranks_on_one_host():
    """If all ranks are on one host, LOCAL_RANK is the rank, and the address is this host's."""
    found = follow({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "4"})
    assert (found["RANK"], found["MASTER_ADDR"]) == ("1", "127.0.0.1")


def test_a_process_that_nobody_launched():
    """A process without any launcher is a world of one, at a port that is free."""
    for variables in ({}, {"WORLD_SIZE": "1"}, {"MASTER_ADDR": "localhost"}, {"WORLD_SIZE": "1", "RANK": "0"}):
        found = follow(variables)
        assert (found["RANK"], found["WORLD_SIZE"], found["LOCAL_RANK"]) == ("0", "1", "0")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", int(found["MASTER_PORT"])))


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node03", "node03"),
        ("node03,node07", "node03"),
        ("node[03-07,9],login", "node03"),
        ("gpu-a[1,4]", "gpu-a1"),
        ("node[03-07]-ib,login", ""),
        ("rack[1-2]n[1-4]", ""),
        ("", ""),
    ],
)
def test_first_host_of_a_list(nodes, first):
    """The first host of a list of SLURM is read where the list is of the common form."""
    assert first_host(nodes) == first


JOB = """
import json, os, torch, torch.distributed as dist
given = {}
for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
    given[name] = os.environ.get(name)
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print(json.dumps([dist.get_rank(), dist.get_world_size(), total.item(), os.environ["LOCAL_RANK"], given["RANK"]]))
dist.destroy_process_group()
"""


def test_two_ranks_under_slurm(run_python, armed, tmp_path, free_port):
    """Two processes that srun has started, with nothing but SLURM's variables, meet and compute together."""
    step = {"SLURM_NTASKS": "2", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": str(free_port()), "SLURM_NODELIST": "localhost"}

    def rank(number):
        env = armed(tmp_path / "runs", DDP_PROBE_FIX="rendezvous", SLURM_PROCID=str(number), SLURM_LOCALID=str(number), **step)
        return run_python(JOB, env=env, cwd=tmp_path)

    with ThreadPoolExecutor(max_workers=2) as pool:
        ended = list(pool.map(rank, range(2)))
    assert [done.returncode for done in ended] == [0, 0], ended
    assert [json.loads(done.stdout) for done in ended] == [[0, 2, 3.0, "0", None], [1, 2, 3.0, "1", None]]


HALF = """
import os, torch.distributed as dist
from mmengine.dist import init_dist
for call in (lambda: dist.init_process_group("gloo"), lambda: init_dist("pytorch", backend="gloo")):
    try:
        call()
    except (ValueError, KeyError) as exc:
        print(type(exc).__name__, exc)
for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
    assert name not in os.environ, name
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % int(os.environ["PORT"]), rank=0, world_size=1)
dist.destroy_process_group()
"""


def test_a_half_set_scheduler(rank_program, remedy_events, run_python, armed, tmp_path, free_port):
    """With half of SLURM's variables nothing is filled in, why is said, and the calls fail as they do without the remedy."""
    half = {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "4711", "SLURM_NODELIST": "localhost", "PORT": str(free_port())}
    plain = run_python(HALF, env=armed(None, **half), cwd=tmp_path)
    done = rank_program(HALF, "rendezvous", **half)
    assert done.stdout == plain.stdout
    assert "RANK" in done.stdout
    assert [event["because"] for event in remedy_events()] == ["no launcher or scheduler tells WORLD_SIZE"]
    assert done.stderr.count("rendezvous does nothing: no launcher or scheduler tells WORLD_SIZE") == 1
