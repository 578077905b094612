"""Notices a hang while it lasts: a thread in each rank that reads its own ledger, and a thread in the launcher."""

from ddp_probe.traced.hangs.launch import LaunchWatcher
from ddp_probe.traced.hangs.others import is_held
from ddp_probe.traced.hangs.place_in_ledger import phase_and_step
from ddp_probe.traced.hangs.watcher import Watcher

__all__ = ["LaunchWatcher", "Watcher", "is_held", "phase_and_step"]
