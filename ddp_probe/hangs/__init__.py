"""Notices a hang while it lasts: a thread in each rank that reads the rank's own ledger, and a timer of the C library's for when it cannot run."""

from ddp_probe.hangs.watcher import Watcher

__all__ = ["Watcher"]
