"""From files to one Run: parse, tolerate, fold. Nothing here raises over what a file holds, and nothing a file says is executed."""

from ddp_probe.read.load import load
from ddp_probe.read.model import Call, Death, Failed, Place, Process, Run

__all__ = ["Call", "Death", "Failed", "Place", "Process", "Run", "load"]
