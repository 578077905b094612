"""The clients: programs in the shapes that people write, each with the command that starts it, and the three ways in which it is broken.

raises  an exception of the job's own on rank 1
ddp     device_ids on the CPU, or what is like it in the framework: parameters that are not used, a configuration that it refuses
ends    the exception is swallowed, and the program ends with 1; or rank 1 calls sys.exit(1), or is killed

A program reads its way from $WAY and marks its faulty lines with "# way: NAME"; lines(program, way) finds them.
"""

import re
from pathlib import Path
from typing import List, NamedTuple, Tuple

PROGRAMS = Path(__file__).resolve().parent / "programs"
WAYS = ("raises", "ddp", "ends")
_TORCHRUN = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port={port} "
_ACCELERATE = "accelerate launch --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no "
_RENDEZVOUS = "MASTER_ADDR=127.0.0.1 MASTER_PORT={port} "
_BY_HAND = _RENDEZVOUS + "WORLD_SIZE=2 RANK=%d "
_SLURM = _RENDEZVOUS + "SLURM_JOB_ID={port} SLURM_NTASKS=2 SLURM_PROCID=%d SLURM_LOCALID=%d SLURM_NODELIST=node1 SLURM_STEP_ID=0 SLURM_NODEID=0 "
_MPI = _RENDEZVOUS + "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=%d OMPI_COMM_WORLD_LOCAL_RANK=%d "


def _both(line: str) -> str:
    """Start rank 0 behind rank 1, and end with 1 when one of them failed: line has a %d for each mention of the rank."""
    first, second = (line % ((rank,) * line.count("%d")) for rank in (1, 0))
    return "%s & %s; a=$?; wait $!; b=$?; [ $a = 0 ] && [ $b = 0 ]" % (first, second)


class Client(NamedTuple):
    """One shape of job."""

    name: str
    program: str  # In PROGRAMS.
    command: str  # A line of bash, run in a folder that holds the programs; {port} is filled in.
    always: Tuple[str, ...] = ()  # The ways that run without --all, next to the healthy one.


CLIENTS = (
    Client("spawn", "spawn_toy.py", "python spawn_toy.py", ("ends",)),
    Client("process", "process_tuto.py", "python process_tuto.py", ("raises", "ddp")),
    Client("elastic", "elastic.py", _TORCHRUN + "elastic.py", ("ends",)),
    Client("hand", "imagenet.py", _both(_BY_HAND + "python imagenet.py"), ("ends",)),
    Client("slurm", "imagenet.py", _both(_SLURM + "python imagenet.py")),
    Client("mmengine-slurm", "runner.py", _both(_SLURM + "python runner.py slurm"), ("ddp",)),
    Client("mmengine-mpi", "runner.py", _both(_MPI + "python runner.py mpi")),
    Client(
        "accelerate",
        "with_accelerate.py",
        _ACCELERATE + "--multi_gpu --main_process_port {port} with_accelerate.py",  # The Accelerator takes the CPU; with --cpu there is one process.
        ("ddp",),
    ),
    Client("accelerate-notebook", "with_accelerate.py", "python with_accelerate.py notebook", ("raises",)),
    Client("lightning-ddp", "with_lightning.py", "python with_lightning.py ddp", ("ddp",)),
    Client("lightning-spawn", "with_lightning.py", "python with_lightning.py ddp_spawn"),
    Client("lightning-fork", "with_lightning.py", "python with_lightning.py ddp_fork", ("ends",)),
    Client("trainer", "with_trainer.py", _TORCHRUN + "with_trainer.py", ("ddp",)),
    Client("deepspeed", "with_deepspeed.py", _TORCHRUN + "with_deepspeed.py", ("ddp",)),
    Client("hydra", "with_hydra.py", _TORCHRUN + "with_hydra.py", ("raises",)),
    Client("opentelemetry", "elastic.py", "opentelemetry-instrument " + _TORCHRUN + "elastic.py", ("raises",)),
    Client("ddtrace", "elastic.py", "ddtrace-run " + _TORCHRUN + "elastic.py"),
    Client("coverage", "elastic.py", _TORCHRUN + "--no_python coverage run -p elastic.py"),
    Client("pytest", "check_two_ranks.py", "pytest -q -p no:cacheprovider check_two_ranks.py", ("raises",)),
)
# What --cpu makes of --num_processes 2: one process, started without a word.
ALONE = Client("accelerate-cpu", "with_accelerate.py", _ACCELERATE + "--cpu with_accelerate.py")


def lines(program: str, way: str) -> List[str]:
    """Name the faulty lines of a program as a report does: FILE:LINE."""
    text = (PROGRAMS / program).read_text(encoding="utf-8").split("\n")
    marked = [(number, re.search(r"# way: (.*)", line)) for number, line in enumerate(text, 1)]
    return ["%s:%d" % (program, number) for number, found in marked if found and way in found.group(1).split(", ")]
