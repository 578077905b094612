"""The versions of torch, mmengine, mmcv and numpy are compatible."""

import re
from typing import Iterator, Optional, Tuple

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host, Packages, packages_of

CHECK = Check(
    id="DOC103",
    slug="versions-fit",
    title="The versions of torch, mmengine, mmcv and numpy are compatible.",
    looks_at="The metadata of what is installed.",
    remedy="Install compatible versions.",
)


def check(host: Host) -> Answer:
    """Compare the versions that are known not to fit."""
    packages = packages_of(host)
    misfits = list(_misfits(packages))
    if misfits:
        return CHECK.warn(" ".join(saw for saw, _ in misfits), " ".join(remedy for _, remedy in misfits))
    there = ["%s %s" % (name, packages.version(name)) for name in ("torch", "mmengine", "mmcv", "mmcv-full", "numpy") if packages.version(name)]
    return CHECK.ok("No conflict between %s is known." % ", ".join(there))


def _misfits(packages: Packages) -> Iterator[Tuple[str, str]]:
    torch, mmengine, mmcv, numpy = (_numbers(packages.version(name)) for name in ("torch", "mmengine", "mmcv", "numpy"))
    if torch and mmengine and torch >= (2, 6) and mmengine <= (0, 10, 7):
        yield (
            "mmengine %s cannot resume from its own checkpoints with torch %s: torch.load refuses their classes (weights_only)."
            % (packages.version("mmengine"), packages.version("torch")),
            "If a job resumes, start it with DDP_PROBE=1 DDP_PROBE_FIX=weights-only.",
        )
    if torch and numpy and torch < (2, 3) and numpy >= (2,):
        yield (
            "torch %s was compiled for numpy 1, and numpy %s is installed: tensor.numpy() and DataLoader workers fail."
            % (packages.version("torch"), packages.version("numpy")),
            'Install an older numpy: python -m pip install "numpy<2".',
        )
    if mmcv and mmcv >= (2,) and not mmengine:
        yield "mmcv %s needs mmengine, which is not installed." % packages.version("mmcv"), "python -m pip install mmengine"
    if packages.version("mmcv-full") and mmengine:
        yield (
            "mmcv-full %s is of mmcv 1, which has its own Runner, and mmengine %s is installed."
            % (packages.version("mmcv-full"), packages.version("mmengine")),
            "For mmengine, replace it by mmcv 2: python -m pip uninstall -y mmcv-full; python -m pip install 'mmcv>=2'.",
        )


def _numbers(version: str) -> Optional[Tuple[int, ...]]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3]) or None
