"""The verdict on one path, its faults, and what the file holds. `checkpoint --json` prints these objects."""

from typing import Dict, List, Optional, Tuple

import msgspec

WHOLE, BROKEN, UNKNOWN = "whole", "broken", "unknown"
_FAULTS = 100  # Faults of the parts of one checkpoint that are kept.


class Damage(msgspec.Struct, omit_defaults=True):
    """One thing that is wrong with a file."""

    text: str
    record: str = ""  # The record of an archive, or the file of a folder.
    offset: Optional[int] = None  # In the file.
    unnoticed: bool = False  # torch.load does not look for it, and may return wrong values.


class Tensor(msgspec.Struct, omit_defaults=True):
    """One tensor, and the storage that it is a view of."""

    name: str
    shape: Tuple[int, ...]
    dtype: str
    device: str
    storage: str = ""


class OpenWriter(msgspec.Struct):
    """A process of this host that has the file open for writing."""

    pid: int
    command: str


class WeightsOnlyAnswer(msgspec.Struct):
    """Whether torch.load(weights_only=True) takes the file, as torch 2.13 decides by default."""

    accepted: bool
    refused: List[str] = []
    because: str = ""


class Comparison(msgspec.Struct):
    """The result of --against: names that the checkpoint lacks, has too many, or has in another shape."""

    other: str
    is_model: bool  # A list of a model's parameters, which has no buffers.
    fits: bool = False
    same: int = 0
    missing: List[str] = []
    unexpected: List[str] = []
    shapes: List[Tuple[str, Tuple[int, ...], Tuple[int, ...]]] = []  # Name, shape here, shape there.
    explains: int = 0
    renaming: str = ""  # Python source for the state under the other's names.
    load: str = ""  # Python source for the state.
    buffers: int = 0  # Unexpected names that may be buffers of the model.


class Judged(msgspec.Struct):
    """Everything that is reported about one path."""

    path: str
    verdict: str = UNKNOWN
    kind: str = ""
    because: str = ""
    what_to_do: str = ""
    faults: List[Damage] = []
    remarks: List[str] = []
    deep: bool = False
    size: Optional[int] = None
    modified: Optional[float] = None
    age: Optional[float] = None
    writers: List[OpenWriter] = []
    files: List[str] = []
    tensors: Optional[int] = None
    elements: Optional[int] = None
    bytes: Optional[int] = None
    dtypes: Dict[str, int] = {}
    devices: Dict[str, int] = {}
    keys: List[str] = []
    classes: List[str] = []
    weights_only: Optional[WeightsOnlyAnswer] = None
    prefixes: Dict[str, int] = {}
    versions: Dict[str, str] = {}
    progress: Dict[str, int] = {}
    names: List[Tensor] = []
    states: Dict[str, int] = {}
    against: Optional[Comparison] = None

    def broken(self, fault: Damage) -> None:
        """Add a fault, which decides the verdict."""
        self.verdict = BROKEN
        self.faults.append(fault)

    def broken_in_part(self, fault: Damage) -> None:
        """Add a fault of one of many parts; the first ones are kept."""
        self.verdict = BROKEN
        if len(self.faults) < _FAULTS:
            self.faults.append(fault)


class BrokenError(Exception):
    """The file is broken here; nothing after it can be read."""

    def __init__(self, text: str, record: str = "", offset: Optional[int] = None, *, unnoticed: bool = False) -> None:
        super().__init__(text)
        self.fault = Damage(text, record, offset, unnoticed)


class UnknownError(Exception):
    """The file cannot be judged, and why."""

    def __init__(self, because: str, what_to_do: str = "") -> None:
        super().__init__(because)
        self.because = because
        self.what_to_do = what_to_do
