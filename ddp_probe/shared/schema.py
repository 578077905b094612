"""Every event and its fields, declared once. The writer, the reader, the docs page and the JSON Schema all come from here.

Standard library and msgspec only: this is the one module that the traced side and the reading side share.
A field that was not observed is omitted from its line. Readers keep fields and events that they do not know.
The file is longer than others because it is the table of everything that can be written. It holds no logic.
Annotations stay text until a decoder or a page asks for them: a rank only writes, and to evaluate them would
be two thirds of this import.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Tuple, Type, Union

import msgspec

if sys.version_info >= (3, 9):
    from typing import Annotated
else:  # typing.Annotated is new in Python 3.9
    from typing_extensions import Annotated

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are not what they should be, whatever they are."""

VERSION = 1

CardId = Union[int, str]
"""The number of a card; as text what names none."""


def _doc(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


# --- parts that several events share ---------------------------------------------------------------------------------


class Site(msgspec.Struct, omit_defaults=True, gc=False):
    """A line of source."""

    file: Annotated[str, _doc("As the interpreter names it; at most 500 characters.")] = ""
    line: Annotated[int, _doc("The line's number, from 1; 0 if it is not known.")] = 0
    function: Annotated[str, _doc("The function's qualified name, or its plain name before Python 3.11.")] = ""


class FrameValues(msgspec.Struct, omit_defaults=True, gc=False):
    """The plain values of the local names in one frame of the job."""

    site: Annotated[Optional[Site], _doc("The line of the frame.")] = None
    values: Annotated[
        Dict[str, str],
        _doc(
            "By name: numbers, flags, None and members of an enum as printed, `len 3` of a container, `shape [2, 3]` of a tensor or an array; "
            "also of attributes, as `self.best`. At most 20; secrets are masked."
        ),
    ] = {}


class Failure(msgspec.Struct, omit_defaults=True, gc=False):
    """An exception, described."""

    type: Annotated[str, _doc("Qualified name of the exception's class.")] = ""
    message: Annotated[str, _doc("At most 2 000 characters of its text; a long text keeps its last lines too. Secrets are masked.")] = ""
    raised_at: Annotated[Optional[Site], _doc("The frame that raised it.")] = None
    frames: Annotated[List[Site], _doc("The traceback, outermost first, without frames of the probe; at most 40.")] = []
    cause: Annotated[str, _doc("Class of the exception that caused this one (`raise … from`, or raised while handling it).")] = ""
    cause_message: Annotated[str, _doc("Like message, of the exception that `raise … from` names.")] = ""
    values: Annotated[
        List[FrameValues],
        _doc(
            "Plain values in the job's frames, outermost first, if the exception ended the process; at most 8 of them. Not with DDP_PROBE_VALUES=off."
        ),
    ] = []


class Leaf(msgspec.Struct, omit_defaults=True, gc=False):
    """One parameter or buffer, described."""

    name: Annotated[str, _doc("As named_parameters() or named_buffers() name it.")] = ""
    device: Annotated[str, _doc("The device it is on.")] = ""
    shape: Annotated[List[int], _doc("Its size in each dimension.")] = []
    dtype: Annotated[str, _doc("Its data type.")] = ""


class Tally(msgspec.Struct, omit_defaults=True, gc=False):
    """The number of tensors, elements and bytes that share one key (a device, a dtype)."""

    count: Annotated[int, _doc("Tensors.")] = 0
    elements: Annotated[int, _doc("Elements in them.")] = 0
    bytes: Annotated[int, _doc("Bytes in them.")] = 0


class Placement(msgspec.Struct, omit_defaults=True, gc=False):
    """The devices of a model's parameters and buffers, read in one pass. Nothing is copied or moved."""

    model: Annotated[str, _doc("Class of the module.")] = ""
    parameters: Annotated[int, _doc("Number of parameters; a shared one counts once.")] = 0
    elements: Annotated[int, _doc("Number of elements in them.")] = 0
    devices: Annotated[Dict[str, Tally], _doc("Parameters per device.")] = {}
    dtypes: Annotated[Dict[str, Tally], _doc("Parameters per dtype.")] = {}
    trainable: Annotated[int, _doc("Parameters with requires_grad.")] = 0
    shared: Annotated[int, _doc("Names that refer to a parameter already counted.")] = 0
    lazy: Annotated[int, _doc("Parameters not initialised yet; counted, not read.")] = 0
    meta: Annotated[int, _doc("Parameters on the meta device.")] = 0
    unreadable: Annotated[int, _doc("Parameters whose device could not be read.")] = 0
    first: Annotated[List[Leaf], _doc("The first five parameters.")] = []
    majority: Annotated[str, _doc("The device that most parameters are on.")] = ""
    off_majority: Annotated[List[Leaf], _doc("The first ten parameters on another device.")] = []
    buffers: Annotated[int, _doc("Number of buffers.")] = 0
    buffer_devices: Annotated[Dict[str, Tally], _doc("Buffers per device.")] = {}
    buffers_off_majority: Annotated[List[Leaf], _doc("The first ten buffers on another device than the parameters' majority.")] = []
    model_device: Annotated[str, _doc("The module's own `device` attribute, if it has one.")] = ""
    digest: Annotated[str, _doc("Digest of the ordered (name, shape, dtype, requires_grad) list, which is in models/<digest>.json.")] = ""
    truncated: Annotated[bool, _doc("The model has more parameters than one pass may read.")] = False


class Card(msgspec.Struct, omit_defaults=True, gc=False):
    """One kind of accelerator, as seen without initialising it."""

    name: Annotated[str, _doc("The accelerator's name, such as gcu or cuda.")] = ""
    device_type: Annotated[str, _doc("What torch calls its devices.")] = ""
    module: Annotated[str, _doc("Its Python module, if imported.")] = ""
    module_version: Annotated[str, _doc("The version of that module.")] = ""
    importable: Annotated[Optional[bool], _doc("Its module is installed, imported or not.")] = None
    initialised: Annotated[Optional[bool], _doc("The program has initialised it already.")] = None
    current: Annotated[Optional[int], _doc("The current card; read only if already initialised.")] = None
    count: Annotated[Optional[int], _doc("Number of cards: from the module if already initialised, else from device files.")] = None
    device_files: Annotated[List[str], _doc("Device files found under /dev; at most 16.")] = []
    visible: Annotated[Dict[str, str], _doc("Visible-device variables that are set.")] = {}
    shim: Annotated[str, _doc("The module that redirects torch.cuda to this accelerator.")] = ""


class CheckpointFile(msgspec.Struct, omit_defaults=True, gc=False):
    """A file on disk, inspected without unpickling it."""

    path: Annotated[str, _doc("As given, secrets masked.")] = ""
    exists: Annotated[Optional[bool], _doc("Whether there is a file.")] = None
    size: Annotated[Optional[int], _doc("Bytes.")] = None
    age: Annotated[Optional[float], _doc("Seconds since it was last modified.")] = None
    mtime: Annotated[Optional[float], _doc("Time of its last modification, as Unix time.")] = None
    inode: Annotated[Optional[int], _doc("The file's number on its disk: another one means another file.")] = None
    kind: Annotated[str, _doc("From its first bytes: zip, legacy, pickle, safetensors, git-lfs, html, json, text, empty, stream, unknown.")] = ""
    complete: Annotated[Optional[bool], _doc("The zip has its end-of-archive record; unset for other kinds.")] = None
    error: Annotated[str, _doc("Why it could not be inspected.")] = ""


class ThreadStack(msgspec.Struct, omit_defaults=True, gc=False):
    """The Python stack of one thread, without frames of the probe."""

    name: Annotated[str, _doc("The thread's name.")] = ""
    main: Annotated[bool, _doc("It is the main thread.")] = False
    frames: Annotated[List[Site], _doc("Outermost first; at most 64: of a longer stack the 24 outermost and the 40 innermost.")] = []


class DeviceMemory(msgspec.Struct, omit_defaults=True, gc=False):
    """What the allocator of one device has counted, on the host. The device and its driver are not asked."""

    device: Annotated[str, _doc("The device, such as cuda:0.")] = ""
    allocated: Annotated[Optional[int], _doc("Bytes that tensors hold now.")] = None
    allocated_peak: Annotated[Optional[int], _doc("The most bytes that tensors have held.")] = None
    reserved: Annotated[Optional[int], _doc("Bytes that the allocator has taken from the device.")] = None
    reserved_peak: Annotated[Optional[int], _doc("The most bytes that it has taken.")] = None
    retries: Annotated[Optional[int], _doc("How often it emptied its cache and asked again, because the device had no room.")] = None
    out_of_memory: Annotated[Optional[int], _doc("How often it raised an out-of-memory error.")] = None


class HostState(msgspec.Struct, omit_defaults=True, gc=False):
    """What the kernel knows of this process and of its control group, from /proc and /sys."""

    rss: Annotated[Optional[int], _doc("Bytes of memory that the process has in use.")] = None
    rss_peak: Annotated[Optional[int], _doc("The most that it has had in use.")] = None
    anonymous: Annotated[Optional[int], _doc("Bytes of rss that are the process's own, and no file's.")] = None
    memory: Annotated[Optional[int], _doc("Bytes that its control group has in use, the cache of files among them.")] = None
    memory_taken: Annotated[Optional[int], _doc("Bytes of those that the kernel cannot take back; read only if there is a limit.")] = None
    memory_limit: Annotated[Optional[int], _doc("The control group's limit; unset for none.")] = None
    oom_kills: Annotated[Optional[int], _doc("How many processes of the control group the kernel has killed for lack of memory.")] = None
    shm_free: Annotated[Optional[int], _doc("Bytes free in /dev/shm.")] = None
    shm_size: Annotated[Optional[int], _doc("Bytes that /dev/shm has.")] = None
    files: Annotated[Optional[int], _doc("Open file descriptors.")] = None
    threads: Annotated[Optional[int], _doc("Threads of the process.")] = None
    cpu_seconds: Annotated[Optional[float], _doc("CPU time that the process has used.")] = None
    load: Annotated[Optional[float], _doc("The host's load average over one minute.")] = None


class CardLoad(msgspec.Struct, omit_defaults=True, gc=False):
    """What the vendor's tool says of one card. Sums and peaks are since the launcher began to ask."""

    index: Annotated[int, _doc("The card's number, as the tool counts.")] = -1
    utilisation: Annotated[Optional[float], _doc("Percent of the time in which it has computed, of late.")] = None
    utilisation_mean: Annotated[Optional[float], _doc("The mean of that.")] = None
    memory: Annotated[Optional[int], _doc("Bytes in use on it, by whomever.")] = None
    memory_total: Annotated[Optional[int], _doc("Bytes that it has.")] = None
    temperature: Annotated[Optional[float], _doc("Degrees Celsius.")] = None
    temperature_peak: Annotated[Optional[float], _doc("The most of that.")] = None
    throttled: Annotated[List[str], _doc("Why its clock is lowered now: power_cap, hw_slowdown, sw_thermal, hw_thermal, power_brake.")] = []
    throttled_looks: Annotated[Dict[str, int], _doc("In how many looks each of them was there.")] = {}
    ecc: Annotated[Optional[int], _doc("ECC errors that could not be corrected, since the driver was loaded.")] = None
    ecc_before: Annotated[Optional[int], _doc("How many of those there were at the first look.")] = None
    health: Annotated[str, _doc("What the tool calls its state, if that is not OK.")] = ""
    processes: Annotated[Dict[str, Optional[int]], _doc("The processes that use it, by pid, with their bytes; at most 64.")] = {}


class OpenFile(msgspec.Struct, omit_defaults=True, gc=False):
    """A file that a process has open."""

    path: Annotated[str, _doc("As the kernel names it, secrets masked.")] = ""
    position: Annotated[Optional[int], _doc("The byte at which the next read or write begins.")] = None
    size: Annotated[Optional[int], _doc("Bytes.")] = None
    writes: Annotated[bool, _doc("It is open for writing.")] = False


class OpenSocket(msgspec.Struct, omit_defaults=True, gc=False):
    """A TCP connection of a process, or one that it has asked for."""

    peer: Annotated[str, _doc("Address and port of the other side.")] = ""
    port: Annotated[int, _doc("The port on this side.")] = 0
    unsent: Annotated[int, _doc("Bytes that the other side has not acknowledged.")] = 0
    unread: Annotated[int, _doc("Bytes that have arrived and that the process has not read.")] = 0
    asks: Annotated[bool, _doc("The process has asked for the connection, and the other side has not answered yet.")] = False


# --- the envelope and the events ---------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """What pages show of an event."""

    fields: Optional[Tuple[str, ...]] = None  # Those that `logs` shows in a terminal; None for all. A pipe gets all.
    span: str = ""  # The kind of its spans over time: init, device, wrap, load or save. Without it, none is drawn.
    given: Tuple[str, ...] = ()  # What is said beside a span: the first field, and the others with their names.
    during: str = ""  # The phase of a rank during a call, and after it failed.
    after: str = ""  # Its phase after the call returned; without it, the one that it was in before.


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="event", gc=False):
    """One line of a log: what happened, in which process, and when.

    envelope: The fields that every event has, such as `ts`, `rank` and `span`.

    phase: When an event was written: at the begin of a call, at its end, at its error, or at a point in time without a call.
    """

    phase: Annotated[str, _doc("begin, end, error or point.")] = ""
    ts: Annotated[str, _doc("RFC 3339, UTC.")] = ""
    mono_ns: Annotated[int, _doc("The monotonic clock of this host.")] = 0
    seq: Annotated[int, _doc("Line number in this process, from 0; a gap means a missing line.")] = -1
    rank: Annotated[Optional[int], _doc("The rank of this process; unset in a launcher.")] = None
    local_rank: Annotated[Optional[int], _doc("Its rank on this host.")] = None
    world_size: Annotated[Optional[int], _doc("How many ranks the job has.")] = None
    host: Annotated[str, _doc("The host's name.")] = ""
    pid: Annotated[int, _doc("The process's number on its host.")] = 0
    run: Annotated[str, _doc("The run's name, the same in all of its processes.")] = ""
    span: Annotated[Optional[int], _doc("Links begin to its end or error.")] = None
    thread: Annotated[str, _doc("The thread's name, if it is not the main thread.")] = ""
    seconds: Annotated[Optional[float], _doc("How long the call took; end and error only.")] = None
    site: Annotated[Optional[Site], _doc("The line of the job that made this call.")] = None
    through: Annotated[List[Site], _doc("Library lines from there to the call, outermost first, at most 8; the last one made the call.")] = []
    nth: Annotated[Optional[int], _doc("How often this line has made this call, if more than 100 times; most of those calls are not recorded.")] = (
        None
    )
    failure: Annotated[Optional[Failure], _doc("What the call raised, or what ended the thread or the process.")] = None

    shown: ClassVar[Shown] = Shown()


ENVELOPE = Event.__struct_fields__
"""The fields of every line, in their order; code that separates them from the fields of an event reads them here."""


class ProcessStart(Event, tag="process.start", kw_only=True, omit_defaults=True):
    """The first line of each rank's file."""

    shown: ClassVar[Shown] = Shown(fields=("role", "launcher"))

    schema: Annotated[int, _doc("Version of this schema.")] = 0
    probe: Annotated[str, _doc("Version of ddp_probe.")] = ""
    role: Annotated[str, _doc("rank, solo, or promoted (a child that called init_process_group).")] = ""
    role_because: Annotated[str, _doc("What the role was decided by.")] = ""
    versions: Annotated[Dict[str, str], _doc("python, torch, mmengine, mmcv, wrapt and more, as far as installed.")] = {}
    implementation: Annotated[str, _doc("The Python implementation, such as cpython.")] = ""
    executable: Annotated[str, _doc("The interpreter, secrets masked.")] = ""
    argv: Annotated[List[str], _doc("The command line, secrets masked.")] = []
    cwd: Annotated[str, _doc("The working directory, secrets masked.")] = ""
    launcher: Annotated[str, _doc("What started this process: torchrun, slurm, mpi, multiprocessing, environment, none.")] = ""
    environment: Annotated[Dict[str, str], _doc("Variables from a named list that are set; secrets masked.")] = {}
    hash_seed: Annotated[str, _doc("PYTHONHASHSEED, or 'random'.")] = ""
    flags: Annotated[Dict[str, int], _doc("Interpreter flags that differ from their default.")] = {}
    accelerators: Annotated[List[Card], _doc("Accelerators, found without initialising them.")] = []
    cpus: Annotated[Optional[int], _doc("CPUs that this process may use.")] = None
    ppid: Annotated[int, _doc("The number of the process above.")] = 0
    born: Annotated[
        Optional[int], _doc("Start time of the process, in clock ticks since boot. It tells this process from a later one with the same pid.")
    ] = None
    boot: Annotated[str, _doc("The kernel's ID of this boot of the host.")] = ""
    parent: Annotated[List[str], _doc("Command line of the parent process, secrets masked; only if no launcher gave this program a rank.")] = []
    settings: Annotated[Dict[str, str], _doc("Mistakes in the DDP_PROBE_* variables that are set.")] = {}


class ProcessEnd(Event, tag="process.end", kw_only=True, omit_defaults=True):
    """The process exits, also by os._exit. One killed by a signal writes none. A `failure` without `uncaught` was caught."""

    shown: ClassVar[Shown] = Shown(fields=("exit_code", "process_group", "lost"))

    exit_code: Annotated[Optional[int], _doc("Unset if unknown, as after `raise SystemExit(2)`; the launcher reports it then.")] = None
    uncaught: Annotated[bool, _doc("An exception was not caught; `failure` describes it.")] = False
    lines: Annotated[int, _doc("Lines written before this one.")] = 0
    lost: Annotated[int, _doc("Lines that could not be written.")] = 0
    faults: Annotated[Dict[str, int], _doc("Internal faults of the probe, by probe.")] = {}
    process_group: Annotated[Optional[bool], _doc("A process group still existed.")] = None
    accelerators: Annotated[List[Card], _doc("Accelerators at the end, read without initialising them.")] = []


class ProcessExit(Event, tag="process.exit", kw_only=True, omit_defaults=True):
    """The program was left by an exit call with a code other than 0, or in an except clause. Functions at exit run next."""

    shown: ClassVar[Shown] = Shown(fields=("exit_code",))

    exit_code: Annotated[Optional[int], _doc("The code that was given to `sys.exit`, `exit` or `quit`.")] = None
    caught: Annotated[Optional[Failure], _doc("The exception that the except clause had caught.")] = None


class ThreadFailed(Event, tag="thread.failed", kw_only=True, omit_defaults=True):
    """A thread of this process ended with an exception that nothing caught; the process went on. `failure` describes it, `thread` names it."""

    shown: ClassVar[Shown] = Shown(fields=("thread",))

    after_main: Annotated[bool, _doc("The main thread had ended by then.")] = False
    count: Annotated[int, _doc("How many threads of this process have ended so; the first 8, and then the 16th, the 32nd and so on are written.")] = 0


class LauncherStart(Event, tag="launcher.start", kw_only=True, omit_defaults=True):
    """The first line of a launcher's file."""

    shown: ClassVar[Shown] = Shown(fields=("launcher",))

    schema: Annotated[int, _doc("Version of this schema.")] = 0
    probe: Annotated[str, _doc("Version of ddp_probe.")] = ""
    launcher: Annotated[str, _doc("torchrun, torch.distributed.launch, accelerate, deepspeed, spawn.")] = ""
    argv: Annotated[List[str], _doc("The command line, secrets masked.")] = []
    cwd: Annotated[str, _doc("The working directory, secrets masked.")] = ""
    versions: Annotated[Dict[str, str], _doc("As in process.start.")] = {}
    environment: Annotated[Dict[str, str], _doc("Variables from a named list that are set; secrets masked.")] = {}


class LauncherAgent(Event, tag="launcher.agent", kw_only=True, omit_defaults=True):
    """torchrun's agent on this host; `failure` is the launcher's own report of failed children."""

    shown: ClassVar[Shown] = Shown(fields=("nproc_per_node", "nnodes", "max_restarts"))

    nproc_per_node: Annotated[Optional[int], _doc("Processes requested on this host.")] = None
    nnodes: Annotated[str, _doc("Hosts requested, as MIN:MAX.")] = ""
    max_restarts: Annotated[Optional[int], _doc("How many times the group may be started again.")] = None
    rendezvous: Annotated[Dict[str, str], _doc("Backend, endpoint and id of the rendezvous, as far as known.")] = {}
    entrypoint: Annotated[str, _doc("What the ranks run.")] = ""


class LauncherGroup(Event, tag="launcher.group", kw_only=True, omit_defaults=True):
    """The launcher is about to start (begin) or has started (end) one generation of children. With mp.spawn, end means that they have exited."""

    shown: ClassVar[Shown] = Shown(fields=("asked", "restart", "children"))

    asked: Annotated[Optional[int], _doc("Number of children requested.")] = None
    entrypoint: Annotated[str, _doc("The function that they run, if they run one.")] = ""
    children: Annotated[Dict[str, int], _doc("Local rank to pid.")] = {}
    restart: Annotated[Optional[int], _doc("How many times the group has been restarted.")] = None
    oom_kills: Annotated[
        Optional[int], _doc("At the begin: how many processes of the launcher's control group the kernel had killed for lack of memory.")
    ] = None


class LauncherSignal(Event, tag="launcher.signal", kw_only=True, omit_defaults=True):
    """The launcher was told to stop by a signal, and now ends its children."""

    signal: Annotated[str, _doc("The signal's name; empty if it is not known.")] = ""


class LauncherChild(Event, tag="launcher.child", kw_only=True, omit_defaults=True):
    """One child of the launcher has exited."""

    shown: ClassVar[Shown] = Shown(
        fields=("child_rank", "child_local_rank", "exit_code", "signal", "child_pid"),
    )

    child_rank: Annotated[Optional[int], _doc("The child's rank, if the launcher tells it.")] = None
    child_local_rank: Annotated[Optional[int], _doc("The child's rank on this host.")] = None
    child_pid: Annotated[Optional[int], _doc("The child's process number.")] = None
    exit_code: Annotated[Optional[int], _doc("The child's exit code; minus the signal's number if a signal ended it.")] = None
    signal: Annotated[str, _doc("Name of the signal that ended it, such as SIGKILL.")] = ""
    message: Annotated[str, _doc("The launcher's message about it; first 2 000 characters.")] = ""
    first: Annotated[bool, _doc("The launcher reports this one as the first to fail.")] = False
    oom_kills: Annotated[
        Optional[int], _doc("If SIGKILL ended it: how many processes of the launcher's control group the kernel has killed for lack of memory.")
    ] = None


class LauncherEnd(Event, tag="launcher.end", kw_only=True, omit_defaults=True):
    """The launcher exits."""

    shown: ClassVar[Shown] = Shown(fields=("exit_code", "silent_ranks"))

    exit_code: Annotated[Optional[int], _doc("The launcher's own exit code.")] = None
    uncaught: Annotated[bool, _doc("An exception reached the top.")] = False
    silent_ranks: Annotated[List[int], _doc("Local ranks started here that wrote no file.")] = []


class LauncherHang(Event, tag="launcher.hang", kw_only=True, omit_defaults=True):
    """None of the launcher's ranks has moved for DDP_PROBE_HANG_AFTER. If there is no launcher, the lowest rank of the host writes it."""

    since: Annotated[Optional[float], _doc("Seconds since any of them has moved.")] = None
    ranks: Annotated[List[int], _doc("The ranks of this host, none of which has moved.")] = []
    gone: Annotated[List[int], _doc("The ranks of this host whose process was no more.")] = []
    said: Annotated[str, _doc("The line on stderr, unless that is switched off.")] = ""


class LauncherSilent(Event, tag="launcher.silent", kw_only=True, omit_defaults=True):
    """A rank of this host in which no Python code runs, seen from outside before launcher.hang: it is paused, or native code holds the GIL."""

    child_rank: Annotated[Optional[int], _doc("The rank.")] = None
    child_pid: Annotated[Optional[int], _doc("Its process.")] = None
    since: Annotated[Optional[float], _doc("Seconds since its watcher has woken, which needs the GIL.")] = None
    paused: Annotated[bool, _doc("The kernel does not let it run: it is stopped, or its control group is frozen.")] = False
    state: Annotated[str, _doc("The kernel's letter: R, S, D, T, t.")] = ""
    wchan: Annotated[str, _doc("The kernel's function in which its main thread waits; empty if the kernel does not tell.")] = ""
    load: Annotated[Optional[float], _doc("CPU seconds a second that it used between two looks.")] = None
    threads: Annotated[List[ThreadStack], _doc("The Python stack of each thread, the main one first, as py-spy reads them.")] = []
    problem: Annotated[str, _doc("Why its stacks are not known.")] = ""
    allow: Annotated[str, _doc("The command that would allow to read them.")] = ""


class LauncherResumed(Event, tag="launcher.resumed", kw_only=True, omit_defaults=True):
    """Ranks move on after launcher.hang."""

    lasted: Annotated[Optional[float], _doc("Seconds without any movement.")] = None
    ranks: Annotated[List[int], _doc("Those that were seen to move first.")] = []


class InitDist(Event, tag="mmengine.init_dist", kw_only=True, omit_defaults=True):
    """A call of mmengine.dist.init_dist."""

    shown: ClassVar[Shown] = Shown(
        fields=("backend", "branch", "group_size"),
        span="init",
        given=("backend",),
        during="init",
        after="grouped",
    )

    launcher: Annotated[str, _doc("As given: pytorch, slurm or mpi.")] = ""
    backend: Annotated[str, _doc("The backend, as given or by default.")] = ""
    kwargs: Annotated[Dict[str, str], _doc("Further keyword arguments, described.")] = {}
    branch: Annotated[str, _doc("The set_device that it will call: mlu, npu, musa, cuda or none.")] = ""
    branch_because: Annotated[str, _doc("What the branch was decided by.")] = ""
    group_backend: Annotated[str, _doc("The backend of the default group afterwards.")] = ""
    group_rank: Annotated[Optional[int], _doc("This process's rank in the default group afterwards.")] = None
    group_size: Annotated[Optional[int], _doc("The size of the default group afterwards.")] = None


class InitProcessGroup(Event, tag="dist.init_process_group", kw_only=True, omit_defaults=True):
    """A call of torch.distributed.init_process_group."""

    shown: ClassVar[Shown] = Shown(
        fields=("backend", "group_size", "master_addr", "master_port", "timeout"),
        span="init",
        given=("backend",),
        during="init",
        after="grouped",
    )

    backend: Annotated[str, _doc("As given; at the end, that of the group.")] = ""
    init_method: Annotated[str, _doc("As given, credentials and query masked.")] = ""
    timeout: Annotated[Optional[float], _doc("Seconds.")] = None
    store: Annotated[str, _doc("Class of the store, if one was given.")] = ""
    given_rank: Annotated[Optional[int], _doc("The argument rank.")] = None
    given_world_size: Annotated[Optional[int], _doc("The argument world_size.")] = None
    device_id: Annotated[str, _doc("The argument device_id.")] = ""
    master_addr: Annotated[str, _doc("MASTER_ADDR, as it was when the call was made.")] = ""
    master_port: Annotated[str, _doc("MASTER_PORT, as it was when the call was made.")] = ""
    already_initialised: Annotated[Optional[bool], _doc("There was a default group before.")] = None
    backends: Annotated[Dict[str, str], _doc("Backend per device type.")] = {}
    group_rank: Annotated[Optional[int], _doc("This process's rank in the group.")] = None
    group_size: Annotated[Optional[int], _doc("The size of the group.")] = None


class DestroyProcessGroup(Event, tag="dist.destroy_process_group", kw_only=True, omit_defaults=True):
    """A call of torch.distributed.destroy_process_group."""

    shown: ClassVar[Shown] = Shown(span="init", during="closing", after="closed")

    group: Annotated[str, _doc("Name of the group; empty for all groups.")] = ""


class NewGroup(Event, tag="dist.new_group", kw_only=True, omit_defaults=True):
    """A call of torch.distributed.new_group."""

    shown: ClassVar[Shown] = Shown(span="init")

    ranks: Annotated[List[int], _doc("Ranks of the group; at most 1 024.")] = []
    size: Annotated[Optional[int], _doc("How many ranks it was asked for.")] = None
    backend: Annotated[str, _doc("As given; at the end, that of the group.")] = ""
    timeout: Annotated[Optional[float], _doc("Seconds.")] = None
    member: Annotated[Optional[bool], _doc("This rank belongs to it.")] = None


class Collective(Event, tag="dist.collective", kw_only=True, omit_defaults=True):
    """A barrier, before and after it; another collective once it raised or took longer than DDP_PROBE_SLOW."""

    shown: ClassVar[Shown] = Shown(fields=("operation", "number", "ranks"))

    operation: Annotated[str, _doc("The call, such as barrier or all_reduce. The ledger has all calls.")] = ""
    number: Annotated[Optional[int], _doc("Number of the call in its group, as in the ledger.")] = None
    group: Annotated[str, _doc("The group's id, the same on each of its ranks.")] = ""
    ranks: Annotated[str, _doc("The group's ranks, such as 0-7 or 0-62/2.")] = ""
    size: Annotated[Optional[int], _doc("How many ranks the group has.")] = None


class SetDevice(Event, tag="device.set", kw_only=True, omit_defaults=True):
    """A call of set_device of torch.cuda, torch.accelerator or a vendor's module."""

    shown: ClassVar[Shown] = Shown(fields=("device", "target"), span="device", given=("device",))

    target: Annotated[str, _doc("The function that was called.")] = ""
    device: Annotated[str, _doc("Its argument.")] = ""


class ModuleMove(Event, tag="module.move", kw_only=True, omit_defaults=True):
    """The outermost call of Module.to, cuda, cpu (and the vendors' own)."""

    shown: ClassVar[Shown] = Shown(
        fields=("destination", "devices", "model"),
        span="device",
        given=("destination",),
    )

    method: Annotated[str, _doc("to, cuda, cpu or xpu.")] = ""
    destination: Annotated[str, _doc("The device asked for.")] = ""
    dtype: Annotated[str, _doc("The data type asked for.")] = ""
    model: Annotated[str, _doc("Class of the module.")] = ""
    devices: Annotated[Dict[str, int], _doc("Parameters per device afterwards.")] = {}


class WrapModel(Event, tag="mmengine.wrap_model", kw_only=True, omit_defaults=True):
    """A call of mmengine's Runner.wrap_model, or a strategy's."""

    shown: ClassVar[Shown] = Shown(
        fields=("get_device", "placement", "wrapper"),
        span="wrap",
        during="wrapping",
        after="wrapped",
    )

    target: Annotated[str, _doc("The method that was called.")] = ""
    launcher: Annotated[str, _doc("The runner's launcher.")] = ""
    distributed: Annotated[Optional[bool], _doc("The runner considers itself distributed.")] = None
    wrapper_cfg: Annotated[Dict[str, str], _doc("model_wrapper_cfg, described.")] = {}
    get_device: Annotated[str, _doc("What mmengine.device.get_device() returns.")] = ""
    get_device_because: Annotated[str, _doc("What that answer was decided by.")] = ""
    placement: Annotated[Optional[Placement], _doc("The model's devices, before and after.")] = None
    accelerators: Annotated[List[Card], _doc("Accelerators found without touching them.")] = []
    wrapper: Annotated[str, _doc("Class of the returned model.")] = ""
    device_ids: Annotated[Optional[List[CardId]], _doc("device_ids of the returned wrapper.")] = None


class Wrap(Event, tag="ddp.init", kw_only=True, omit_defaults=True):
    """A call of DistributedDataParallel.__init__, FullyShardedDataParallel, fully_shard or MMSeparateDistributedDataParallel."""

    shown: ClassVar[Shown] = Shown(
        fields=("placement", "device_ids", "wrapper"),
        span="wrap",
        given=("model", "device_ids"),
        during="wrapping",
        after="wrapped",
    )

    wrapper: Annotated[str, _doc("The class or function that wraps.")] = ""
    model: Annotated[str, _doc("Class of the module.")] = ""
    device_ids: Annotated[Optional[List[CardId]], _doc("Numbers of cards, as given; unset for None.")] = None
    output_device: Annotated[str, _doc("As given.")] = ""
    group: Annotated[str, _doc("The process group: default, or its backend and size.")] = ""
    backend: Annotated[str, _doc("The backend of the default group.")] = ""
    keywords: Annotated[Dict[str, str], _doc("Every other given argument, described.")] = {}
    placement: Annotated[Optional[Placement], _doc("The model's devices before it is wrapped.")] = None
    accelerators: Annotated[List[Card], _doc("Accelerators found without touching them.")] = []
    last_move: Annotated[str, _doc("The last Module.to before this call, and the line that called it.")] = ""
    last_set_device: Annotated[str, _doc("The last set_device before this call, and the line that called it.")] = ""
    warning: Annotated[str, _doc("What is about to fail, now or silently later.")] = ""


class Load(Event, tag="checkpoint.load", kw_only=True, omit_defaults=True):
    """A call that reads a checkpoint."""

    shown: ClassVar[Shown] = Shown(
        fields=("file", "map_location", "locations"),
        span="load",
        given=("file.path",),
        during="loading",
    )

    by: Annotated[str, _doc("What reads it; unset for torch.load.")] = ""

    file: Annotated[Optional[CheckpointFile], _doc("The file: its stat before the load, its contents after.")] = None
    map_location: Annotated[str, _doc("As given, described.")] = ""
    weights_only: Annotated[Optional[bool], _doc("As given; unset if not given.")] = None
    weights_only_effective: Annotated[Optional[bool], _doc("The value that this version of torch uses.")] = None
    mmap: Annotated[Optional[bool], _doc("As given.")] = None
    file_after: Annotated[Optional[CheckpointFile], _doc("Replaces `file` in the end event, if the file changed during the load.")] = None
    locations: Annotated[List[str], _doc("Devices that the storages were on when saved.")] = []


class Save(Event, tag="checkpoint.save", kw_only=True, omit_defaults=True):
    """A call that writes a checkpoint."""

    shown: ClassVar[Shown] = Shown(fields=("path", "size"), span="save", given=("path",), during="saving")

    by: Annotated[str, _doc("What writes it; unset for torch.save.")] = ""
    path: Annotated[str, _doc("As given, secrets masked; <stream> for what is not a path.")] = ""
    opened: Annotated[Optional[bool], _doc("The path is of a file that the job had opened.")] = None
    existed: Annotated[Optional[bool], _doc("The file already existed.")] = None
    in_place: Annotated[Optional[bool], _doc("Written directly to the path, so that a reader can find it half written.")] = None
    size: Annotated[Optional[int], _doc("Bytes of the file that is there.")] = None
    mtime: Annotated[Optional[float], _doc("Time of its last modification, as Unix time.")] = None
    inode: Annotated[Optional[int], _doc("Its number on its disk.")] = None
    free: Annotated[Optional[int], _doc("Bytes free on its disk after a save that failed.")] = None


class Remedied(Event, tag="remedy.applied", kw_only=True, omit_defaults=True):
    """A remedy has changed what the job requested; only with DDP_PROBE_FIX."""

    remedy: Annotated[str, _doc("Its name in DDP_PROBE_FIX.")] = ""
    target: Annotated[str, _doc("The call that was changed.")] = ""
    before: Annotated[Dict[str, str], _doc("What the job requested.")] = {}
    after: Annotated[Dict[str, str], _doc("What was done instead.")] = {}
    because: Annotated[str, _doc("What it was decided by.")] = ""
    precaution: Annotated[bool, _doc("The job might have succeeded without it.")] = False
    for_good: Annotated[str, _doc("The same change in code.")] = ""


class Declined(Event, tag="remedy.declined", kw_only=True, omit_defaults=True):
    """A remedy could not be sure and did nothing."""

    remedy: Annotated[str, _doc("Its name in DDP_PROBE_FIX.")] = ""
    target: Annotated[str, _doc("The call that was left as it is.")] = ""
    because: Annotated[str, _doc("Why.")] = ""


class Fault(Event, tag="probe.fault", kw_only=True, omit_defaults=True):
    """An internal fault of the probe; the job continued."""

    probe: Annotated[str, _doc("The probe or the remedy.")] = ""
    count: Annotated[int, _doc("Faults of this probe so far.")] = 0
    switched_off: Annotated[bool, _doc("It is not asked any more.")] = False


class WatchedTarget(msgspec.Struct, omit_defaults=True, gc=False):
    """What happened to one target."""

    probe: Annotated[str, _doc("The probe or the remedy.")] = ""
    target: Annotated[str, _doc("The call that it watches.")] = ""
    state: Annotated[str, _doc("patched, patched late, skipped, never imported, overwritten.")] = ""
    because: Annotated[str, _doc("Why, if it is not patched.")] = ""
    calls: Annotated[int, _doc("How often the job has made this call.")] = 0


class Coverage(Event, tag="probe.coverage", kw_only=True, omit_defaults=True):
    """What happened to the targets; written once, at exit."""

    shown: ClassVar[Shown] = Shown(fields=("targets",))

    targets: Annotated[List[WatchedTarget], _doc("Each call that a probe or a remedy watches.")] = []
    target: Annotated[str, _doc("Version 0.1.0 alone, which wrote a line for each target.")] = ""


class Restored(Event, tag="probe.restored", kw_only=True, omit_defaults=True):
    """restore() was called."""

    ok: Annotated[bool, _doc("Every original is back.")] = True
    restored: Annotated[int, _doc("How many were put back.")] = 0
    unreachable: Annotated[List[str], _doc("What still holds a wrapper, which is switched off; at most 50.")] = []


class DeviceState(Event, tag="device.state", kw_only=True, omit_defaults=True):
    """The memory of the devices and of the host, as this process sees them. Written if it changed by 1 % and 16 MiB."""

    shown: ClassVar[Shown] = Shown(fields=("when", "devices", "system"))

    when: Annotated[
        str,
        _doc(
            "The event that it was written at and its phase, such as `ddp.init end`; or hang, failure, end, "
            "or periodic, which needs a change of 5 % and 64 MiB."
        ),
    ] = ""
    current: Annotated[str, _doc("The current device; unset if the job has initialised none.")] = ""
    devices: Annotated[List[DeviceMemory], _doc("The devices that the job has initialised and used; empty on a CPU.")] = []
    system: Annotated[Optional[HostState], _doc("The process and its control group.")] = None
    step: Annotated[Optional[int], _doc("How often backward has been entered.")] = None


class CardsState(Event, tag="cards.state", kw_only=True, omit_defaults=True):
    """What the vendor's tool says of the cards of a host; a launcher asks it every DDP_PROBE_CARDS. Written if something has changed."""

    shown: ClassVar[Shown] = Shown(fields=("problem", "tool", "cards"))

    tool: Annotated[str, _doc("The tool, such as efsmi.")] = ""
    cards: Annotated[List[CardLoad], _doc("One for each card that it lists; at most 64.")] = []
    looks: Annotated[int, _doc("How often the tool has answered.")] = 0
    text: Annotated[str, _doc("What it printed, if its form is not documented; at most 4 000 characters, secrets masked.")] = ""
    problem: Annotated[str, _doc("Why nothing is known.")] = ""


class HangSuspected(Event, tag="hang.suspected", kw_only=True, omit_defaults=True):
    """Nothing has moved in this process for DDP_PROBE_HANG_AFTER; said again at growing intervals."""

    shown: ClassVar[Shown] = Shown(fields=("since", "operation", "number", "during", "step"))

    since: Annotated[Optional[float], _doc("Seconds since anything has moved in this process.")] = None
    operation: Annotated[str, _doc("The operation of torch.distributed that it is in; empty for none.")] = ""
    number: Annotated[Optional[int], _doc("Number of that call in its group.")] = None
    group: Annotated[str, _doc("The group's id, the same on each of its ranks.")] = ""
    size: Annotated[Optional[int], _doc("How many ranks the group has.")] = None
    during: Annotated[str, _doc("The phase that it is in, such as backward or validate.")] = ""
    step: Annotated[Optional[int], _doc("How often backward has been entered.")] = None
    still: Annotated[Optional[float], _doc("For how many of these seconds the main thread has stood at one line, and so have its callers.")] = None
    children: Annotated[
        float,
        _doc("CPU seconds that the processes which it has started used meanwhile, and theirs: a compiler, a tool that converts data."),
    ] = 0.0
    threads: Annotated[List[ThreadStack], _doc("The stack of each thread, the main one first.")] = []
    values: Annotated[
        List[FrameValues],
        _doc(
            "Plain values in the job's frames of the main thread, outermost first; at most the 8 innermost. From Python 3.13 on, before it only with "
            "DDP_PROBE_VALUES=all; not with off."
        ),
    ] = []


class HangOver(Event, tag="hang.over", kw_only=True, omit_defaults=True):
    """This process has moved on after hang.suspected."""

    shown: ClassVar[Shown] = Shown(fields=("lasted", "suspected"))

    lasted: Annotated[Optional[float], _doc("Seconds without any movement.")] = None
    suspected: Annotated[int, _doc("How often hang.suspected was written meanwhile.")] = 0


class ProcessResumed(Event, tag="process.resumed", kw_only=True, omit_defaults=True):
    """The watcher of this process runs again after it could not: the process, its container or its host was paused, or native code held the GIL."""

    lasted: Annotated[Optional[float], _doc("For how many seconds it could not, the sleep of the host included.")] = None
    cpu: Annotated[Optional[float], _doc("CPU seconds that the process has used meanwhile: about as many if native code computed.")] = None


class LineReached(Event, tag="watch.line", kw_only=True, omit_defaults=True):
    """The line that DDP_PROBE_WATCH names is about to run."""

    times: Annotated[int, _doc("How often this process has reached it by now.")] = 0
    values: Annotated[Dict[str, str], _doc("Plain values of the names in its statement, as in FrameValues.")] = {}


class Stacks(Event, tag="stacks", kw_only=True, omit_defaults=True):
    """The stacks of all threads, in answer to the command `stacks`."""

    shown: ClassVar[Shown] = Shown(fields=("request",))

    request: Annotated[int, _doc("Number of the request: the file ask/stacks.N of the run's folder.")] = 0
    threads: Annotated[List[ThreadStack], _doc("The stack of each thread, the main one first.")] = []
    values: Annotated[List[FrameValues], _doc("Like values of hang.suspected.")] = []


class ProcessLook(Event, tag="process.look", kw_only=True, omit_defaults=True):
    """What a look from outside shows of a process, written by the command `attach`; the process itself takes no part.

    look: One reading of a process from outside: what /proc says of it, and its Python stacks.
    """

    number: Annotated[int, _doc("Number of the look, from 1; the looks are some time apart.")] = 0
    state: Annotated[str, _doc("The kernel's letter: R, S, D, T, t, Z; X if there is no such process any more.")] = ""
    wchan: Annotated[str, _doc("The kernel's function in which its main thread waits; empty if the kernel does not tell.")] = ""
    cpu_seconds: Annotated[Optional[float], _doc("CPU time that the process has used.")] = None
    switches: Annotated[Optional[int], _doc("How often its main thread has gone to sleep to wait for something.")] = None
    system: Annotated[Optional[HostState], _doc("Its memory, its threads and its control group.")] = None
    children: Annotated[Dict[str, str], _doc("The processes that it has started, by pid, each with its state and its command; at most 64.")] = {}
    children_cpu: Annotated[float, _doc("CPU seconds that these and theirs have used.")] = 0.0
    files: Annotated[List[OpenFile], _doc("Open files that are checkpoints or large, by their names; at most 32.")] = []
    sockets: Annotated[List[OpenSocket], _doc("Its TCP connections; at most 64.")] = []
    cards: Annotated[List[str], _doc("Device files of cards that it has open; at most 32.")] = []
    threads: Annotated[List[ThreadStack], _doc("The Python stack of each thread, the main one first, as py-spy reads them.")] = []
    native: Annotated[List[str], _doc("The C functions in which the main thread is, innermost first; only with --native, at most 16.")] = []
    paused: Annotated[float, _doc("For how many seconds it was seen stopped while its stacks were read; 0 if it was read as it ran.")] = 0.0
    problem: Annotated[str, _doc("Why its stacks are not known.")] = ""
    allow: Annotated[str, _doc("The command that would allow to read them.")] = ""
    beside: Annotated[
        List[str], _doc("Other processes of this host that may belong to the job and could not be read, with the reason; at most 16.")
    ] = []


class Warned(Event, tag="probe.warning", kw_only=True, omit_defaults=True):
    """A warning, also printed to stderr as one line. If several ranks of a host have the same one, only the first prints it."""

    text: Annotated[str, _doc("What is said.")] = ""


class Full(Event, tag="probe.full", kw_only=True, omit_defaults=True):
    """The file has reached DDP_PROBE_MAX_BYTES; nothing more is written to it."""

    limit: Annotated[int, _doc("Most bytes that this process writes.")] = 0


# scripts/new probe puts the event of a new probe above this line.

EVENTS: Dict[str, Type[Event]] = {str(cls.__struct_config__.tag): cls for cls in Event.__subclasses__()}
"""Every event of this file by its name, in the order of the file."""

AnyEvent = Union[tuple(EVENTS.values())]  # type: ignore[valid-type]  # one declaration serves decoder and JSON Schema


def json_schema() -> Dict[str, Any]:
    """Return the JSON Schema of one line."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **in_order(msgspec.json.schema(AnyEvent))}


def in_order(node: Any) -> Any:
    """Put null last among alternatives: msgspec up to 0.20 names it before a reference, later ones after it."""
    if isinstance(node, dict):
        return {key: in_order(value) for key, value in node.items()}
    if isinstance(node, list):
        return sorted((in_order(item) for item in node), key=lambda item: item == {"type": "null"})
    return node
