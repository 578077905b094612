"""Reads the stacks that Python's faulthandler writes as text: the last complete dump of a file.

The text names neither the thread nor which one is the main thread. faulthandler writes the main thread last, as it was created first.
"""

import re
from typing import List

from ddp_probe.shared.masking.secrets import mask
from ddp_probe.shared.schema import Site, ThreadStack

_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-fA-F]+)(?: \[([^\]\n]*)\])? \(most recent call first\):\s*$")
_FRAME = re.compile(r'^  File "([^"\n]*)", line (\d{1,9}|\?\?\?) in (.{1,500})$')
_BEGIN = re.compile(r"^(?:Timeout \(|Fatal Python error: )")
_NO_ROOM = 1 << 22


def threads(text: str) -> List[ThreadStack]:
    """Return the threads of the last dump, the main one first."""
    dumps: List[List[ThreadStack]] = [[]]
    for line in text[-_NO_ROOM:].splitlines():
        if _BEGIN.match(line):
            dumps.append([])
        _take(line, dumps[-1])
    found = next((dump for dump in reversed(dumps) if any(thread.frames for thread in dump)), [])
    for thread in found:
        thread.frames.reverse()
    if found:
        found[-1].main = True
    return found[::-1]


def _take(line: str, dump: List[ThreadStack]) -> None:
    begun = _THREAD.match(line)
    if begun:
        dump.append(ThreadStack(name=mask(begun[2] or begun[1])))
        return
    frame = _FRAME.match(line)
    if frame and dump:
        dump[-1].frames.append(Site(file=mask(frame[1]), line=int(frame[2]) if frame[2].isdigit() else 0, function=mask(frame[3])))
