"""The programs whose printed change is followed: how each is started, which rules it meets in turn, and what it prints once it is well."""

from pathlib import Path
from typing import Dict, NamedTuple, Tuple

HERE = Path(__file__).resolve().parent
JOBS = HERE.parent / "jobs"
PROGRAMS = HERE / "programs"
# One rank, started by hand: as much of a launch as most changes need.
ONE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}
SLURM = {
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NTASKS": "1",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "7",
    "SLURM_NODELIST": "node1",
    "MASTER_PORT": "{port}",
}
MPI = {
    "OMPI_COMM_WORLD_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_SIZE": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    "MASTER_PORT": "{port}",
}
TORCHRUN = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port={port} {program}"
PYTHON = "python {program}"


class Row(NamedTuple):
    """A failing job, and what following the report has to lead to."""

    name: str
    rules: Tuple[str, ...]  # Whose change is followed, in this order; after the last one the job is well.
    program: str  # Of programs/, or of tests/jobs.
    says: str  # What the job prints when it is well.
    command: str = PYTHON
    env: Dict[str, str] = {}
    cards: bool = False
    stacks: Tuple[str, ...] = ("new", "legacy")

    @property
    def source(self) -> Path:
        """Return the program."""
        return next(folder / (self.program + ".py") for folder in (PROGRAMS, JOBS) if (folder / (self.program + ".py")).exists())


# Each was found to be false once: followed to the letter, its advice led to another failure.
FOUND_FALSE = (
    Row("bare init_dist", ("DDP201",), "init_dist_bare", "joined 0 of 1", PYTHON + " pytorch", ONE),
    Row("bare init_dist under slurm", ("DDP201",), "init_dist_bare", "joined 0 of 1", PYTHON + " slurm", SLURM),
    Row("bare init_dist under mpi", ("DDP201",), "init_dist_bare", "joined 0 of 1", PYTHON + " mpi", MPI),
    Row("Runner under slurm", ("DDP201", "DDP106"), "runner", "training finished, rank 0", PYTHON + " --launcher slurm", SLURM),
    Row("Runner under mpi", ("DDP201", "DDP106"), "runner", "training finished, rank 0", PYTHON + " --launcher mpi", MPI),
    Row("Runner under mpi, with remedies", (), "runner", "training finished, rank 0", PYTHON + " --launcher mpi", {**MPI, "DDP_PROBE_FIX": "auto"}),
    Row("Runner with eccl", ("DDP201", "DDP102"), "runner", "training finished, rank 0", PYTHON + " --backend eccl", ONE, True, ("new",)),
    Row("Runner.from_cfg", ("DDP201", "DDP106"), "runner_from_cfg", "training finished", env=ONE),
    Row("config file", ("DDP201", "DDP106"), "runner_config_file", "training finished", PYTHON + " settings.py", ONE),
    Row("DDP on the CPU", ("DDP106",), "03_ddp_device_ids_on_cpu", "", env=ONE),
    Row("a prefix inside", ("DDP515",), "prefix_inside", "loaded"),
    Row("a renamed layer", ("DDP517",), "renamed_layer", "loaded True"),
    Row("init_process_group under slurm", ("DDP401",), "group_under_scheduler", "joined 0 of 1", env=SLURM),
)
OTHERS = (
    Row("Runner(...)", ("DDP201", "DDP106"), "01_runner_sets_cuda_device", "", TORCHRUN),
    Row("Runner(...) with a group of its own", ("DDP106",), "02_runner_wraps_cpu_model", "Saving checkpoint", env=ONE),
    Row("model_wrapper_cfg without device_ids", ("DDP106",), "02_runner_wrapper_cfg_without_device_ids", "Saving checkpoint", env=ONE),
    Row("mmengine and a card", ("DDP102",), "02_runner_does_not_know_cards", "Saving checkpoint", env=ONE, cards=True, stacks=("new",)),
    Row("mmengine and a card, torch 1.12", ("DDP102", "DDP116"), "02_runner_does_not_know_cards", "", env=ONE, cards=True, stacks=("legacy",)),
    Row("DDP with positions", ("DDP106",), "ddp_positional", "wrapped", env=ONE),
    Row("DDP in a class", ("DDP106",), "ddp_in_a_class", "wrapped", TORCHRUN),
    Row(".cuda(local_rank)", ("DDP203", "DDP106"), "01_model_cuda_call", "", env=ONE),
    Row("set_device and .cuda()", ("DDP203", "DDP203"), "cuda_calls", "model on cpu"),
    Row("a model that nobody moved", ("DDP101",), "03_model_never_moved", "", env=ONE, cards=True, stacks=("new",)),
    Row("a card in a class", ("DDP101",), "on_a_card_in_a_class", "wrapped", env=ONE, cards=True, stacks=("new",)),
    Row("a part that was left behind", ("DDP104",), "03_submodule_left_behind", "", env=ONE, cards=True),
    Row("a conversion after the move", ("DDP104",), "03_converted_after_the_move", "", env=ONE, cards=True, stacks=("new",)),
    Row("a buffer that was left behind", ("DDP112",), "03_buffer_left_behind", "", env=ONE, cards=True),
    Row("a model over two cards", ("DDP110",), "03_model_over_two_cards", "", env=ONE, cards=True),
    Row("device_ids of another card", ("DDP108",), "03_device_ids_of_another_card", "wrapped", env=ONE, cards=True, stacks=("new",)),
    Row("device_ids on torch 1.12", ("DDP116",), "03_device_ids_on_old_torch", "wrapped", env=ONE, cards=True, stacks=("legacy",)),
    Row("a plugin that is not imported", ("DDP205",), "10_unknown_backend", "", env=ONE, cards=True),
    Row("nccl without CUDA", ("DDP205",), "10_nccl_without_cuda", "", env=ONE, stacks=("new",)),
    Row("nccl from settings", ("DDP205",), "group_from_settings", "joined", env=ONE, stacks=("new",)),
    Row("nccl without a card", ("DDP207",), "10_nccl_without_cuda", "", env=ONE, stacks=("legacy",)),
    Row("slurm without a card", ("DDP207", "DDP106"), "10_runner_slurm_without_card", "", env={**SLURM, "SLURM_LOCALID": ""}),
    Row("no card is chosen", ("DDP303",), "05_local_rank_unused", "finished on gcu:1", TORCHRUN, cards=True, stacks=("new",)),
    Row("launcher none", ("DDP311", "DDP201", "DDP106"), "05_runner_launcher_none", "training finished", TORCHRUN),
    Row("plain python", ("DDP401",), "10_rank_missing", ""),
    Row("a Runner under plain python", ("DDP401", "DDP201", "DDP106"), "10_runner_under_plain_python", ""),
    Row("launcher slurm without slurm", ("DDP401", "DDP201", "DDP106"), "runner", "training finished, rank 1", PYTHON + " --launcher slurm"),
    Row("no WORLD_SIZE", ("DDP401",), "10_world_size_missing", "", env={"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}),
    Row("eight cards and plain python", ("DDP311",), "05_plain_python_eight_cards", "", cards=True, stacks=("new",)),
    Row("the group is made twice", ("DDP405",), "10_init_twice", "", env=ONE),
    Row("an interface that is not there", ("DDP415",), "10_wrong_interface", "", env={**ONE, "GLOO_SOCKET_IFNAME": "ib9"}),
    Row("--local-rank", ("DDP403",), "10_local_rank_underscore", "", "python -m torch.distributed.launch " + TORCHRUN[9:], stacks=("new",)),
    Row("--local_rank", ("DDP403",), "10_local_rank_dash", "", "python -m torch.distributed.launch " + TORCHRUN[9:], stacks=("legacy",)),
    Row("a file that is being written", ("DDP503",), "06_load_while_written", "rank 1. loaded", TORCHRUN),
    Row("a file that mmengine is writing", ("DDP503",), "mmengine_saves", "loaded", TORCHRUN),
    Row("a file that a helper is writing", ("DDP503",), "saves_on_master", "loaded", TORCHRUN),
    Row("a file that all ranks write", ("DDP525",), "all_ranks_save", "saved 4", TORCHRUN),
    Row("a folder that nobody makes", ("DDP521",), "folder_that_nobody_makes", "saved", TORCHRUN),
    Row("a method that all ranks call", ("DDP525",), "each_rank_keeps", "saved 4", TORCHRUN),
    Row("a checkpoint from cuda:0", ("DDP513",), "11_cuda_checkpoint_without_map_location", ""),
    Row("a class that resumes", ("DDP513", "DDP515"), "resume_in_a_class", "resumed"),
    Row("names of the wrapper", ("DDP515",), "11_module_prefix", ""),
    Row("into the wrapper", ("DDP515",), "into_the_wrapper", "loaded", env=ONE),
    Row("each rank's own best", ("DDP602",), "best_of_each_rank", "kept 2.0", TORCHRUN),
    Row("a step that one rank skips", ("DDP602",), "skips_what_is_not_finite", "made 3 steps", TORCHRUN),
    Row("unused parameters", ("DDP613",), "08_unused_parameter", "step 1", env=ONE),
    Row("the order of a set", ("DDP703",), "09_hash_order", "", TORCHRUN),
)

# Rules whose change nobody can follow here, or only a person can, with the reason.
_NO_CUDA = "the machine has no CUDA, and the simulated cards do not have this failure"
_PERSON = "the report says where to look; which line to change is for a person to see"
_OUTSIDE = "the change is outside of the program and of its command: another file, package, host or cable"
NOT_FOLLOWED: Dict[str, str] = {
    "DDP431": "the change is in the command of a launch, and tests/runs/test_port_zero.py follows it",
    "DDP243": _PERSON,
    "DDP699": _PERSON,
    "DDP427": _OUTSIDE,
    "DDP425": _OUTSIDE,
    "DDP423": _PERSON,
    "DDP655": _OUTSIDE,
    "DDP657": _PERSON,
    "DDP697": _OUTSIDE,
    "DDP227": _PERSON,
    "DDP229": _PERSON,
    "DDP231": _OUTSIDE,
    "DDP235": _OUTSIDE,
    "DDP237": _OUTSIDE,
    "DDP239": _OUTSIDE,
    "DDP241": _OUTSIDE,
    "DDP645": _PERSON,
    "DDP647": _OUTSIDE,
    "DDP653": _PERSON,
    "DDP313": _PERSON,
    "DDP315": _PERSON,
    "DDP317": _PERSON,
    "DDP523": _PERSON,
    "DDP527": _OUTSIDE,
    "DDP421": "a signal to a process is no change of the job",
    "DDP641": "in which order the groups are used is for a person to choose",
    "DDP643": "where the tensor is used, and so where to wait, is in the job's own code",
    "DDP639": "what a rank does before it joins is in the job's own code",
    "DDP627": "which of two calls is the right one is for a person to say",
    "DDP661": "which of two lines is the right one is for a person to say",
    "DDP629": "why a rank does not come is in the job's own code",
    "DDP631": "why a rank has left is in its last lines",
    "DDP633": "which branch the call belongs to is for a person to say",
    "DDP635": "which half of a pair is missing is for a person to say",
    "DDP637": "sharing the work changes the job; more time is followed by the remedy timeout",
    "DDP651": "sharing the work changes the job; more time is followed by the remedy timeout",
    "DDP114": _NO_CUDA,
    "DDP206": _NO_CUDA,
    "DDP209": _OUTSIDE,
    "DDP211": _OUTSIDE + "; test_a_missing_plugin follows the one part that can be",
    "DDP213": _NO_CUDA,
    "DDP215": _NO_CUDA,
    "DDP217": _NO_CUDA,
    "DDP219": _PERSON,
    "DDP221": _NO_CUDA,
    "DDP223": _OUTSIDE,
    "DDP225": _OUTSIDE,
    "DDP301": "the number of processes is in the launcher's own command, which the words name and do not repeat",
    "DDP305": _NO_CUDA,
    "DDP307": _OUTSIDE,
    "DDP309": "the number stands in more lines than the logs name",
    "DDP407": _NO_CUDA,
    "DDP409": _OUTSIDE,
    "DDP411": _OUTSIDE,
    "DDP413": _OUTSIDE,
    "DDP417": _OUTSIDE,
    "DDP419": _OUTSIDE,
    "DDP501": _OUTSIDE,
    "DDP505": _OUTSIDE,
    "DDP507": _OUTSIDE,
    "DDP511": "each load names one more class; tests/remedies loads such files",
    "DDP519": _PERSON,
    "DDP601": _PERSON,
    "DDP603": _PERSON,
    "DDP607": _PERSON,
    "DDP609": _PERSON,
    "DDP611": _PERSON,
    "DDP615": _OUTSIDE,
    "DDP617": _PERSON,
    "DDP619": "gloo aborts in most runs and not in all, before the change as after it",
    "DDP621": _PERSON,
    "DDP623": _PERSON,
    "DDP625": _PERSON,
    "DDP681": _OUTSIDE,
    "DDP683": _OUTSIDE,
    "DDP685": _PERSON,
    "DDP687": _OUTSIDE,
    "DDP689": _PERSON,
    "DDP691": _PERSON,
    "DDP695": "The network between hosts is mended, not the job.",
    "DDP693": _PERSON,
    "DDP701": _PERSON,
    "DDP705": _PERSON,
    "DDP707": _PERSON,
    "DDP801": _OUTSIDE,
    "DDP803": _OUTSIDE,
    "DDP805": _OUTSIDE,
    "DDP807": _OUTSIDE,
    "DDP809": _OUTSIDE,
    "DDP811": _OUTSIDE,
    "DDP813": _OUTSIDE,
    "DDP118": _PERSON,
    "DDP120": _PERSON,
    "DDP122": _NO_CUDA,
    "DDP124": _NO_CUDA,
    "DDP126": _PERSON,
    "DDP429": _PERSON,
    "DDP709": _PERSON,
    "DDP659": _PERSON,
}
