"""Asks the rules about a large run in two processes, each of which takes the next rule that nobody has asked.

The second process is a fork: what an answer has of the run itself, such as the failures that it explains, is sent by its address.
"""

import io
import pickle  # what is read is from a child of this process
from typing import Any, Callable, Dict, List, Sequence

from ddp_probe.reading import on_cores
from ddp_probe.reading.model import Failed, LoggedProcess, Run

_LEAST, _MOST = 1 << 12, 1 << 15  # Processes: fewer are asked about faster than a child is started, and more fill the memory twice.


def answers(modules: Sequence[Any], run: Run, ask: Callable[[Any], List[Any]], cores: int) -> List[Any]:
    """Return what the rules answer, in their order; on one core if `cores` is 1."""
    if (cores or on_cores.available()) < 2 or not _LEAST <= len(run.processes) <= _MOST:
        return [answer for module in modules for answer in ask(module)]
    post = _Post(run)
    asked = on_cores.each(len(modules), 1, lambda number: ask(modules[number]), lambda number: post.packed(ask(modules[number])), post.unpacked)
    return [answer for each in asked for answer in each]


class _Post:
    """Packs answers in the child and unpacks them in its parent."""

    def __init__(self, run: Run) -> None:
        deaths = [process.death for process in run.processes if process.death is not None]
        failures = [failure for one in (run, *run.earlier_generations) for failure in one.failures]
        self._shared: Dict[int, Any] = {id(one): one for one in (*run.deaths, *deaths, *failures)}

    def packed(self, found: List[Any]) -> bytes:
        shared, into = self._shared, io.BytesIO()

        class Pickler(pickle.Pickler):
            def persistent_id(self, one: Any) -> Any:
                if id(one) in shared:
                    return id(one)
                if isinstance(one, (Failed, LoggedProcess, Run)):
                    raise pickle.PicklingError  # It was made by the rule, which is therefore asked in the parent.
                return None

        Pickler(into, pickle.HIGHEST_PROTOCOL).dump(found)
        return into.getvalue()

    def unpacked(self, data: bytes) -> List[Any]:
        shared = self._shared

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, address: Any) -> Any:
                return shared[address]

        found: List[Any] = Unpickler(io.BytesIO(data)).load()
        return found
