"""Changes to a job's own calls, one file each, made only if DDP_PROBE_FIX asks for them. Each one is recorded, and restore() undoes it."""

from ddp_probe.traced.remedies._remedy import Remedy, RemedySession

__all__ = ["Remedy", "RemedySession"]
