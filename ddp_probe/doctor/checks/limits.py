"""The limits of this user are high enough for a launch."""

import resource
from typing import Iterator, Tuple

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted, size

CHECK = Check(
    id="DOC302",
    slug="limits",
    title="The user's limits allow the files, processes and memory that ranks and DataLoader workers need.",
    looks_at="The soft limits of this process, which a launch inherits: open files, processes, locked memory, address space.",
    remedy="Raise them in the shell that starts the job: ulimit -n 65536",
)
# limit, the option of ulimit, the least number, what needs it
_LIMITS: Tuple[Tuple[str, str, int, Text], ...] = (
    ("RLIMIT_NOFILE", "n", 1024, say("open files: each pair of ranks and each DataLoader worker takes some")),
    ("RLIMIT_NPROC", "u", 1024, say("processes and threads: each rank starts dozens")),
)


def check(_: Host) -> Answer:
    """Compare each limit."""
    low = list(_low())
    if not low:
        limits = [quoted("ulimit -%s %s" % (option, _text(_soft(name)))) for name, option, _, _ in _LIMITS]
        return CHECK.ok(say("{limits}{space}", limits=listed(limits), space=_address_space()))
    saw, commands = [], []
    for option, soft, least, why in low:
        saw.append(say("ulimit -{option} is {limit} ({why}).", option=option, limit=soft, why=why))
        commands.append("ulimit -%s %d" % (option, least))
    remedy = say("In the shell that starts the job: {commands}", commands=quoted("; ".join(commands)))
    return CHECK.fail(joined(saw), remedy)


def _low() -> Iterator[Tuple[str, int, int, Text]]:
    for name, option, least, why in _LIMITS:
        soft = _soft(name)
        if 0 <= soft < least:
            yield option, soft, least, why


def _soft(name: str) -> int:
    """Return a soft limit; -1 if there is none."""
    return resource.getrlimit(getattr(resource, name))[0]


def _text(soft: int) -> str:
    return "unlimited" if soft < 0 else str(soft)


def _address_space() -> str:
    soft = _soft("RLIMIT_AS")
    if soft < 0:
        return ""
    return say("; the address space is limited to {size}", size=size(soft))
