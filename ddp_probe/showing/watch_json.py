"""Writes a look at a running job as one JSON object, whose fields `watch --help` describes."""

import json
from typing import Any, Dict, Optional

import msgspec

from ddp_probe.shared.schema import CardsState
from ddp_probe.showing.watch.position import Position
from ddp_probe.showing.watch.watch_look import Look


def as_json(look: Look, run: str, cards: Optional[CardsState] = None) -> str:
    """Return the object."""
    return json.dumps(
        {
            "run": run,
            "time": look.when,
            "over": look.over,
            "ranks": [_rank_object(position, look) for position in look.ranks],
            "absent": look.absent,
            "problems": look.problems,
            **({} if cards is None else {"cards": msgspec.to_builtins(cards)}),
        }
    )


def _rank_object(position: Position, look: Look) -> Dict[str, Any]:
    site, group, waited = position.site, position.group, look.waited.get(position.rank)
    return {
        "rank": position.rank,
        "host": position.host,
        "pid": position.pid,
        "state": position.state,
        "phase": position.phase or None,
        "step": position.step,
        "call": position.op or None,
        "number": position.number,
        "in_call": position.waits,
        "peer": position.peer if position.peer >= 0 else None,
        "group": None if group is None else {"id": group.id, "size": group.size, "ranks": group.ranks},
        "seconds": round(position.seconds, 3),
        "site": None if site is None else {"file": site.file, "line": site.line, "function": site.function},
        "steps_per_second": _rounded(look.speed.get(position.rank)),
        "memory": look.memory.get(position.rank),
        "waited": _rounded(waited.share) if waited is not None else None,
        "waited_of": round(waited.seconds, 3) if waited is not None else None,
        "stands_out": look.outliers.get(position.rank),
    }


def _rounded(speed: Optional[float]) -> Optional[float]:
    return None if speed is None else round(speed, 4)
