"""What each rank holds on its card, from the last device.state of its log: the end of a log is read again only if the log has grown."""

import os
from typing import Dict, Optional, Tuple

import msgspec

from ddp_probe.shared import schema

_TAIL = 1 << 16
_SIGN = b'"device.state"'
_decode = msgspec.json.Decoder(schema.DeviceState).decode


class HeldMemory:
    """Remembers of each log how long it was, and what it said."""

    def __init__(self) -> None:
        self._known: Dict[str, Tuple[int, Optional[int]]] = {}

    def of(self, log: str) -> Optional[int]:
        """Return the bytes that tensors hold on the card with the most; None if no line tells."""
        before, held = self._known.get(log, (-1, None))
        try:
            size = os.stat(log).st_size
            if size != before:
                with open(log, "rb") as stream:
                    stream.seek(max(0, size - _TAIL))
                    held = _last(stream.read(_TAIL), held)
                self._known[log] = (size, held)
        except OSError:
            return held
        return held


def _last(data: bytes, held: Optional[int]) -> Optional[int]:
    for line in reversed(data.split(b"\n")):
        if _SIGN in line:
            try:
                return max((one.allocated or 0 for one in _decode(line).devices), default=held)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # A line with a part missing, or another event that quotes this one.
                continue
    return held
