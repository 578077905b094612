"""Writes what the probes see: one file per process, one JSON object a line, one write a line."""

from ddp_probe.traced.record.chain import add as add_processor
from ddp_probe.traced.record.chain import captured
from ddp_probe.traced.record.recorder import Recorder
from ddp_probe.traced.record.writer import Span

__all__ = ["Recorder", "Span", "add_processor", "captured"]
