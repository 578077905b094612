"""What doctor says of this host without touching a card. Nothing else in this package knows doctor."""

import os
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Tuple

from ddp_probe.judging.doctor import cards, checks, packages
from ddp_probe.judging.doctor.examine import examine
from ddp_probe.judging.doctor.host import Host, Request
from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.showing import doctor_page

_SECONDS = 30.0
_WIDTH = 80
_DISTRIBUTIONS = ("mmengine", "mmcv", "mmcv-full", "accelerate", "transformers", "lightning", "deepspeed", "numpy")


@lru_cache(maxsize=1)
def _host() -> Host:
    """Return this host; what it was asked once is not asked again."""
    return Host(Request(seconds=_SECONDS))


def table() -> Tuple[str, List[Dict[str, Any]]]:
    """Return doctor's static table as text, and as `doctor --json` has it."""
    results = sorted(examine(_host(), checks.static()), key=lambda result: result.check.id)
    return "\n".join(line.text for line in doctor_page.lines(results, _WIDTH)) + "\n", [result.as_json() for result in results]


def _facts() -> Dict[str, Any]:
    return cards.torch_facts(_host()).last


def built() -> str:
    """Return what torch was built for, and the backends that it has."""
    facts = _facts()
    if not facts:
        return ""
    runtimes = ", ".join("%s %s" % item for item in facts.get("built", {}).items()) or "CPU alone"
    return "for %s; backends %s" % (runtimes, ", ".join(facts.get("backends", [])) or "unknown")


def rows() -> Iterator[Tuple[str, str]]:
    """Yield versions and accelerators of this host."""
    facts = _facts()
    yield "torch", str(facts.get("torch", "")) or "cannot be imported: its import %s" % cards.torch_facts(_host()).how()
    yield "torch built", built()
    if facts.get("module"):
        yield str(facts["module"]), str(facts.get("module_version", ""))
    for name in _DISTRIBUTIONS:
        if packages.of(_host()).version(name):
            yield name, packages.of(_host()).version(name)
    found = list(_accelerators(facts.get("cards", {})))
    yield from found or [("accelerator", "none shows itself")]


def _accelerators(counted: Dict[str, int]) -> Iterator[Tuple[str, str]]:
    for known in ACCELERATORS:
        seen = cards.signs(_host(), known)
        number = counted.get(known.torch_attribute, 0)
        if number or seen.files or seen.module or seen.variables:
            visible = ["%s=%s" % (name, _host().environ[name]) for name in seen.variables]
            cards_of = "torch counts %d card%s" % (number, "s"[: number != 1])
            yield (
                "accelerator",
                ", ".join([known.name + ": " + cards_of, "%d device files" % len(seen.files), *filter(None, [seen.module]), *visible]),
            )


def tools() -> str:
    """Return the vendors' tools that are on PATH."""
    return ", ".join(seen.tool for known in ACCELERATORS for seen in [cards.signs(_host(), known)] if seen.tool)


def variables() -> Iterator[Tuple[str, str]]:
    """Yield the variables that decide how a distributed job runs."""
    beginnings = ("MASTER_", "NCCL_", "GLOO_", "TORCH", "PYTORCH_", "OMP_", "DDP_PROBE", "ACCELERATE_", "CUDA_VISIBLE")
    for name in sorted(os.environ):
        if name.startswith(beginnings):
            yield name, os.environ[name]
