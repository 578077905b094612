"""At exit, one line per target: patched, skipped because, never imported, imported before the probe, overwritten by whom."""

from typing import TYPE_CHECKING, List

from ddp_probe.shared import schema
from ddp_probe.traced.patching import overwritten_by

if TYPE_CHECKING:
    from ddp_probe.activation.targets import TargetRow
    from ddp_probe.traced.probes._probe_session import ProbeSession


def events(session: "ProbeSession") -> List[schema.Coverage]:
    """Return what became of each target; optional ones that never appeared are left out."""
    found = [_event(session, row) for row in session.rows]
    return [event for event, row in zip(found, session.rows) if not (row.optional and event.state == "never imported")]


def _event(session: "ProbeSession", row: "TargetRow") -> schema.Coverage:
    event = schema.Coverage(probe=row.probe, target=str(row))
    patch = session.patches.get(str(row))
    if patch is None:
        event.state = "never imported"
        return event
    event.calls = patch.calls
    event.state, event.because = patch.state, patch.why
    if patch.state != "patched":
        return event
    over = overwritten_by(patch)
    if over and "ddp_probe." in over:
        event.because = "It is the same function as another target, and is watched there."
    elif over:
        event.state, event.because = "overwritten", over
    elif session.was_late(row):
        event.state, event.because = "patched late", "The module had been imported before the probe; aliases replaced: %d." % len(patch.aliases)
        kept = session.missed.get(str(row))
        if kept:
            event.because += " Not reached: %s." % "; ".join(kept[:5])
    return event
