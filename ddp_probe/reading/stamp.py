"""The time of a line."""

from datetime import datetime, timezone
from typing import Any, Optional


def seconds(stamp: str) -> Optional[float]:
    """Return an RFC 3339 time as seconds since 1970."""
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            return datetime.strptime(stamp, form).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            continue
    return None


def moment(stamp: Any) -> Optional[float]:
    """Return a time as programs write it: ISO 8601, in local time if it names no zone, or seconds since 1970."""
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return float(stamp)
    if not isinstance(stamp, str):
        return None
    try:
        return seconds(stamp) or datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
