"""For the job's logs: adds the rank to each line, as a structlog processor or as a filter of logging.

    structlog.configure(processors=[ddp_probe.structlog.add_rank, ..., structlog.processors.JSONRenderer()])
    handler.addFilter(ddp_probe.structlog.RankFilter())

While the probe is off, both change nothing, and a filter's fields are empty. It is a separate file because the job imports it: it loads neither
the probe nor structlog. capture_logs is for the tests of people who write a probe.
"""

from __future__ import annotations

import logging
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ContextManager, Dict, List, MutableMapping

FIELDS = ("rank", "local_rank", "host", "run", "during", "step")
"""during is the phase that the rank is in (forward, backward, data and others), step the number of its backward passes."""


def add_rank(_: Any, __: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add what is known of this process; what the job has put under the same name stays."""
    for name, value in _known().items():
        event_dict.setdefault(name, value)
    return event_dict


class RankFilter(logging.Filter):
    """Gives each record of logging the same fields, for a format such as ``%(rank)s %(message)s``; it lets every record through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields to a record."""
        known = _known()
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, known.get(name, ""))
        return True


def capture_logs() -> ContextManager[List[Dict[str, Any]]]:
    """Collect what the probe would write while the block runs, as structlog's function of that name does for the job."""
    from ddp_probe.traced.record import captured

    return captured()


def _known() -> Dict[str, Any]:
    """Return the fields that have a value; none if the probe is off."""
    module: Any = sys.modules.get("ddp_probe.activation.lifecycle")
    session: Any = None if module is None else module.lifecycle.session
    if session is None or module.lifecycle.state not in (module.ARMED, module.PROMOTED):
        return {}
    who = session.process.rank_info
    found = {"rank": who.rank, "local_rank": who.local_rank, "host": socket.gethostname(), "run": session.process.run, **session.collectives.stands()}
    return {name: value for name, value in found.items() if value not in (None, "")}
