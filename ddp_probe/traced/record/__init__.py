"""Writes what the probes see: one file per process, one JSON object a line, one write a line."""

from ._chain import captured
from ._site_processors import add as add_processor
from .recorder import Recorder
from .span import Span

__all__ = ["Recorder", "Span", "add_processor", "captured"]
