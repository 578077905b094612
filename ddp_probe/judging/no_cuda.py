"""Knows how torch says that the job requests CUDA and has none, for the rules that tell who requested it."""

from ddp_probe.reading.model import Failed
from ddp_probe.wording.text import Text
from ddp_probe.wording.words import cut, quoted

# torch 1.x and 2.x, CPU builds and CUDA builds without a driver; the last line is the dispatcher's way to say it.
NO_CUDA = (
    r"Torch not compiled with CUDA enabled|Found no NVIDIA driver on your system|has no attribute '_cuda_\w+'"
    r"|Cannot access accelerator device when none is available"
    r"|Tried to instantiate dummy base class|PyTorch was compiled without CUDA support|PyTorch is not linked with support for cuda devices"
    r"|Cannot initialize CUDA without ATen_cuda library"
    r"|Could not run 'aten::[\w.]+' with arguments from the 'CUDA' backend"
)
# The calls of OpenMMLab's launch code: mmengine.dist.utils and mmcv.runner.dist_utils name them alike.
IN_INIT_DIST = r"\bin (?:\w+\.)*_init_dist_(?:pytorch|slurm|mpi)\b"


def said(failure: Failed) -> Text:
    """Return the first sentence of what a failure says: torch's go on with advice and addresses."""
    return quoted(cut(failure.text.strip().split(". ", 1)[0], 200).rstrip("."))
