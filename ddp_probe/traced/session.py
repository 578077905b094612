"""The session: what is armed in this process, as every part of it sees it. ddp_probe.traced.armed implements it and knows the parts."""

from typing import Any, Callable, Dict, List, Optional, Protocol

from ddp_probe.activation.targets import TargetRow
from ddp_probe.activation.this_process import ThisProcess
from ddp_probe.shared import schema
from ddp_probe.traced.patching import Patch, PatchRegistry
from ddp_probe.traced.patching.call import Switch
from ddp_probe.traced.record import Recorder


class Session(Protocol):
    """The process, its recorder, what is patched, and the parts that watch: probes, remedies, ledger, watchers and the ending are handed it."""

    process: ThisProcess
    recorder: Recorder
    registry: PatchRegistry
    switch: Switch
    rows: List[TargetRow]
    patches: Dict[str, Patch]
    missed: Dict[str, List[str]]
    group_called: Callable[[Dict[str, Any]], None]
    collectives: Any
    """The ledger; no type here, because the parts are written against this file."""
    launch: Any
    """The watcher of a launcher."""
    states: Any
    """What writes device.state."""

    def was_late(self, row: TargetRow) -> bool:
        """Tell whether the target's module had been imported before the probe was there."""

    def loaded(self, name: str) -> Any:
        """Return the probe of that name, if it has been loaded."""

    def last(self, name: str) -> str:
        """Return, in words, the last call that the probe of that name remembers."""

    def rank_known(self, rank: Optional[int], world_size: Optional[int]) -> None:
        """Take in who this process is, as a process group says."""

    def act_as_launcher(self, watches: bool = True) -> None:
        """Take the part of a launcher: the program starts ranks itself; it watches them, unless they are about to end."""

    def speak_for_ranks(self) -> None:
        """Write what the program fails with, if its children have become ranks."""

    def warn(self, problem: str, event: schema.Event) -> None:
        """Say one line on stderr, and record it."""
