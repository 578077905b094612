"""torchrun's agent may hold MASTER_PORT: then its store tells the ranks at which port rank 0 waits."""

import importlib
from datetime import timedelta
from typing import Any


def share_port(address: str, port: int, key: str, seconds: float, meet_at: int = 0) -> int:
    """Tell the others the port, or return what rank 0 has told."""
    distributed: Any = importlib.import_module("torch.distributed")
    store = distributed.TCPStore(address, port, None, False, timedelta(seconds=seconds), False)
    if meet_at:
        store.set(key, str(meet_at))
        return meet_at
    return int(store.get(key))
