"""Notices a hang while it lasts: a thread in each rank that reads its own ledger, a timer of the C library's, and a thread in the launcher."""

from ddp_probe.traced.hangs._held import is_held
from ddp_probe.traced.hangs._standing import phase_and_step
from ddp_probe.traced.hangs.launch import LaunchWatcher
from ddp_probe.traced.hangs.watcher import StateNotes, Watcher

__all__ = ["LaunchWatcher", "StateNotes", "Watcher", "is_held", "phase_and_step"]
