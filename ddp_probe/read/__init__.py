"""Turns log files into one Run: parse, tolerate, fold. No file content makes it raise, and no file content is executed."""

from ddp_probe.read.load import load
from ddp_probe.read.logged_call import LoggedCall, LogLine
from ddp_probe.read.model import Death, Failed, LoggedProcess, Run

__all__ = ["Death", "Failed", "LogLine", "LoggedCall", "LoggedProcess", "Run", "load"]
