"""The interpreter's own threads and locks, taken before the job runs: those of gevent and eventlet stand still while the job does."""

from _thread import RLock, allocate_lock, get_ident, start_new_thread

__all__ = ["FIRST", "RLock", "allocate_lock", "get_ident", "start_new_thread"]

FIRST = get_ident()
"""The thread that this was imported in: the main one, since the activator runs in it."""
