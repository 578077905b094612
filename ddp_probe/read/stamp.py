"""The time of a line."""

from datetime import datetime, timezone
from typing import Optional


def seconds(stamp: str) -> Optional[float]:
    """Return an RFC 3339 time as seconds since 1970."""
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            return datetime.strptime(stamp, form).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            continue
    return None
