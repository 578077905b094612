"""What the hosts and rank 0 say to each other."""

import sys
from typing import List, Optional, Union

import msgspec

if sys.version_info >= (3, 9):
    from typing import Annotated
else:  # typing.Annotated is new in Python 3.9
    from typing_extensions import Annotated

VERSION = 1
MOST_FILES = 100_000  # Files of one host.

Short = Annotated[str, msgspec.Meta(max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=4000)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")]
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]


class RunOnHost(msgspec.Struct):
    """A run as a host has it: its name, and what tells whether a folder with another name is of the same launch."""

    name: Short
    ranks: Annotated[List[Number], msgspec.Meta(max_length=4096)]
    keys: Annotated[List[Annotated[List[Text], msgspec.Meta(max_length=8)]], msgspec.Meta(max_length=64)]
    world: Number
    start: float
    end: Optional[float] = None
    launch: Number = 0  # Which launch of the folder was named, from 1; 0 if none was.


class Hello(msgspec.Struct):
    """The first message of a rank."""

    gather: int  # Version of these messages.
    rank: Number
    world: Number
    run: Short
    token: Short
    host: Short
    leads: bool  # Whether it brings the files of its host; another rank of the host only waits for the exit code.
    found: Optional[RunOnHost] = None
    why: Text = ""  # Why it has found none.


class Wanted(msgspec.Struct):
    """What rank 0 wants of a host."""

    refused: Text = ""
    run: Optional[RunOnHost] = None
    logs: bool = False


class Holds(msgspec.Struct, tag="holds"):
    """The names of the logs of the wanted run that a host has."""

    logs: Annotated[List[Short], msgspec.Meta(max_length=MOST_FILES)]


class Nothing(msgspec.Struct, tag="nothing"):
    """A host has no file of the wanted run, or cannot fold what it has."""

    why: Text


class Leave(msgspec.Struct):
    """Which of these logs another host has brought already."""

    out: Annotated[List[Short], msgspec.Meta(max_length=MOST_FILES)]


class Folding(msgspec.Struct, tag="folding"):
    """A host folds: how many bytes of how many it has read."""

    read: Size
    everything: Size


class Offer(msgspec.Struct, tag="offer"):
    """A host is about to send a file: its fold, with an empty name, or one of its run."""

    name: Short
    size: Size


class Have(msgspec.Struct):
    """What rank 0 has of this file; it wants none of it if there is a reason."""

    size: Size = 0
    sha256: Sha256 = ""
    not_wanted: Text = ""


class Begin(msgspec.Struct):
    """From which byte on the file follows, in pieces with their length before them; the last one is empty."""

    at: Size


class Sent(msgspec.Struct):
    """The digest of the file as it was read on its host, from its first byte on."""

    sha256: Sha256


class Finished(msgspec.Struct, tag="end"):
    """A host has sent everything."""


class ExitCode(msgspec.Struct):
    """The exit code of the report, for all ranks."""

    code: Annotated[int, msgspec.Meta(ge=0, le=255)]


FromHost = Union[Holds, Nothing, Folding, Offer, Finished]
