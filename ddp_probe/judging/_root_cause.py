"""The rank that a plain log names as the first to fail, if the lines of the failure do not show which rank printed them."""

import re
from typing import Iterable, List

_TABLE = re.compile(r"Root Cause \(first observed failure\):\s{1,40}\[\d{1,6}\]:\s{1,40}(?:[^\n]{0,200}\n\s{0,40}){1,3}?rank\s{0,20}: (\d{1,6}) ")
_SPAWNED = re.compile(r"-- Process (\d{1,6}) terminated with the following error:")
_LOCAL = re.compile(r"failed \(exitcode: -?\d{1,3}\) local_rank: (\d{1,6}) \(pid")
_NODES = re.compile(r"\b(?:nnodes|node_rank|group_rank|machine_rank)[= ](?![01]\b)\d|\bgroup_world_size=(?!1\b)\d|--nnodes[= ]\$")


def root_cause(texts: Iterable[str]) -> List[int]:
    """Return the rank of torchrun's table or of mp.spawn's message; a local rank counts too, if nothing shows other hosts."""
    known = list(texts)
    for pattern in (_TABLE, _SPAWNED):
        found = [match.group(1) for match in map(pattern.search, known) if match]
        if found:
            return [int(found[0])]
    local = [match.group(1) for match in map(_LOCAL.search, known) if match]
    return [int(local[0])] if local and not any(_NODES.search(text) for text in known) else []
