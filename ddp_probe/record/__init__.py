"""Writes what the probes see: one file per process, one JSON object a line, one write a line."""

from .recorder import Recorder
from .span import Span

__all__ = ["Recorder", "Span"]
