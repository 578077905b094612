"""torchrun's agent may hold MASTER_PORT: then its store tells the ranks at which port rank 0 waits, and the token of the meeting."""

import importlib
from datetime import timedelta
from typing import Any, Tuple


def share_port(address: str, port: int, key: str, seconds: float, meet_at: int = 0, token: str = "") -> Tuple[int, str]:
    """Tell the others the port and the token, or return what rank 0 has told."""
    distributed: Any = importlib.import_module("torch.distributed")
    store = distributed.TCPStore(address, port, None, False, timedelta(seconds=seconds), False)
    if meet_at:
        store.set(key, "%d %s" % (meet_at, token))
        return meet_at, token
    told, _, token = store.get(key).decode().partition(" ")
    return int(told), token
