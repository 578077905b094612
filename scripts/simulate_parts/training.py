"""The life of one rank: what a training of a small model on eight cards a host does, in the order that the recorded jobs do it.

Longer than most files: it is one story, told from the first line of a rank's file to its last.
"""

import random
from typing import Any, Dict, List, Optional

import ddp_probe
from ddp_probe.shared import schema
from ddp_probe.traced.record import files

from . import launch as of_launch
from .launch import Launch, at, failure, host_name, torch_frame
from .ledger import SimulatedLedger
from .process import CLOCK, LoggedProcess

_PARAMETERS = (
    ("backbone.0.weight", [16, 8]),
    ("backbone.0.bias", [16]),
    ("head.weight", [1, 16]),
    ("head.bias", [1]),
    ("segmentation_head.weight", [4, 16]),
    ("segmentation_head.bias", [4]),
)
_DIGESTS = {4: "596174d15c5024df", 6: "010bef7f2fbcd6aa"}
_DDP = "torch.nn.parallel.distributed.DistributedDataParallel"
WRAP = [torch_frame("nn/parallel/distributed.py", 1064, "DistributedDataParallel.__init__")]
BACKWARD = [
    torch_frame("_tensor.py", 623, "Tensor.backward"),
    torch_frame("autograd/__init__.py", 395, "backward"),
    torch_frame("autograd/graph.py", 979, "_engine_run_backward"),
]
PEER = (
    "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.%d.%d]:%d. This is typically caused by a"
    " remote worker crashing. Check the logs of the remote worker before reporting an error."
)
LINES = {"group": 33, "wrap": 41, "steps": 57, "leave": 64}  # The lines at which main() of the job does it.


class DiesError(Exception):
    """An exception reaches the top of this rank's program."""

    def __init__(self, told: schema.Failure, line: int) -> None:
        super().__init__(told.message)
        self.told = told
        self.line = line


class GoneError(Exception):
    """A signal ends this rank: it has no time for a last line."""


class Training:
    """A rank that does well; faults are subclasses."""

    fill_before = "leave"  # The stage that comes after the calls which fill up the file.
    rest = 4  # Lines after them.
    outlived_by = 2.0  # How many seconds after the last meeting the launcher sees the ranks end.
    ledger: Optional[SimulatedLedger] = None
    other_calls = 3  # In the ledger: those that make and end groups.

    def __init__(self, launch: Launch, rank: int) -> None:
        self.launch = launch
        self.rank = rank
        self.host, self.local_rank = divmod(rank, launch.per_host)
        self.card = self.local_rank % 8
        self.calls: Dict[str, int] = {}
        self.gone = False
        self.chance = random.Random(rank)  # noqa: S311  # the same launch is written twice alike

    @property
    def guilty(self) -> bool:
        """It is this rank that the fault is injected at."""
        return self.rank == self.launch.guilty

    def live(self) -> None:
        """Write the whole file."""
        CLOCK.now = 0
        CLOCK.stand_at(2 + self.chance.random())
        self.process = LoggedProcess(self.launch.folder, self._stem(), self._identity(), self._first)
        if self.rank == 0:
            files.point_at(self.launch.folder)
        try:
            self._work()
        except GoneError:
            self.gone = True
        except DiesError as exc:
            self._last(exc)
        else:
            self._last(None)
        self.process.close()
        if self.ledger is not None:
            self.ledger.close()

    def _work(self) -> None:
        for stage in ("group", "wrap", "steps", "leave"):
            if stage == self.fill_before:
                self._fill()
            getattr(self, stage)()

    # --- when all ranks meet

    def meeting(self, stage: str) -> float:
        """Return the moment of the launch at which every rank leaves a stage."""
        moments = {"group": 8.0, "wrap": 14.0, "steps": 16.0, "leave": 20.0}
        stages = list(moments)
        late = stages.index(stage) >= stages.index(self.fill_before)
        return moments[stage] + (self.launch.busy if late else 0.0)

    def come_to(self, stage: str, before: float = 1.0) -> None:
        """Let time pass until a little before a meeting."""
        CLOCK.stand_at(self.meeting(stage) - before * (0.1 + 0.9 * self.chance.random()))

    # --- the stages

    def group(self) -> None:
        """Take a card and join the group."""
        self.count("set_device")
        self.process.call(schema.SetDevice(site=at(31), target="torch_gcu.gcu.set_device", device=str(self.card)), 0.0002)
        span = self.begin_group()
        answer = schema.InitProcessGroup(backend="eccl", backends={"gcu": "eccl", "cpu": "eccl"}, group_rank=self.rank, group_size=self.launch.ranks)
        self.leave_together("group", span, answer)
        if self.ledger is not None:
            self.ledger.init(self._began_group)

    def begin_group(self) -> int:
        """Write that the rank is about to join."""
        self.come_to("group")
        self.count("process_group")
        event = schema.InitProcessGroup(
            site=at(LINES["group"]),
            backend="eccl",
            init_method="env://",
            timeout=1800.0,
            master_addr=host_name(0),
            master_port=of_launch.PORT,
            already_initialised=False,
        )
        span = self.begin(event)
        if self.launch.records and self.process.recorder.path is not None:
            self.ledger = SimulatedLedger(self.process.recorder.path, self.launch, self.rank, self.chance.random())
            self._began_group = CLOCK.monotonic_ns()
        return span

    def wrap(self) -> None:
        """Move the model and wrap it."""
        self.move()
        self.leave_together("wrap", self.begin_wrap(), schema.Wrap(wrapper=_DDP, device_ids=[self.card]))

    def move(self) -> None:
        """Move the model to the card."""
        self.come_to("wrap", 2)
        self.count("module_move")
        event = schema.ModuleMove(site=at(40), method="to", destination="gcu:%d" % self.card, model="pieces.TinyModel")
        self.process.call(event, 0.003, schema.ModuleMove(devices={"gcu:%d" % self.card: 4}))

    def begin_wrap(self, parameters: int = 4, device: str = "", warning: str = "") -> int:
        """Write that the model is about to be wrapped."""
        where = device or "gcu:%d" % self.card
        line = LINES["wrap"]
        self.come_to("wrap")
        self.count("ddp")
        self.process.recorder.model(_DIGESTS[parameters], [[name, shape, "float32", True, where] for name, shape in _PARAMETERS[:parameters]])
        event = schema.Wrap(
            site=at(line),
            wrapper=_DDP,
            model="pieces.TinyModel",
            device_ids=[self.card],
            group="default",
            backend="eccl",
            placement=_placement(parameters, where),
            accelerators=[self._in_use()],
            last_move="" if where == "cpu" else "pieces.TinyModel.to(%s) at %s:40" % (where, of_launch.SCRIPT),
            last_set_device="torch_gcu.gcu.set_device(%d) at %s:31" % (self.card, of_launch.SCRIPT),
            warning=warning,
        )
        return self.begin(event)

    def steps(self) -> None:
        """Train; the log has no line of a step, the ledger each of its calls."""
        if self.ledger is not None:
            self.ledger.steps(self.launch.records - self.other_calls, self.meeting("leave") - 1.5)

    def leave(self) -> None:
        """Leave the group."""
        self.come_to("leave")
        self.count("destroy")
        began = CLOCK.monotonic_ns()
        self.process.call(schema.DestroyProcessGroup(site=at(LINES["leave"])), 0.03)
        if self.ledger is not None:
            self.ledger.about_groups("destroy_process_group", LINES["leave"], began)

    # --- calls

    def begin(self, event: schema.Event) -> int:
        """Write that a call is about to be made; keep when."""
        self._since = CLOCK.now
        return self.process.begin(event)

    def leave_together(self, stage: str, span: int, answer: schema.Event) -> None:
        """Return from a call that waits for everybody, within milliseconds of everybody."""
        CLOCK.stand_at(self.meeting(stage) + 0.003 * self.chance.random())
        self.process.end(span, self._seconds(), answer)

    def fail(self, stage: str, span: int, told: schema.Failure, event: schema.Event, late: float = 0.0) -> None:
        """Raise out of a call, and out of the program."""
        CLOCK.stand_at(self.meeting(stage) + late)
        self.process.fail(span, self._seconds(), told, event)
        self.die(told, LINES[stage])

    def die(self, told: schema.Failure, line: int) -> None:
        """Raise out of the program."""
        CLOCK.now += 2000000
        raise DiesError(told, line)

    def peer_is_gone(self, frames: List[schema.Site]) -> schema.Failure:
        """Return what a rank sees of another one's end."""
        guilty = self.launch.guilty
        address = (guilty // self.launch.per_host // 250, guilty // self.launch.per_host % 250 + 1, 20000 + guilty % 10000)
        return failure("RuntimeError", PEER % address, frames)

    def is_ended_by_launcher(self) -> bool:
        """Return whether a rank is still inside when its launcher gives up: some always are."""
        return not self.guilty and self.rank % 4 == 3

    def count(self, probe: str) -> None:
        """Count a call for the lines at exit."""
        self.calls[probe] = self.calls.get(probe, 0) + 1

    def _seconds(self) -> float:
        return (CLOCK.now - self._since) * 1e-9

    def _fill(self) -> None:
        """Make calls until the file has as many lines as were asked for, less those that are still to come."""
        for number in range(1, (self.launch.events - self.rest - self.process.lines) // 2 + 1):
            CLOCK.now += int(self.chance.uniform(0.01, 0.03) * 1e9)
            self._filler(number)

    def _filler(self, number: int) -> None:
        if number % 8 == 0:
            self._set_device_again()
        elif number % 5 == 0 and self.fill_before == "leave":
            self._move_metric()
        elif number % 10 == 1 and self.rank == 0:
            self._save(number // 10 + 1)
        else:
            self._load(number)

    def _set_device_again(self) -> None:
        self.count("set_device")
        self.process.call(schema.SetDevice(site=at(12, "worker_init"), target="torch_gcu.gcu.set_device", device=str(self.card)), 0.0001)

    def _move_metric(self) -> None:
        self.count("module_move")
        event = schema.ModuleMove(site=at(52), method="to", destination="gcu:%d" % self.card, model="pieces.Accuracy")
        self.process.call(event, 0.0005, schema.ModuleMove(devices={"gcu:%d" % self.card: 1}))

    def _save(self, epoch: int) -> None:
        self.count("save")
        event = schema.Save(site=at(60), path="work_dirs/epoch_%d.pth" % epoch, existed=False)
        self.process.call(event, 0.015, schema.Save(in_place=True, size=102228128, inode=2146000 + epoch))

    def _load(self, number: int) -> None:
        self.count("load")
        path = "data/features/%05d_%03d.pt" % (self.rank, number)
        modified = round(self.launch.began * 1e-9 - 86400, 3)
        seen = {"size": 60000 + number, "age": 86400.0, "mtime": modified, "inode": number}
        file = schema.CheckpointFile(path=path, exists=True, kind="zip", complete=True, **seen)
        event = schema.Load(site=at(19, "Features.__getitem__"), file=file, map_location="cpu", weights_only_effective=True)
        self.process.call(event, 0.004, schema.Load(locations=["cpu"]))

    # --- the first lines and the last

    def _stem(self) -> str:
        return "rank%05d.%s.%d" % (self.rank, host_name(self.host), self.launch.pid(self.rank))

    def _identity(self) -> Dict[str, Any]:
        return {
            "rank": self.rank,
            "local_rank": self.local_rank,
            "world_size": self.launch.ranks,
            "host": host_name(self.host),
            "pid": self.launch.pid(self.rank),
            "run": self.launch.name,
        }

    def _first(self) -> schema.Event:
        python = "/env/bin/python3.11"
        return schema.ProcessStart(
            schema=schema.VERSION,
            probe=ddp_probe.__version__,
            role="rank",
            role_because="The environment names rank %d (torchrun)." % self.rank,
            versions=of_launch.VERSIONS,
            implementation="cpython",
            executable=python,
            argv=[python, "-u", of_launch.SCRIPT, "config.py"],
            cwd="/job",
            launcher="torchrun",
            environment=self.environment(),
            hash_seed="0",
            accelerators=[schema.Card(name="gcu", device_type="gcu", importable=True)],
            cpus=64,
            ppid=self.launch.launcher_pid(self.host),
        )

    def environment(self) -> Dict[str, str]:
        """Return the variables that this rank has."""
        return {
            **of_launch.shared_environment(self.launch),
            "DDP_PROBE_ARMED": "%d:%d:%d" % (self.launch.pid(self.rank), self.rank, self.local_rank),
            "GROUP_RANK": str(self.host),
            "GROUP_WORLD_SIZE": str(self.launch.hosts),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(len(self.launch.ranks_of(self.host))),
            "PYTHONHASHSEED": "0",
            "RANK": str(self.rank),
            "ROLE_RANK": str(self.rank),
            "ROLE_WORLD_SIZE": str(self.launch.ranks),
            "TORCHELASTIC_ERROR_FILE": "/scratch/torchelastic/none/attempt_0/%d/error.json" % self.local_rank,
            "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_RUN_ID": "none",
            "WORLD_SIZE": str(self.launch.ranks),
        }

    def _last(self, exc: Optional[DiesError]) -> None:
        watched = []
        for probe, target in _TARGETS:
            calls = self.calls.get(probe, 0)
            watched.append(schema.WatchedTarget(probe=probe, target=target, state="patched", calls=calls))
        CLOCK.now += 40000
        self.process.point(schema.Coverage(targets=watched))
        left_open = exc is not None and exc.line != LINES["group"]
        event = schema.ProcessEnd(exit_code=0, lines=self.process.lines, process_group=left_open, accelerators=[self._in_use()])
        if exc is not None:
            event.exit_code, event.uncaught = 1, True
            event.failure = failure(exc.told.type, exc.told.message, [at(70, "<module>"), at(exc.line), *exc.told.frames])
        self.process.point(event)

    def _in_use(self) -> schema.Card:
        return schema.Card(name="gcu", device_type="gcu", module="torch_gcu", importable=True, initialised=True, current=self.card, count=8)


_TARGETS = (
    ("process_group", "torch.distributed.distributed_c10d.init_process_group"),
    ("destroy", "torch.distributed.distributed_c10d.destroy_process_group"),
    ("set_device", "torch_gcu.gcu.set_device"),
    ("module_move", "torch.nn.modules.module.Module.to"),
    ("ddp", _DDP + ".__init__"),
    ("save", "torch.serialization.save"),
    ("load", "torch.serialization.load"),
    ("spawn", "torch.multiprocessing.spawn.start_processes"),
)


def _placement(parameters: int, device: str) -> schema.Placement:
    elements = 161 if parameters == 4 else 229
    tally = schema.Tally(count=parameters, elements=elements, bytes=4 * elements)
    leaves = [schema.Leaf(name=name, device=device, shape=shape, dtype="float32") for name, shape in _PARAMETERS[: min(parameters, 5)]]
    return schema.Placement(
        model="pieces.TinyModel",
        parameters=parameters,
        elements=elements,
        devices={device: tally},
        dtypes={"float32": tally},
        trainable=parameters,
        first=leaves,
        majority=device,
        digest=_DIGESTS[parameters],
    )
