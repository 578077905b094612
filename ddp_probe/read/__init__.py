"""From files to one Run: parse, tolerate, fold. Nothing here raises over what a file holds, and nothing a file says is executed."""

from ddp_probe.read.load import load
from ddp_probe.read.model import Death, Failed, LoggedCall, LoggedProcess, LogLine, Run

__all__ = ["Death", "Failed", "LogLine", "LoggedCall", "LoggedProcess", "Run", "load"]
