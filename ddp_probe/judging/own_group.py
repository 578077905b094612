"""Changes that let a job make its process group: in place of mmengine's init_dist, or from what SLURM and MPI set."""

from itertools import chain
from typing import List, Optional, Tuple

from ddp_probe.judging import change
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator
from ddp_probe.wording.text import Text, say

_NO_CUDA = "not torch.cuda.is_available()"
_CUDA_LIKE = [accelerator.backends for accelerator in ACCELERATORS if accelerator.name in ("cuda", "rocm")]
_OF_CUDA = frozenset(chain.from_iterable(_CUDA_LIKE))
_LOCAL = "int(os.environ['LOCAL_RANK'])"
_PLACES = {
    "slurm": (
        "os.environ.update(RANK=os.environ['SLURM_PROCID'], WORLD_SIZE=os.environ['SLURM_NTASKS'], LOCAL_RANK=os.environ.get('SLURM_LOCALID', '0'))",
        "os.environ.setdefault('MASTER_ADDR', subprocess.getoutput('scontrol show hostnames ' + os.environ['SLURM_NODELIST']).split()[0])",
    ),
    "mpi": (
        "os.environ.update(RANK=os.environ['OMPI_COMM_WORLD_RANK'], WORLD_SIZE=os.environ['OMPI_COMM_WORLD_SIZE'])",
        "os.environ.update(LOCAL_RANK=os.environ['OMPI_COMM_WORLD_LOCAL_RANK'])",
    ),
}
_PORT = "os.environ.setdefault('MASTER_PORT', '29500')"


def places(process: LoggedProcess, launcher: str) -> Tuple[List[str], List[str]]:
    """Return the lines that give torch the rank that the scheduler set, and what they import; none for torchrun."""
    lines = list(_PLACES.get(launcher, ()))
    if not lines:
        return [], []
    set_ = process.started.environment
    if launcher == "mpi" and set_.get("OMPI_COMM_WORLD_LOCAL_SIZE") == set_.get("OMPI_COMM_WORLD_SIZE"):
        lines.append("os.environ.setdefault('MASTER_ADDR', '127.0.0.1')")
    return [*lines, _PORT], ["os", "subprocess"] if launcher == "slurm" else ["os"]


def notes(process: LoggedProcess, launcher: str) -> List[Text]:
    """Return what such lines do not know."""
    set_ = process.started.environment
    several = launcher == "mpi" and set_.get("OMPI_COMM_WORLD_LOCAL_SIZE") != set_.get("OMPI_COMM_WORLD_SIZE") and not set_.get("MASTER_ADDR")
    if not several:
        return []
    return [say("MPI does not give the address of rank 0: start with mpirun -x MASTER_ADDR=<its host>.")]


def instead_of_init_dist(process: LoggedProcess, call: "LoggedCall[schema.InitDist]") -> change.Change:
    """Return the lines that make the group on a host without CUDA; a Runner uses an existing group, a bare call is then left out."""
    launcher = call.begin.launcher
    lines, imports = places(process, launcher)
    card = accelerator(process, call.begin.backend)
    if card is not None:
        module, text = _set_device(card)
        lines.append("%s(%s)" % (text, _LOCAL))
        imports += ["os", module]
    lines.append("torch.distributed.init_process_group('%s')" % _backend(call.begin.backend, card))
    needed = tuple(dict.fromkeys([*imports, "torch.distributed"]))
    if _in_a_runner(call):
        made: change.Edit = change.Lines(call.site, tuple(lines), needed, _NO_CUDA)
        return [made, say("The Runner uses an existing group."), *notes(process, launcher)]
    bare = change.Instead(call.site, change.INIT_DIST, "torch.cuda.is_available()", tuple(lines), needed, "init_dist")
    return [bare, *notes(process, launcher)]


def _backend(named: str, card: Optional[Accelerator]) -> str:
    """Return the backend that the job itself names, unless it needs CUDA or cannot carry tensors of the card."""
    if card is not None:
        return named if named in card.backends or not _known(named) else card.backends[0]
    return named if named and named not in _OF_CUDA else "gloo"


def _known(backend: str) -> bool:
    """Tell whether a backend is one of torch's, or of another vendor than the card; empty counts."""
    return backend in ("", "gloo", "mpi", "ucc") or any(backend in each.backends for each in ACCELERATORS)


def accelerator(process: LoggedProcess, backend: str = "") -> Optional[Accelerator]:
    """Return the accelerator to use: one that is initialised or has device files, or that of the requested backend, if its plugin is installed."""
    later = process.ended.accelerators if process.ended is not None else []  # The program may import its plugin after torch.
    for seen in [*process.started.accelerators, *later]:
        known = next((each for each in ACCELERATORS if each.name == seen.name and each.name not in ("cuda", "rocm") and each.backends), None)
        here = seen.count != 0 and (seen.initialised or seen.device_files)
        if known is not None and (here or (backend in known.backends and (seen.importable or seen.module))):
            return known
    return None


def _set_device(card: Accelerator) -> Tuple[str, str]:
    """Return the plugin to import, and its set_device."""
    module = card.modules[0] if card.modules else "torch"
    defined = "%s:set_device" % module in card.set_device or not card.torch_attribute
    return module, "%s.set_device" % (module if defined else "torch." + card.torch_attribute)


def _in_a_runner(call: "LoggedCall[schema.InitDist]") -> bool:
    return any("/runner/" in frame.file.replace("\\", "/") for frame in call.begin.through)
