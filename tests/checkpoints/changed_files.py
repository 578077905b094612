"""Files of the corpus with bytes changed, put in, or cut off, as hypothesis draws them: it shrinks the change that breaks a test."""

from typing import Callable, List, Optional, Sequence, Tuple

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as start
from hypothesis import strategies as st
from schedule import seed

Edit = Tuple[float, bytes, bool]  # Where in the file, what, and whether it is written over what is there.
_MARKS = (b"PK\x05\x06", b"PK\x01\x02", b"PK\x06\x06", b"PK\x03\x04", b"\xff" * 8, bytes(8))


def _changed(whole: bytes, edits: Sequence[Edit], kept: Optional[float]) -> bytes:
    data = bytearray(whole)
    for share, piece, over in edits:
        at = int(share * len(data))
        data[at : at + (len(piece) if over else 0)] = piece
    return bytes(data if kept is None else data[: int(kept * len(data))])


def for_changed_files(check: Callable[[bytes], None], files: List[bytes], count: int) -> None:
    """Call a check with so many changed files."""
    share = st.floats(0, 1)
    edits = st.lists(st.tuples(share, st.sampled_from(_MARKS) | st.binary(min_size=1, max_size=5), st.booleans()), min_size=1, max_size=6)
    draw = given(st.sampled_from(files), edits, st.none() | share)
    rules = settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    rules(start(seed())(draw(lambda whole, edits, kept: check(_changed(whole, edits, kept)))))()
