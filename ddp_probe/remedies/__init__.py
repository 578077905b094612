"""Changes to a job's own calls, one file each, made only where DDP_PROBE_FIX asks for them; each one recorded, each one undone by restore()."""

from ddp_probe.remedies._remedy import Remedy

__all__ = ["Remedy"]
