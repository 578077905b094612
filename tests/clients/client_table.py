"""The clients: programs in the shapes that people write, each with the command that starts it, and the four ways in which it is broken.

raises   an exception of the job's own on rank 1
ddp      device_ids on the CPU, or what is like it in the framework: parameters that are not used, a configuration that it refuses
ends     the exception is swallowed, and the program ends with 1; or rank 1 calls sys.exit(1), or is killed
swallow  rank 1 raises at a drawn step, every rank logs what it catches, and the program ends with 0

scripts/client_table has more ways and more clients, and prints a table of what the reports say.

A program reads its way from $WAY and marks its faulty lines with "# way: NAME"; lines(program, way) finds them.
"""

import re
from pathlib import Path
from typing import Any, List, NamedTuple, Tuple

from launcher_pages import adapted, command, reads, together

PROGRAMS = Path(__file__).resolve().parent / "programs"
WAYS = ("raises", "ddp", "ends", "swallow")
_TORCHRUN = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port={port} "
_ACCELERATE = "accelerate launch --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no "
_BY_HAND = "MASTER_ADDR=127.0.0.1 MASTER_PORT={port} WORLD_SIZE=2 RANK=%d python imagenet.py"
# The names of runs: of a program or a Python launcher, of a step of SLURM, of a job of MPI, of ranks without a launcher.
TIME, STEP, JOB, RANKS = r"\d{8}-\d{6}-\d+-[0-9a-f]{4}", r"slurm-\d+\.\d+", r"job-.+", r"ranks-[\w.-]+-\d+"
# What a block of a page says of other numbers than a test has.
_TWO = ("--nproc_per_node=8", "--nproc_per_node=2 --master_addr=127.0.0.1 --master_port={port}")
_ONE_EACH = ("--nproc_per_node=8", "--nproc_per_node=1")
_ONE_TASK = ("--ntasks-per-node=8", "--ntasks-per-node=1")
_ALLOCATION = ("$SLURM_JOB_ID", "{port}")
_SLURM_TRAIN = ("GPUS=16 GPUS_PER_NODE=8", "MASTER_PORT={port} GPUS=2 GPUS_PER_NODE=1")
_QUIETLY = " --mixed_precision no --dynamo_backend no"
_TWO_QUIETLY = "--num_processes=2 --main_process_port={port}" + _QUIETLY
_MPIRUN = "mpirun -np 2 -x MASTER_ADDR=127.0.0.1 -x MASTER_PORT={port} "
_VOLUMES = "volumes/train-master-0/runs volumes/train-worker-0/runs"


class Client(NamedTuple):
    """One shape of job."""

    name: str
    program: str  # In PROGRAMS.
    command: str  # A line of bash, run in a folder that holds the programs; {port} is filled in.
    always: Tuple[str, ...] = ()  # The ways that run without --all, next to the healthy one.
    page: Tuple[str, str] = ("", "")  # The page of docs/launchers and its block that the command comes from.
    named: str = TIME  # The pattern of the run's name.
    folders: int = 1  # How many folders the launch writes: one, or one for each host.
    runs: str = "ddp_probe_runs"  # Where the folders lie.

    reads: str = ""  # What report is told to read; nothing, as a person does who starts it in the job's folder.
    same: bool = True  # It prints the same text each time; DeepSpeed's launcher prints times and pids.
    proven: bool = True  # Something tells how each rank ended. Nothing does if Ray has killed its workers after a training that went well.

    further: Tuple[str, ...] = ()  # The ways in which it alone is broken, besides WIDE_WAYS.

    def has(self, way: str) -> bool:
        """Tell whether the program can be broken in a way."""
        return way != "swallow" or "@tolerant" in (PROGRAMS / self.program).read_text(encoding="utf-8")


def _of_page(name: str, program: str, page: str, block: str, *changes: Tuple[str, str], **more: Any) -> Client:
    """Return the client that runs a block of a page, with its own program and numbers."""
    return Client(name, program, command(page, block, program, changes), page=(page, block), reads=reads(page, block), **more)


def _pods(*changes: Tuple[str, str]) -> str:
    """Return the line that applies the manifest of the page."""
    manifest = adapted("kubernetes", "pytorchjob", "elastic.py", (('nprocPerNode: "8"', 'nprocPerNode: "1"'), *changes))
    return "cat > pytorchjob.yaml <<'END'\n%sEND\n%s" % (manifest, command("kubernetes", "start", "", ()))


CLIENTS = (
    _of_page("spawn", "spawn_toy.py", "mp-spawn", "one-host", always=("ends",)),
    _of_page("spawn-hosts", "main.py", "mp-spawn", "several-hosts", always=("raises",), folders=2),
    Client("process", "process_tuto.py", "python process_tuto.py", ("raises", "ddp")),
    _of_page("elastic", "elastic.py", "torchrun", "one-host", _TWO, always=("ends", "swallow")),
    _of_page("torchrun-hosts", "elastic.py", "torchrun", "several-hosts", _ONE_EACH, always=("ends",), folders=2),
    _of_page("torchrun-c10d", "elastic.py", "torchrun", "several-hosts-c10d", _ONE_EACH, always=("raises",), folders=2),
    _of_page(
        "torchrun-restarts",
        "elastic.py",
        "torchrun",
        "restarts",
        ("--nproc_per_node=8", "--nproc_per_node=2"),
        ("--max_restarts=3", "--max_restarts=1"),
        always=("raises",),
    ),
    _of_page("launch", "elastic.py", "torch-distributed-launch", "one-host", _TWO, always=("ends",)),
    _of_page("launch-hosts", "elastic.py", "torch-distributed-launch", "several-hosts", _ONE_EACH, folders=2),
    Client("hand", "imagenet.py", together([_BY_HAND % 0, _BY_HAND % 1]), ("ends",), named=RANKS),
    _of_page("srun", "imagenet.py", "srun", "tasks", _ONE_TASK, always=("raises",), named=STEP),
    _of_page("srun-torchrun", "elastic.py", "srun", "torchrun", _ONE_EACH, _ALLOCATION, named=STEP),
    _of_page("mpirun", "imagenet.py", "mpirun", "one-host", ("-np 8", "-np 2"), always=("raises",), named=JOB),
    _of_page("mpirun-hosts", "imagenet.py", "mpirun", "several-hosts", ("-np 16 --host node1:8,node2:8", "-np 2 --host localhost:2"), named=JOB),
    _of_page("mpich", "imagenet.py", "mpirun", "mpich", ("-n 8", "-n 2"), named=RANKS),
    Client("mmengine-mpi", "tools/train.py", "PYTHONPATH=. " + _MPIRUN + "python tools/train.py CONFIG --launcher mpi", named=JOB),
    _of_page("mmengine", "tools/train.py", "mmengine", "one-host", ("my_config.py 8", "my_config.py 2"), always=("ddp",)),
    _of_page("mmengine-hosts", "tools/train.py", "mmengine", "several-hosts", ("my_config.py 8", "my_config.py 1"), folders=2),
    _of_page("mmengine-slurm", "tools/train.py", "mmengine", "slurm", _SLURM_TRAIN, always=("ddp",), named=STEP),
    # The Accelerator takes the CPU; with --cpu there is one process.
    _of_page("accelerate", "with_accelerate.py", "accelerate", "one-host", ("--num_processes=8", _TWO_QUIETLY), always=("ddp",)),
    _of_page(
        "accelerate-hosts", "with_accelerate.py", "accelerate", "several-hosts", ("--num_processes=16", "--num_processes=2" + _QUIETLY), folders=2
    ),
    Client("accelerate-notebook", "with_accelerate.py", "python with_accelerate.py notebook", ("raises",)),
    _of_page("lightning-ddp", "with_lightning.py", "lightning", "one-host", ("train.py", "with_lightning.py ddp"), always=("ddp",)),
    _of_page(
        "lightning-hosts", "with_lightning.py", "lightning", "several-hosts", ("train.py", "with_lightning.py ddp 2"), always=("raises",), folders=2
    ),
    Client("lightning-spawn", "with_lightning.py", "python with_lightning.py ddp_spawn"),
    Client("lightning-fork", "with_lightning.py", "python with_lightning.py ddp_fork", ("ends",)),
    Client("trainer", "with_trainer.py", _TORCHRUN + "with_trainer.py", ("ddp", "swallow")),
    Client("deepspeed", "with_deepspeed.py", _TORCHRUN + "with_deepspeed.py", ("ddp",)),
    _of_page(
        "deepspeed-launcher",
        "with_deepspeed.py",
        "deepspeed",
        "one-host",
        ("--num_gpus=8", "--num_gpus=2 --master_port={port}"),
        always=("ends",),
        same=False,
    ),
    _of_page("deepspeed-hosts", "with_deepspeed.py", "deepspeed", "several-hosts", folders=2, same=False),
    _of_page("deepspeed-no-ssh", "with_deepspeed.py", "deepspeed", "several-hosts-no-ssh", folders=2, same=False),
    _of_page("ray", "with_ray.py", "ray-train", "one-host", always=("raises",), proven=False),
    Client("kubernetes", "elastic.py", _pods(), ("raises",), ("kubernetes", "pytorchjob"), TIME, 2, _VOLUMES, _VOLUMES),
    Client(
        "kubernetes-ranks",
        "imagenet.py",
        _pods(("torchrun, train.py", "python, imagenet.py")),
        (),
        ("kubernetes", "pytorchjob"),
        RANKS,
        2,
        _VOLUMES,
        _VOLUMES,
    ),
    Client("hydra", "with_hydra.py", _TORCHRUN + "with_hydra.py", ("raises",)),
    Client("opentelemetry", "elastic.py", "opentelemetry-instrument " + _TORCHRUN + "elastic.py", ("raises",)),
    Client("ddtrace", "elastic.py", "ddtrace-run " + _TORCHRUN + "elastic.py"),
    Client("coverage", "elastic.py", _TORCHRUN + "--no_python coverage run -p elastic.py"),
    Client("pytest", "check_two_ranks.py", "pytest -q -p no:cacheprovider check_two_ranks.py", ("raises",)),
)
# The shapes of large code bases; they need no framework but mmengine, and run in tests/clients/test_code_bases.py.
CODE_BASES = (
    Client("solver", "with_solver.py", _TORCHRUN + "with_solver.py"),
    Client("solver-swallows", "with_solver.py", _TORCHRUN + "with_solver.py card"),
    Client("mmengine-validates", "with_validation.py", _TORCHRUN + "with_validation.py"),
)
# Those that need a framework: a Trainer that starts the other ranks itself and saves on rank 0, and a script that lies in site-packages. They run in
# tests/clients/test_clients.py.
_OWN_WHEEL = "python own_wheel.py toy_trainer && job/bin/python -m "
FRAMEWORK_BASES = (
    Client("lightning-saves", "with_lightning_saves.py", "python with_lightning_saves.py", further=("guarded",)),
    Client(
        "accelerate-wheel",
        "toy_trainer/train.py",
        _OWN_WHEEL + "accelerate.commands.launch --multi_gpu --num_machines=1 " + _TWO_QUIETLY + " -m toy_trainer.train",
        further=("guarded",),
    ),
    Client("notebook-wheel", "toy_trainer/train.py", _OWN_WHEEL + "toy_trainer.train notebook", further=("guarded",)),
)
# Those that scripts/client_table has besides; the last ones need packages that it names.
WIDE = (
    Client("fsdp2", "with_fsdp2.py", _TORCHRUN + "with_fsdp2.py"),
    Client("tensor-parallel", "with_tensor_parallel.py", _TORCHRUN + "with_tensor_parallel.py"),
    Client("pipelining", "with_pipelining.py", _TORCHRUN + "with_pipelining.py"),
    Client("workers", "with_workers.py", _TORCHRUN + "with_workers.py"),
    Client("rpc", "with_rpc.py", together([_BY_HAND.replace("imagenet.py", "with_rpc.py") % one for one in (0, 1)])),
    Client("mpi4py", "with_mpi4py.py", "mpirun -np 2 python with_mpi4py.py", named=JOB),
    Client("joblib", "toy_training.py", "python with_joblib.py"),
    Client("papermill", "toy_training.py", together([_BY_HAND.replace("imagenet.py", "with_papermill.py") % one for one in (0, 1)]), same=False),
    Client("ray-tasks", "toy_training.py", "python with_ray_tasks.py", same=False, proven=False),
)
# The ways that they and most of CLIENTS are broken in there: by spoil() of pieces.py, or as their own "ddp".
WIDE_WAYS = ("", "raise", "ddp", "exit1", "_exit", "kill", "swallow", "hang")
# What --cpu makes of --num_processes 2: one process, started without a word.
ALONE = Client("accelerate-cpu", "with_accelerate.py", _ACCELERATE + "--cpu with_accelerate.py")

# A scheduler's end of a job that trains: SIGTERM, and SIGKILL 12 s later; with the handler of Lightning, which makes a broadcast.
_ENDED = """set -m; %s > trained & job=$!; until grep -q "step 1" trained; do kill -0 $job || exit 9; sleep 0.2; done
ranks=$(pgrep -P $job); kill -TERM -- %s$job; for _ in $(seq 60); do kill -0 $job || break; sleep 0.2; done; kill -KILL -- -$job $ranks; wait $job"""
ENDED = tuple(
    Client("lightning-%s-%s" % (name, to), "with_lightning.py", _ENDED % (line + "with_lightning.py ddp", mark))
    for name, line in (("ddp", "python "), ("torchrun", _TORCHRUN))
    for to, mark in (("launcher", ""), ("group", "-"))
)


def lines(program: str, way: str) -> List[str]:
    """Name the faulty lines of a program as a report does: FILE:LINE."""
    text = (PROGRAMS / program).read_text(encoding="utf-8").split("\n")
    marked = [(number, re.search(r"# way: (.*)", line)) for number, line in enumerate(text, 1)]
    return ["%s:%d" % (program, number) for number, found in marked if found and way in found.group(1).split(", ")]
