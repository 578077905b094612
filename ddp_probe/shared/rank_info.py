"""Who a process is in its launch, as its environment says: rank, local rank, number of ranks, and who set them."""

from __future__ import annotations

from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional


class RankInfo:
    """The position of a process in the job, as its environment says."""

    __slots__ = ("launcher", "local_rank", "rank", "world_size")

    def __init__(self, launcher: str, rank: Optional[int], local_rank: Optional[int], world_size: Optional[int]) -> None:
        self.launcher = launcher
        self.rank = rank
        self.local_rank = local_rank
        self.world_size = world_size


# Who sets them, rank, local rank, world size, and a variable that has to be there as well.
_SOURCES = (
    ("torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"),
    ("environment", "RANK", "LOCAL_RANK", "WORLD_SIZE", ""),
    ("mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", ""),
    ("mpi", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", ""),
    ("mpi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", ""),
    # sbatch sets SLURM_PROCID for the batch script as well; only srun sets a step.
    ("slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_STEP_ID"),
    ("mpi", "PMIX_RANK", "", "", ""),
)


def _number(text: Optional[str]) -> Optional[int]:
    try:
        return int(text or "")
    except ours(ValueError):
        return None


def _local(environ: Mapping[str, str], variable: str, rank: int) -> Optional[int]:
    """Return the local rank; srun --mpi=pmi2 sets PMI_RANK without one, beside its own numbers of the same task."""
    if not environ.get(variable) and environ.get("SLURM_STEP_ID") and _number(environ.get("SLURM_PROCID")) == rank:
        variable = "SLURM_LOCALID"
    return _number(environ.get(variable))


def rank_info(environ: Mapping[str, str]) -> RankInfo:
    """Read rank, local rank and world size from whichever launcher has set them."""
    for launcher, rank, local, world, needs in _SOURCES:
        number = _number(environ.get(rank))
        if number is not None and (not needs or environ.get(needs)):
            return RankInfo(launcher, number, _local(environ, local, number), _number(environ.get(world)))
    local_rank = _number(environ.get("LOCAL_RANK"))
    if local_rank is None:
        return RankInfo("none", None, None, None)
    # Lightning's children know their local rank only; the host's number makes it a rank.
    world_size = _number(environ.get("WORLD_SIZE"))
    per_host = _number(environ.get("LOCAL_WORLD_SIZE")) or (world_size or 1) // max(1, _number(environ.get("NUM_NODES")) or 1)
    rank_here = (_number(environ.get("NODE_RANK")) or 0) * per_host + local_rank
    return RankInfo("environment", rank_here, local_rank, world_size)
