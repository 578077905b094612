from typing import Any

from ddp_probe.api import Diagnosis as Diagnosis
from ddp_probe.api import Run as Run
from ddp_probe.api import diagnose as diagnose
from ddp_probe.api import read as read

__all__ = ["Diagnosis", "Run", "activate", "diagnose", "read", "restore"]
__version__: str

def activate() -> None: ...
def restore() -> Any: ...
