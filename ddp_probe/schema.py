"""Every event and its fields, declared once; writer, reader, docs page and JSON Schema all come from here.

Standard library and msgspec only: this is the one thing that the traced side and the reading side share.
A field that was not observed is left out of its line. Readers keep fields and events that they do not know.
The file is longer than others because it is the table of everything that can be written; it holds no logic.
"""

import sys
from typing import Any, Dict, List, Optional, Type, Union

import msgspec

if sys.version_info >= (3, 9):
    from typing import Annotated
else:  # typing.Annotated is new in Python 3.9
    from typing_extensions import Annotated

VERSION = 1


def _doc(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


# --- pieces that several events carry ---------------------------------------------------------------------------------


class Site(msgspec.Struct, omit_defaults=True, gc=False):
    """A line of source."""

    file: str = ""
    line: int = 0
    function: str = ""


class Failure(msgspec.Struct, omit_defaults=True, gc=False):
    """An exception, described."""

    type: Annotated[str, _doc("Qualified name of the exception's class.")] = ""
    message: Annotated[str, _doc("2 000 characters of its text, of many lines the last ones too; secrets masked.")] = ""
    raised_at: Annotated[Optional[Site], _doc("The frame that raised it.")] = None
    frames: Annotated[List[Site], _doc("The traceback, outermost first, without frames of the probe; at most 40.")] = []
    cause: Annotated[str, _doc("Class of the exception that this one was raised from or during.")] = ""
    cause_message: Annotated[str, _doc("500 characters of what the exception says that this one was raised from; secrets masked.")] = ""


class Leaf(msgspec.Struct, omit_defaults=True, gc=False):
    """One parameter or buffer, described."""

    name: str = ""
    device: str = ""
    shape: List[int] = []
    dtype: str = ""


class Tally(msgspec.Struct, omit_defaults=True, gc=False):
    """How many tensors, elements and bytes share one key (a device, a dtype)."""

    count: int = 0
    elements: int = 0
    bytes: int = 0


class Placement(msgspec.Struct, omit_defaults=True, gc=False):
    """Where a model's parameters and buffers are; read in one pass, nothing copied, nothing moved."""

    model: Annotated[str, _doc("Class of the module.")] = ""
    parameters: Annotated[int, _doc("Number of parameters, shared ones once.")] = 0
    elements: Annotated[int, _doc("Number of elements in them.")] = 0
    devices: Annotated[Dict[str, Tally], _doc("Parameters per device.")] = {}
    dtypes: Annotated[Dict[str, Tally], _doc("Parameters per dtype.")] = {}
    trainable: Annotated[int, _doc("Parameters with requires_grad.")] = 0
    shared: Annotated[int, _doc("Names that point at a parameter already counted.")] = 0
    lazy: Annotated[int, _doc("Parameters not initialised yet; counted, not read.")] = 0
    meta: Annotated[int, _doc("Parameters on the meta device.")] = 0
    unreadable: Annotated[int, _doc("Parameters whose device could not be read.")] = 0
    first: Annotated[List[Leaf], _doc("The first five parameters.")] = []
    majority: Annotated[str, _doc("The device that most parameters are on.")] = ""
    off_majority: Annotated[List[Leaf], _doc("The first ten parameters on another device.")] = []
    buffers: Annotated[int, _doc("Number of buffers.")] = 0
    buffer_devices: Annotated[Dict[str, Tally], _doc("Buffers per device.")] = {}
    buffers_off_majority: Annotated[List[Leaf], _doc("The first ten buffers on another device than the parameters' majority.")] = []
    model_device: Annotated[str, _doc("The module's own `device` attribute, where it has one.")] = ""
    digest: Annotated[str, _doc("Over ordered (name, shape, dtype, requires_grad); the list is in models/<digest>.json.")] = ""
    truncated: Annotated[bool, _doc("The model has more parameters than one pass may read.")] = False


class Card(msgspec.Struct, omit_defaults=True, gc=False):
    """One kind of accelerator as seen without touching it."""

    name: str = ""
    device_type: Annotated[str, _doc("What torch calls its devices.")] = ""
    module: Annotated[str, _doc("Its Python module, where imported.")] = ""
    module_version: str = ""
    importable: Annotated[Optional[bool], _doc("Its module is installed, imported or not.")] = None
    initialised: Annotated[Optional[bool], _doc("The program has initialised it already.")] = None
    current: Annotated[Optional[int], _doc("The current card; read only where already initialised.")] = None
    count: Annotated[Optional[int], _doc("Cards; from device files, or from the module where already initialised.")] = None
    device_files: Annotated[List[str], _doc("Device files found under /dev; at most 16.")] = []
    visible: Annotated[Dict[str, str], _doc("Visible-device variables that are set.")] = {}
    shim: Annotated[str, _doc("The module that makes torch.cuda stand for this accelerator.")] = ""


class CheckpointFile(msgspec.Struct, omit_defaults=True, gc=False):
    """A file on disk, looked at without unpickling it."""

    path: str = ""
    exists: Optional[bool] = None
    size: Annotated[Optional[int], _doc("Bytes.")] = None
    age: Annotated[Optional[float], _doc("Seconds since it was last written to.")] = None
    mtime: Annotated[Optional[float], _doc("When it was last written to, as Unix time.")] = None
    inode: Optional[int] = None
    kind: Annotated[str, _doc("By its first bytes: zip, legacy, pickle, safetensors, git-lfs, html, json, text, empty, stream, unknown.")] = ""
    complete: Annotated[Optional[bool], _doc("The zip's end-of-archive record is present; unset for other kinds.")] = None
    error: Annotated[str, _doc("Why it could not be looked at.")] = ""


# --- the envelope and the events ---------------------------------------------------------------------------------------


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="event", gc=False):
    """What every line carries, whatever it tells."""

    phase: Annotated[str, _doc("begin, end, error or point.")] = ""
    ts: Annotated[str, _doc("RFC 3339, UTC.")] = ""
    mono_ns: Annotated[int, _doc("The monotonic clock of this host.")] = 0
    seq: Annotated[int, _doc("Counts the lines of this process from 0; a gap is a line that was lost.")] = -1
    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world_size: Optional[int] = None
    host: str = ""
    pid: int = 0
    run: Annotated[str, _doc("The run's name, the same for all of its processes.")] = ""
    span: Annotated[Optional[int], _doc("Ties begin to end or error.")] = None
    site: Annotated[Optional[Site], _doc("The line of the job that made this call.")] = None
    through: Annotated[List[Site], _doc("Lines of libraries from there to the call, outermost first, at most 8; the last made it.")] = []
    nth: Annotated[Optional[int], _doc("How often this line has made this call, where that is more than 100: most of those are not recorded.")] = None
    seconds: Annotated[Optional[float], _doc("How long the call took; end and error only.")] = None
    failure: Annotated[Optional[Failure], _doc("What the call raised; error only.")] = None
    thread: Annotated[str, _doc("The thread's name, where it is not the main one.")] = ""


class ProcessStart(Event, tag="process.start", kw_only=True, omit_defaults=True):
    """The first line of each rank's file."""

    schema: Annotated[int, _doc("Version of this schema.")] = 0
    probe: Annotated[str, _doc("Version of ddp_probe.")] = ""
    role: Annotated[str, _doc("rank, solo, or promoted (a child that called init_process_group).")] = ""
    role_because: str = ""
    versions: Annotated[Dict[str, str], _doc("python, torch, mmengine, mmcv, wrapt and more, as far as installed.")] = {}
    implementation: str = ""
    executable: str = ""
    argv: Annotated[List[str], _doc("The command line, secrets masked.")] = []
    cwd: str = ""
    launcher: Annotated[str, _doc("Who started this process: torchrun, slurm, mpi, multiprocessing, environment, none.")] = ""
    environment: Annotated[Dict[str, str], _doc("Variables from a named list that are set; secrets masked.")] = {}
    hash_seed: Annotated[str, _doc("PYTHONHASHSEED, or 'random'.")] = ""
    flags: Annotated[Dict[str, int], _doc("Interpreter flags that differ from their default.")] = {}
    accelerators: Annotated[List[Card], _doc("Accelerators found without touching them.")] = []
    cpus: Annotated[Optional[int], _doc("CPUs that this process may use.")] = None
    ppid: int = 0
    born: Annotated[Optional[int], _doc("When the process was started, in clock ticks since the host was: no later one of this pid.")] = None
    boot: Annotated[str, _doc("The kernel's own name for this start of the host.")] = ""
    parent: Annotated[List[str], _doc("Command line of the process above, secrets masked; only of a program that no launcher has given a rank.")] = []
    settings: Annotated[Dict[str, str], _doc("What is wrong with DDP_PROBE_* variables that are set.")] = {}


class ProcessEnd(Event, tag="process.end", kw_only=True, omit_defaults=True):
    """The process ends by itself, os._exit included; one killed by a signal leaves none. `failure` without `uncaught` was caught."""

    exit_code: Annotated[Optional[int], _doc("Unset if nobody can tell, as after `raise SystemExit(2)`; the launcher tells it then.")] = None
    uncaught: Annotated[bool, _doc("An exception reached the top; `failure` tells which.")] = False
    lines: Annotated[int, _doc("Lines written before this one.")] = 0
    lost: Annotated[int, _doc("Lines that could not be written.")] = 0
    faults: Annotated[Dict[str, int], _doc("Faults of the probe itself, by probe.")] = {}
    process_group: Annotated[Optional[bool], _doc("A process group was still open.")] = None
    accelerators: Annotated[List[Card], _doc("Accelerators as they are at the end, found without touching them.")] = []


class LauncherStart(Event, tag="launcher.start", kw_only=True, omit_defaults=True):
    """The first line of a launcher's file."""

    schema: int = 0
    probe: str = ""
    launcher: Annotated[str, _doc("torchrun, torch.distributed.launch, accelerate, deepspeed, spawn.")] = ""
    argv: Annotated[List[str], _doc("The command line, secrets masked.")] = []
    cwd: str = ""
    versions: Dict[str, str] = {}
    environment: Dict[str, str] = {}


class LauncherAgent(Event, tag="launcher.agent", kw_only=True, omit_defaults=True):
    """torchrun's agent on this host; `failure` is the launcher's own account of failed children."""

    nproc_per_node: Annotated[Optional[int], _doc("Processes asked for on this host.")] = None
    nnodes: Annotated[str, _doc("Hosts asked for, as MIN:MAX.")] = ""
    max_restarts: Optional[int] = None
    rendezvous: Annotated[Dict[str, str], _doc("Backend, endpoint and id of the rendezvous, as far as known.")] = {}
    entrypoint: Annotated[str, _doc("What the ranks run.")] = ""


class LauncherChild(Event, tag="launcher.child", kw_only=True, omit_defaults=True):
    """One child of the launcher has ended."""

    child_rank: Optional[int] = None
    child_local_rank: Optional[int] = None
    child_pid: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Annotated[str, _doc("Name of the signal that ended it, such as SIGKILL.")] = ""
    message: Annotated[str, _doc("What the launcher knows of it; first 2 000 characters.")] = ""
    first: Annotated[bool, _doc("The launcher holds this one for the first to fail.")] = False


class LauncherGroup(Event, tag="launcher.group", kw_only=True, omit_defaults=True):
    """The launcher is about to start (begin) or has started (end) one generation of children; mp.spawn has also waited for them."""

    asked: Annotated[Optional[int], _doc("How many children were asked for.")] = None
    entrypoint: Annotated[str, _doc("The function that they run, where they run one.")] = ""
    children: Annotated[Dict[str, int], _doc("Local rank to pid.")] = {}
    restart: Annotated[Optional[int], _doc("How many times the group has been started again.")] = None


class LauncherEnd(Event, tag="launcher.end", kw_only=True, omit_defaults=True):
    """The launcher exits."""

    exit_code: Optional[int] = None
    uncaught: bool = False
    silent_ranks: Annotated[List[int], _doc("Local ranks started here that left no file.")] = []


class InitDist(Event, tag="mmengine.init_dist", kw_only=True, omit_defaults=True):
    """mmengine.dist.init_dist."""

    launcher: str = ""
    backend: str = ""
    kwargs: Annotated[Dict[str, str], _doc("Further keywords, described.")] = {}
    branch: Annotated[str, _doc("The set_device that it will call: mlu, npu, musa, cuda or none.")] = ""
    branch_because: str = ""
    group_backend: str = ""
    group_rank: Optional[int] = None
    group_size: Optional[int] = None


class InitProcessGroup(Event, tag="dist.init_process_group", kw_only=True, omit_defaults=True):
    """torch.distributed.init_process_group."""

    backend: str = ""
    init_method: Annotated[str, _doc("As given, credentials and query masked.")] = ""
    timeout: Annotated[Optional[float], _doc("Seconds.")] = None
    store: Annotated[str, _doc("Class of the store, where one was given.")] = ""
    given_rank: Optional[int] = None
    given_world_size: Optional[int] = None
    device_id: str = ""
    master_addr: str = ""
    master_port: str = ""
    already_initialised: Optional[bool] = None
    backends: Annotated[Dict[str, str], _doc("Backend per device type.")] = {}
    group_rank: Optional[int] = None
    group_size: Optional[int] = None


class DestroyProcessGroup(Event, tag="dist.destroy_process_group", kw_only=True, omit_defaults=True):
    """torch.distributed.destroy_process_group."""

    group: Annotated[str, _doc("Name of the group; empty for all of them.")] = ""


class NewGroup(Event, tag="dist.new_group", kw_only=True, omit_defaults=True):
    """torch.distributed.new_group."""

    ranks: Annotated[List[int], _doc("Ranks of the group; at most 1 024.")] = []
    size: Optional[int] = None
    backend: str = ""
    timeout: Optional[float] = None
    member: Annotated[Optional[bool], _doc("This rank is in it.")] = None


class SetDevice(Event, tag="device.set", kw_only=True, omit_defaults=True):
    """set_device of torch.cuda, torch.accelerator or a vendor's module."""

    target: Annotated[str, _doc("The function that was called.")] = ""
    device: Annotated[str, _doc("Its argument.")] = ""


class ModuleMove(Event, tag="module.move", kw_only=True, omit_defaults=True):
    """The outermost Module.to, cuda, cpu (and the vendors' own)."""

    method: str = ""
    destination: str = ""
    dtype: str = ""
    model: Annotated[str, _doc("Class of the module.")] = ""
    devices: Annotated[Dict[str, int], _doc("Parameters per device afterwards.")] = {}


class WrapModel(Event, tag="mmengine.wrap_model", kw_only=True, omit_defaults=True):
    """mmengine's Runner.wrap_model, or a strategy's."""

    target: str = ""
    launcher: Annotated[str, _doc("The runner's launcher.")] = ""
    distributed: Annotated[Optional[bool], _doc("The runner believes itself distributed.")] = None
    wrapper_cfg: Annotated[Dict[str, str], _doc("model_wrapper_cfg, described.")] = {}
    get_device: Annotated[str, _doc("What mmengine.device.get_device() answers.")] = ""
    get_device_because: str = ""
    placement: Optional[Placement] = None
    accelerators: List[Card] = []
    wrapper: Annotated[str, _doc("Class of what came back.")] = ""
    device_ids: Annotated[Optional[List[str]], _doc("Of the wrapper that came back.")] = None


class Wrap(Event, tag="ddp.init", kw_only=True, omit_defaults=True):
    """DistributedDataParallel.__init__, and FullyShardedDataParallel, fully_shard, MMSeparateDistributedDataParallel."""

    wrapper: Annotated[str, _doc("Class or function that wraps.")] = ""
    model: str = ""
    device_ids: Annotated[Optional[List[str]], _doc("As given; unset for None.")] = None
    output_device: str = ""
    group: Annotated[str, _doc("The process group: default, or its backend and size.")] = ""
    backend: str = ""
    keywords: Annotated[Dict[str, str], _doc("Every other argument that was given, described.")] = {}
    placement: Optional[Placement] = None
    accelerators: List[Card] = []
    last_move: Annotated[str, _doc("The last Module.to before this, and where it was called.")] = ""
    last_set_device: Annotated[str, _doc("The last set_device before this, and where it was called.")] = ""
    warning: Annotated[str, _doc("What is about to fail, or to fail later in silence.")] = ""


class Load(Event, tag="checkpoint.load", kw_only=True, omit_defaults=True):
    """torch.load."""

    file: Annotated[Optional[CheckpointFile], _doc("The file: by its stat before the load, by what is in it after.")] = None
    map_location: str = ""
    weights_only: Annotated[Optional[bool], _doc("As given; unset where not given.")] = None
    weights_only_effective: Annotated[Optional[bool], _doc("What this torch makes of it.")] = None
    mmap: Optional[bool] = None
    file_after: Annotated[Optional[CheckpointFile], _doc("In place of file after the load, if it has changed meanwhile.")] = None
    locations: Annotated[List[str], _doc("Devices that the storages were saved from.")] = []


class Save(Event, tag="checkpoint.save", kw_only=True, omit_defaults=True):
    """torch.save."""

    path: str = ""
    existed: Annotated[Optional[bool], _doc("A file was there already.")] = None
    in_place: Annotated[Optional[bool], _doc("Written into the path itself, so that a reader can meet half of it.")] = None
    size: Optional[int] = None
    inode: Optional[int] = None


class Remedied(Event, tag="remedy.applied", kw_only=True, omit_defaults=True):
    """A remedy has changed what the job asked for; only with DDP_PROBE_FIX."""

    remedy: str = ""
    target: Annotated[str, _doc("The call that was changed.")] = ""
    before: Annotated[Dict[str, str], _doc("What the job asked for.")] = {}
    after: Annotated[Dict[str, str], _doc("What was done in its place.")] = {}
    because: str = ""
    for_good: Annotated[str, _doc("The same change in code.")] = ""


class Declined(Event, tag="remedy.declined", kw_only=True, omit_defaults=True):
    """A remedy that could not be sure, and did nothing."""

    remedy: str = ""
    target: str = ""
    because: str = ""


class Fault(Event, tag="probe.fault", kw_only=True, omit_defaults=True):
    """A fault of the probe itself; the job went on."""

    probe: str = ""
    count: Annotated[int, _doc("Faults of this probe so far.")] = 0
    switched_off: bool = False


class Coverage(Event, tag="probe.coverage", kw_only=True, omit_defaults=True):
    """At exit, one per target: what became of it."""

    probe: str = ""
    target: str = ""
    state: Annotated[str, _doc("patched, patched late, skipped, never imported, overwritten.")] = ""
    because: str = ""
    calls: int = 0


class Restored(Event, tag="probe.restored", kw_only=True, omit_defaults=True):
    """restore() was called."""

    ok: bool = True
    restored: int = 0
    unreachable: List[str] = []


class Warned(Event, tag="probe.warning", kw_only=True, omit_defaults=True):
    """A warning. It goes to stderr as one line; of ranks of one host that warn alike the first says it for all."""

    text: str = ""


class Full(Event, tag="probe.full", kw_only=True, omit_defaults=True):
    """The file has reached DDP_PROBE_MAX_BYTES; nothing more is written to it."""

    limit: int = 0


EVENTS: Dict[str, Type[Event]] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        ProcessStart,
        ProcessEnd,
        LauncherStart,
        LauncherAgent,
        LauncherGroup,
        LauncherChild,
        LauncherEnd,
        InitDist,
        InitProcessGroup,
        DestroyProcessGroup,
        NewGroup,
        SetDevice,
        ModuleMove,
        WrapModel,
        Wrap,
        Load,
        Save,
        Remedied,
        Declined,
        Fault,
        Coverage,
        Restored,
        Warned,
        Full,
    )
}

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
