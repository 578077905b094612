"""Which role an interpreter takes, by its command line and its environment."""

import os

import pytest

from ddp_probe.activation.roles import decide, launcher_name, program
from ddp_probe.shared.rank_info import rank_info

RANK = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
ELASTIC = {**RANK, "TORCHELASTIC_RUN_ID": "none"}

ROLES = [
    ("python train.py", {}, "solo"),
    ("python train.py", RANK, "rank"),
    ("python -u train.py --launcher pytorch", ELASTIC, "rank"),
    ("python -m train", ELASTIC, "rank"),
    ("python /opt/bin/torchrun --nproc_per_node=8 train.py", {}, "launcher"),
    ("python -m torch.distributed.run train.py", {}, "launcher"),
    ("python -m torch.distributed.launch train.py", {}, "launcher"),
    ("python /x/lib/torch/distributed/run.py train.py", {}, "launcher"),
    ("python -m torch.distributed.run train.py", RANK, "launcher"),
    ("python /opt/bin/accelerate launch train.py", {}, "launcher"),
    ("python /opt/bin/accelerate config", {}, "solo"),
    ("python /opt/bin/deepspeed train.py", {}, "launcher"),
    ("python -u -m deepspeed.launcher.launch --x", {}, "launcher"),
    ("python run.py", {}, "solo"),
    ("python launch.py", ELASTIC, "rank"),
    ("python train.py", {"SLURM_PROCID": "3", "SLURM_LOCALID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}, "rank"),
    ("python train.py", {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, "solo"),
    ("python -m torch.distributed.run t.py", {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0"}, "launcher"),
    ("python train.py", {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "rank"),
    ("python train.py", {"PMI_RANK": "1", "PMI_SIZE": "2"}, "rank"),
    ("python train.py", {"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, "rank"),
    ("python /x/torch/_inductor/compile_worker/__main__.py --workers=4", ELASTIC, "helper"),
    ("python /x/ray/_private/workers/default_worker.py --node-ip-address=192.0.2.2 --worker-launch-time-ms=1", {}, "helper"),
    ("python /x/ray/_private/workers/setup_worker.py --worker-setup-hook=x", {}, "helper"),
    ("python /opt/bin/ray start --head", {}, "helper"),
    ("python -m ddp_probe report", {}, "nothing"),
    ("python -m ddp_probe_activator", {}, "nothing"),
    ("python -m torch.distributed.run --nnodes=2 -m ddp_probe gather", {}, "nothing"),
    ("python /opt/bin/torchrun --nnodes=2 -m ddp_probe doctor --static", {}, "nothing"),
    ("python /opt/bin/torchrun --nnodes=2 -m ddp_probe run -- python train.py", {}, "launcher"),
]


@pytest.mark.parametrize(("command", "environ", "role"), ROLES, ids=["%s %s" % (row[0], ",".join(row[1])) for row in ROLES])
def test_role(command, environ, role):
    """The command line decides first, then who is armed above, then the environment."""
    assert decide(program(command.split()), environ).name == role


@pytest.mark.parametrize(
    "code",
    [
        "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
        "from multiprocessing.resource_tracker import main;main(4)",
        "from multiprocessing.semaphore_tracker import main;main(4)",
        "from multiprocessing.forkserver import main; main(6, 7, ['__main__'], **{})",
    ],
)
def test_children_of_multiprocessing_are_helpers(code):
    """A worker, tracker or fork server is a helper, although it carries RANK."""
    assert decide(program(["python", "-c", code]), ELASTIC).name == "helper"


def test_below_an_armed_rank_is_a_helper():
    """Whatever a rank starts with its own RANK is a helper."""
    mark = {"DDP_PROBE_ARMED": "1:1:1"}
    assert decide(program(["python", "tool.py"]), {**ELASTIC, **mark}).name == "helper"


def test_below_an_armed_rank_with_another_rank_is_a_rank():
    """A rank that starts other ranks, as Lightning does, does not make helpers of them."""
    mark = {"DDP_PROBE_ARMED": "1:0:0"}
    assert decide(program(["python", "train.py"]), {**ELASTIC, **mark}).name == "rank"


def test_exec_keeps_the_role():
    """A rank that replaces itself by exec has the same pid and stays a rank."""
    mark = {"DDP_PROBE_ARMED": "%d:1:1" % os.getpid()}
    assert decide(program(["python", "train.py"]), {**ELASTIC, **mark}).name == "rank"


def test_rank_info_of_lightning_children():
    """A child that knows its host and its local rank only gets a rank from both."""
    found = rank_info({"LOCAL_RANK": "1", "NODE_RANK": "2", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "2"})
    assert (found.rank, found.local_rank, found.world_size) == (5, 1, 8)


def test_the_local_rank_of_srun_with_pmi2():
    """srun --mpi=pmi2 sets PMI_RANK and no local rank beside it; its own number of the same task has one, and that of another task does not count."""
    task = {"PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}
    assert rank_info(task).local_rank == 1
    assert rank_info({**task, "SLURM_PROCID": "0"}).local_rank is None
    assert rank_info({**task, "MPI_LOCALRANKID": "0"}).local_rank == 0


def test_rank_info_names_the_launcher():
    """torchrun leaves a mark of its own; a RANK without it was set by hand."""
    assert rank_info(ELASTIC).launcher == "torchrun"
    assert rank_info(RANK).launcher == "environment"


def test_odd_numbers_are_no_rank():
    """A RANK that is no number is none."""
    assert rank_info({"RANK": "", "LOCAL_RANK": "x"}).rank is None


def test_a_vendors_copy_of_the_launcher():
    """A module that ends in distributed.run or distributed.launch is a launcher."""
    assert launcher_name(program("python -m torch_gcu.distributed.launch t.py".split())) == "torch_gcu.distributed.launch"
