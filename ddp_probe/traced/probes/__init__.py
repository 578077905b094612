"""What watches the job: one file per patch target, and the session that arms them."""

from ddp_probe.traced.probes._probe import Begun, Probe
from ddp_probe.traced.probes._session import Session

__all__ = ["Begun", "Probe", "Session"]
