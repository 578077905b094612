"""The ledger's file, declared once for the process that writes it and for everybody who reads it: areas, fields, codes; standard library only.

Each field is as wide as its place is aligned, so that native and standard layouts are the same bytes. ledger_codec.py packs and reads by what is
declared here, and docs/ledger.md is printed from here.
"""

import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

VERSION = 3
READS = (1, 2, VERSION)
"""Versions 1 and 2 had no passes, version 1 no sums and no steps either; the bytes of their headers that count these are 0."""
MAGIC = b"DDPLEDGR"
BEAT_NS = 100_000_000
"""Nanoseconds of one step of the header's `beat`."""
BYTE_ORDER = 0x01020304
SUFFIX = ".ledger"
TEXT_SUFFIX = ".ledger.txt"  # The same as lines of JSON; docs/ledger.md shows them.
SUFFIXES = (SUFFIX, TEXT_SUFFIX)


class Field(NamedTuple):
    """One field: its code in the language of the module struct, its name, what it means."""

    code: str
    name: str
    doc: str
    since: int = 1
    """The first version in which it is as it is here."""
    once: str = ""
    """Its code in older versions; empty if they do not have it."""


class Code(NamedTuple):
    """One number of the file and what it stands for."""

    code: int
    name: str
    doc: str


HEADER: Tuple[Field, ...] = (
    Field("8s", "magic", "DDPLEDGR."),
    Field("I", "version", "Version of this layout."),
    Field("I", "byte_order", "0x01020304 in the byte order of the process that writes."),
    Field("I", "header_size", "Bytes before the text area."),
    Field("I", "text_size", "Bytes of the text area, which follows the header."),
    Field("I", "phase_size", "Bytes of one row of the phase table, which follows the text area."),
    Field("I", "phases", "Rows of the phase table."),
    Field("I", "record_size", "Bytes of one record; the ring of records is the end of the file."),
    Field("I", "records", "How many records the ring holds; a power of two."),
    Field("i", "rank", "The rank, or -1 before it is known."),
    Field("i", "world_size", "Number of ranks, or -1 before it is known."),
    Field("I", "pid", "The process."),
    Field(
        "I", "beat", "When its watcher has woken last, in tenths of a second after mono_ns; 0 if it has none. In the file it is older than in memory."
    ),
    Field("Q", "born", "When the process was started, in clock ticks since the host's start; with the pid it names one process."),
    Field("16s", "boot", "The kernel's random number for this start of the host; zeros if unknown."),
    Field("Q", "wall_ns", "Wall clock when the file was made, in nanoseconds since 1970."),
    Field("Q", "mono_ns", "Monotonic clock at the same moment; every other time of the file is on this clock."),
    Field("Q", "moved_ns", "Time of the latest change to a record or a phase, or of the end of a pause: a watcher reads this word alone."),
    Field("Q", "text_used", "Bytes of the text area that hold complete entries."),
    Field("Q", "text_lost", "How many texts found no room."),
    Field("Q", "closed_ns", "When the probe took itself out of the process; 0 while it is there, and if the process ends."),
    Field("I", "sum_size", "Bytes of one row of the sums, which follow the phase table."),
    Field("I", "sums", "Rows of the sums."),
    Field("I", "step_size", "Bytes of one row of the ring of steps, which follows the sums."),
    Field("I", "steps", "How many steps that ring holds; a power of two."),
    Field("I", "pass_size", "Bytes of one row of the ring of passes, which follows the steps."),
    Field("I", "passes", "How many passes that ring holds; a power of two."),
)

TEXT: Tuple[Field, ...] = (
    Field("I", "size", "Bytes of the text that follows; the next entry begins at the next multiple of 8."),
    Field("H", "kind", "What the text describes, see below."),
    Field("H", "id", "The number that records use for it; 0 stands for nothing."),
)

RECORD: Tuple[Field, ...] = (
    Field(
        "Q", "index", "How many records the process has begun, this one included. The same number is the last field: a record is whole if they agree."
    ),
    Field("Q", "entered_ns", "When the call began."),
    Field("Q", "waited_ns", "When wait() of asynchronous work was last called; 0 for never."),
    Field("Q", "left", "Time when the call ended, times 4, plus the state below. Time and state 0: asynchronous work was issued then."),
    Field(
        "Q",
        "seq",
        "Number of the call in its group; of point-to-point calls, among those with this peer and direction; of inner calls, in the outer one.",
    ),
    Field("Q", "elements", "Elements of the tensor, or of the first of several; 0 if there is no tensor."),
    Field("Q", "outer", "Index of the call of torch.distributed that made this one; 0 if the job made it."),
    Field("H", "group", "Text that describes the group; 0 if there was none.", since=3, once="I"),
    Field(
        "H",
        "way",
        "Text with the way to the job's line; 0 if it is not known. Versions 1 and 2 have four bytes for group and for site.",
        since=3,
    ),
    Field("H", "site", "Text with the job's line; 0 if none was found.", since=3, once="I"),
    Field(
        "H",
        "item",
        "The item at which a loop of the job around the call is. Of a text: 32768 plus the last 15 bits of the CRC-32 of its UTF-8; of a number from "
        "0 to 1023: this number plus 1; 0 for anything else, and if there is no such loop.",
        since=3,
    ),
    Field("i", "peer", "Global rank of the root or of the peer; -1 if the operation has none."),
    Field("I", "tensors", "How many tensors were given."),
    Field("H", "op", "The operation, see below."),
    Field("H", "dtype", "Text with the data type."),
    Field("H", "device", "Text with the device."),
    Field("H", "flags", "Sum of the flags below; times 256, the number of the signal in whose handler the call was made, 0 for none."),
    Field("Q", "index_again", "The same as index."),
)

PHASE: Tuple[Field, ...] = (
    Field("Q", "stamp", "How often the row has been written as a whole. The same number is the last field: a row is whole if they agree."),
    Field("Q", "entered_ns", "When the process entered the phase that is open, or was last open."),
    Field("Q", "left", "Time when it left, times 4, plus the state of a record; 0 while it is open."),
    Field("Q", "count", "How often the phase has been entered, this time included."),
    Field("I", "site", "Text with the job's line."),
    Field("I", "flags", "Sum of the flags of a record."),
    Field("Q", "stamp_again", "The same as stamp."),
)

PASS: Tuple[Field, ...] = (
    Field("Q", "index", "How many passes the process has begun, this one included. The same number is the last field."),
    Field("Q", "entered_ns", "When it entered the phase."),
    Field("Q", "left", "Time when it left, times 4, plus the state of a record; 0 while it is in it."),
    Field("Q", "count", "How often this phase has been entered, this time included."),
    Field("H", "phase", "The phase, see below."),
    Field("H", "way", "Text with the way to the job's line."),
    Field("H", "site", "Text with the job's line."),
    Field("H", "flags", "Sum of the flags of a record; times 256, the number of a model that ranks meet in."),
    Field("Q", "index_again", "The same as index."),
)

SUM: Tuple[Field, ...] = (
    Field("I", "op", "The operation, see below; 0 in the first row, which takes the calls that found no row."),
    Field("I", "group", "Text that describes the group."),
    Field("I", "site", "Text with the job's line."),
    Field("I", "reserved", "0."),
    Field("Q", "calls", "How many calls have returned. Calls inside other calls, and calls that raised, are not counted."),
    Field("Q", "inside_ns", "Time spent in all of them: in the call, or in wait() for its work."),
    Field("Q", "longest_ns", "The longest of these times."),
    Field(
        "Q",
        "entered_ns",
        "Sum of the times at which they began, modulo 2**64; of equally many calls, two ranks' sums can be compared.",
    ),
)

STEP: Tuple[Field, ...] = (
    Field("Q", "index", "How many backward passes have ended, this one included. The same number is the last field."),
    Field("Q", "began_ns", "When the backward pass before it ended."),
    Field("Q", "ended_ns", "When its own backward pass ended."),
    Field("Q", "dataloader_ns", "Nanoseconds in between in which the rank waited for its DataLoader."),
    Field("Q", "forward_ns", "In DistributedDataParallel.forward."),
    Field("Q", "backward_ns", "In the backward pass."),
    Field("Q", "optimizer_ns", "In an optimizer's step."),
    Field("Q", "saving_ns", "Saving and loading checkpoints."),
    Field("Q", "evaluating_ns", "In a validation or test loop."),
    Field("Q", "waiting_ns", "In collective calls outside the backward pass."),
    Field("Q", "index_again", "The same as index."),
)


class Area(NamedTuple):
    """A part of the file: its name, its place, and the fields of each of its entries."""

    name: str
    doc: str
    fields: Tuple[Field, ...]
    rows: str = ""
    """The field of the header that counts its rows; the size of one is there under the area's name. Empty for the header and the texts."""
    since: int = 1
    """The first version that has this area; in the header of an older one its size and its rows are 0."""

    @property
    def is_ring(self) -> bool:
        """Tell whether a row has the place of its number, modulo the number of rows."""
        return bool(self.rows) and self.fields[0].name == "index"


HEADER_AREA = Area("header", "At byte 0.", HEADER)
TEXT_AREA = Area("text", "Entries one after another, each followed by its bytes; each text is written once and has a number.", TEXT)
PHASE_AREA = Area("phase", "A table with one row for each kind of phase.", PHASE, "phases")
SUM_AREA = Area(
    "sum",
    "A table with one row for each operation, group and line of the job. It is written with the file, a few times a second.",
    SUM,
    "sums",
    since=2,
)
STEP_AREA = Area(
    "step",
    "A ring: step n lies in place n modulo the number of steps. A step is the time from the end of one backward pass to the end of the next.",
    STEP,
    "steps",
    since=2,
)
PASS_AREA = Area("pass", "A ring: pass n lies in place n modulo the number of passes. Each is one time in a phase.", PASS, "passes", since=3)
RECORD_AREA = Area("record", "A ring: record n lies in place n modulo the number of records.", RECORD, "records")
AREAS: Tuple[Area, ...] = (HEADER_AREA, TEXT_AREA, PHASE_AREA, SUM_AREA, STEP_AREA, PASS_AREA, RECORD_AREA)
"""In the order of the file."""

OPEN, RETURNED, RAISED, DROPPED = range(4)
STATES: Tuple[Code, ...] = (
    Code(OPEN, "open", "The call has not returned; with a time, asynchronous work that nobody has waited for to its end."),
    Code(
        RETURNED,
        "returned",
        "The call has returned; of asynchronous work: its wait() has, is_completed() has said so, or it went when others could wait for it.",
    ),
    Code(RAISED, "raised", "The call has raised an exception."),
    Code(DROPPED, "dropped", "The work was thrown away before anybody had waited for it."),
)

ASYNC, INNER, SIDE_THREAD, HELD_BACK, FAILED, SENDS_BUFFERS = 1, 2, 4, 8, 16, 32
SIGNAL_BITS = 8
"""The number of a signal begins at this bit of flags."""
MODEL_BITS, MODELS = 8, 255
"""The number of a model begins at this bit of the flags of a pass, and how many are counted."""
ITEM_IS_NAME, ITEM_NUMBERS = 1 << 15, 1 << 10
"""The bit of an item that is a text, and how many numbers can be one."""
FLAGS: Tuple[Code, ...] = (
    Code(ASYNC, "async", "The call returns work to wait for."),
    Code(INNER, "inner", "Another call of torch.distributed made this one."),
    Code(SIDE_THREAD, "side_thread", "Made in another thread than the main one."),
    Code(HELD_BACK, "held_back", "Of a forward pass: its gradients are not exchanged, as under no_sync()."),
    Code(FAILED, "failed", "Of a DataLoader that raised: an exception ended it, and not its last batch."),
    Code(SENDS_BUFFERS, "sends_buffers", "Of a forward pass: DDP sends the buffers of the model in it."),
)

SITE, GROUP, DTYPE, DEVICE, HOST, WAY = range(1, 7)
TEXTS: Tuple[Code, ...] = (
    Code(SITE, "site", "File, line, function, and arm if the line has several, with line feeds in between."),
    Code(GROUP, "group", "JSON: id (the same on each rank), size, ranks (5, 0-7, 0-62/2), nth, backends, name, description."),
    Code(DTYPE, "dtype", "A data type without the word torch."),
    Code(DEVICE, "device", "A device, such as cpu or cuda:3."),
    Code(HOST, "host", "The host's name."),
    Code(WAY, "way", "Numbers of the texts of the job's lines on the way to a call, the outermost first; the last one is the call's own line."),
)

COLLECTIVE, POINT_TO_POINT, ABOUT_GROUPS, BATCH = 1, 200, 300, 400
"""First code of each kind of operation."""

OPERATIONS: Tuple[Code, ...] = (
    Code(1, "all_reduce", "elements of tensor"),
    Code(2, "all_reduce_coalesced", "elements of the first of tensors"),
    Code(3, "broadcast", "elements of tensor, root"),
    Code(4, "reduce", "elements of tensor, root"),
    Code(5, "all_gather", "elements of tensor"),
    Code(6, "_all_gather_base", "elements of input_tensor"),
    Code(7, "all_gather_into_tensor", "elements of input_tensor"),
    Code(8, "all_gather_single", "elements of input_tensor"),
    Code(9, "all_gather_coalesced", "elements of the first of input_tensor_list"),
    Code(10, "gather", "elements of tensor, root"),
    Code(11, "scatter", "elements of tensor, root"),
    Code(12, "reduce_scatter", "elements of output"),
    Code(13, "_reduce_scatter_base", "elements of output"),
    Code(14, "reduce_scatter_tensor", "elements of output"),
    Code(15, "reduce_scatter_single", "elements of output"),
    Code(16, "all_to_all", "elements of the first of input_tensor_list, which may differ from rank to rank"),
    Code(17, "all_to_all_single", "elements of input, which may differ from rank to rank"),
    Code(18, "barrier", "nothing"),
    Code(19, "monitored_barrier", "nothing"),
    Code(20, "broadcast_object_list", "root"),
    Code(21, "all_gather_object", "nothing"),
    Code(22, "gather_object", "root"),
    Code(23, "scatter_object_list", "root"),
    Code(24, "broadcast_multigpu", "elements of the first of tensor_list, root"),
    Code(25, "all_reduce_multigpu", "elements of the first of tensor_list"),
    Code(26, "reduce_multigpu", "elements of the first of tensor_list, root"),
    Code(27, "all_gather_multigpu", "elements of the first of input_tensor_list"),
    Code(28, "reduce_scatter_multigpu", "elements of the first of output_tensor_list"),
    Code(29, "gather_single", "elements of tensor, root"),
    Code(30, "gather_into_tensor", "elements of tensor, root"),
    Code(200, "send", "elements of tensor, peer"),
    Code(201, "recv", "elements of tensor, peer"),
    Code(202, "isend", "elements of tensor, peer"),
    Code(203, "irecv", "elements of tensor, peer"),
    Code(204, "send_object_list", "peer"),
    Code(205, "recv_object_list", "peer"),
    Code(300, "init_process_group", "nothing"),
    Code(301, "new_group", "nothing"),
    Code(302, "split_group", "nothing"),
    Code(303, "shrink_group", "nothing"),
    Code(304, "destroy_process_group", "nothing"),
    Code(400, "batch_isend_irecv", "nothing; each call of the batch has a record of its own"),
)
"""Every operation that leaves a record, and what is recorded of its arguments; a code never changes."""

COLLECTIVES = frozenset(code.name for code in OPERATIONS if code.code < POINT_TO_POINT)
"""The operations that all ranks of a group make."""

ROOTED = frozenset(code.name for code in OPERATIONS if "root" in code.doc)
"""Those of them in which one rank sends to all or takes from all, so that some ranks return at once."""

PAIRED = frozenset(code.name for code in OPERATIONS if POINT_TO_POINT <= code.code < ABOUT_GROUPS)
"""The operations of two ranks."""

SENDS = frozenset(name for name in PAIRED if "send" in name)
"""The half of them that sends."""

PHASES: Tuple[Code, ...] = (
    Code(1, "dataloader", "Waiting for the next batch of a DataLoader; raised without failed is its end."),
    Code(2, "backward", "torch.autograd.backward: the backward pass, with what DDP reduces in it."),
    Code(3, "forward", "DistributedDataParallel.forward: the forward pass, before it the buffers of rank 0."),
    Code(4, "train", "A training loop of mmengine."),
    Code(5, "validate", "A validation loop of mmengine."),
    Code(6, "test", "A test loop of mmengine."),
    Code(7, "checkpoint", "mmengine saves a checkpoint."),
    Code(8, "save", "torch.save."),
    Code(9, "load", "torch.load."),
    Code(10, "optimizer", "The step of an optimizer of torch."),
)
"""Every phase; its row in the table is its code less one. A code never changes."""

PHASE_NAMES = frozenset(code.name for code in PHASES)

RECORDS = 2048
PHASE_ROWS = 32
SUMS = 256
STEPS = 256
PASSES = 1024
TEXT_BYTES = 1 << 16
HEADER_BYTES = 256
_MOST_RANKS = 1 << 20


def ranks_of(text: str) -> List[int]:
    """Return the ranks of 0-2,5 or 0-62/2."""
    found: List[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?:/(\d{1,7}))?)?", part.strip())
        if match is None:
            raise ValueError("%r is not a list of ranks." % text)
        first = int(match.group(1))
        those = range(first, int(match.group(2) or first) + 1, max(int(match.group(3) or 1), 1))
        if len(found) + len(those) > _MOST_RANKS:
            raise ValueError("%r names more ranks than a job can have." % text[:100])
        found.extend(those)
    return found


def names(listed: Sequence[Code]) -> Dict[int, str]:
    """Return what each code stands for."""
    return {code.code: code.name for code in listed}


def codes(listed: Sequence[Code]) -> Dict[str, int]:
    """Return the code of each name."""
    return {code.name: code.code for code in listed}
