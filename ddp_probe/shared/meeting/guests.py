"""Who belongs to a meeting: each rank of the launch once; others are refused and noted."""

import os
from typing import Any, Dict, List


class Guests:
    """The ranks that have come; whoever asks holds a lock."""

    def __init__(self, world: int, run: str) -> None:
        self._world, self._run = world, run
        self.token = os.urandom(8).hex()  # By which the meeting knows its own rank 0: another host's may connect first.
        self.came: Dict[int, Dict[str, Any]] = {}
        self.strangers: List[Dict[str, Any]] = []
        self.closed = False  # Whoever comes now is too late.

    def take(self, said: Dict[str, Any]) -> bool:
        """Take a rank in, unless it came twice, comes too late, or belongs to another launch."""
        rank, fits = said["rank"], said["world"] == self._world and said["run"] == self._run
        fits = fits and (rank != 0 or said["token"] == self.token)
        if fits and rank not in self.came and 0 <= rank < self._world and not self.closed:
            self.came[rank] = said
            return True
        self.strangers.append({name: said[name] for name in ("rank", "world", "run", "host")})
        return False


def refusal(said: Dict[str, Any]) -> Dict[str, Any]:
    """Return the message to a rank that was not taken in."""
    return {"refused": "rank %s of %s on %s does not belong to this meeting" % (said["rank"], said["world"], said["host"])}
