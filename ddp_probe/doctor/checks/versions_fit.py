"""The versions of torch, mmengine, mmcv and numpy are compatible."""

import re
from typing import Iterator, Optional, Tuple

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host, Packages, packages_of
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

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
        return CHECK.warn(joined([saw for saw, _ in misfits]), joined([remedy for _, remedy in misfits]))
    there = ["%s %s" % (name, packages.version(name)) for name in ("torch", "mmengine", "mmcv", "mmcv-full", "numpy") if packages.version(name)]
    return CHECK.ok(say("No conflict between {packages} is known.", packages=listed(there)))


def _misfits(packages: Packages) -> Iterator[Tuple[Text, Text]]:
    torch, mmengine, mmcv, numpy = (_numbers(packages.version(name)) for name in ("torch", "mmengine", "mmcv", "numpy"))
    if torch and mmengine and torch >= (2, 6) and mmengine <= (0, 10, 7):
        yield (
            say(
                "mmengine {mmengine} cannot resume from its own checkpoints with torch {torch}: torch.load refuses their classes (weights_only).",
                mmengine=packages.version("mmengine"),
                torch=packages.version("torch"),
            ),
            say("If a job resumes, start it with DDP_PROBE=1 DDP_PROBE_FIX=weights-only."),
        )
    if torch and numpy and torch < (2, 3) and numpy >= (2,):
        yield (
            say(
                "torch {torch} was compiled for numpy 1, and numpy {numpy} is installed: tensor.numpy() and DataLoader workers fail.",
                torch=packages.version("torch"),
                numpy=packages.version("numpy"),
            ),
            say('Install an older numpy: python -m pip install "numpy<2".'),
        )
    if mmcv and mmcv >= (2,) and not mmengine:
        yield (
            say("mmcv {mmcv} needs mmengine, which is not installed.", mmcv=packages.version("mmcv")),
            quoted("python -m pip install mmengine"),
        )
    if packages.version("mmcv-full") and mmengine:
        yield (
            say(
                "mmcv-full {mmcv} is of mmcv 1, which has its own Runner, and mmengine {mmengine} is installed.",
                mmcv=packages.version("mmcv-full"),
                mmengine=packages.version("mmengine"),
            ),
            say("For mmengine, replace it by mmcv 2: python -m pip uninstall -y mmcv-full; python -m pip install 'mmcv>=2'."),
        )


def _numbers(version: str) -> Optional[Tuple[int, ...]]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3]) or None
