"""Looks for CUDA cards the way doctor does: device files, the vendor's tool, and torch's count in a child."""

import os
from typing import List, NamedTuple, Tuple

from ddp_probe.doctor import cards
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.host import Host, Request
from ddp_probe.shared.accelerators import Accelerator


class Seen(NamedTuple):
    """What the look found."""

    count: int  # Cards that torch counts.
    looked_at: str  # What was looked at and what it showed, as part of a sentence.


def look() -> Seen:
    """Look once; torch is imported in a child."""
    host = Host(Request(device="cuda"))
    known = cards.accelerator(host)
    assert known is not None, "accelerators.py has a record for cuda"
    answer = cards.torch_facts(host)
    return Seen(cards.count(host), "%s, and %s" % (", ".join(_of_host(host, known)), _of_torch(answer, cards.count(host))))


def _of_host(host: Host, known: Accelerator) -> List[str]:
    signs = cards.signs(host, known)
    patterns = " or ".join(os.path.join(host.dev, pattern) for pattern in known.device_files)
    files = "there are %d device files (%s)" % (len(signs.files), signs.files[0]) if signs.files else "no device file matches %s" % patterns
    tool = "%s is at %s" % (known.smi, signs.tool) if signs.tool else "%s is not on PATH" % known.smi
    return [files, tool, *("%s=%s" % (name, host.environ[name]) for name in signs.variables)]


def _of_torch(answer: ChildAnswer, count: int) -> str:
    if "built" not in answer.last:
        return "torch cannot be imported: its process %s" % answer.how()
    built = ", ".join("%s %s" % pair for pair in sorted(answer.last["built"].items())) or "the CPU alone"
    return "torch %s, built for %s, counts %d CUDA cards" % (answer.last["torch"], built, count)


def visible(count: int) -> Tuple[str, ...]:
    """Return the names of the cards as CUDA_VISIBLE_DEVICES has them: a scheduler may have set it."""
    given = tuple(name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip())
    return given[:count] if len(given) >= count else tuple(map(str, range(count)))
