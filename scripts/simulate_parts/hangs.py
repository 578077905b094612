"""What can make a training hang, as the ledgers show it: one rank makes other calls than the others, or none, and all wait until the timeout."""

from typing import Dict, Type

from ddp_probe.shared import schema

from .launch import at, failure, torch_frame
from .ledger import ALL_REDUCE, Call
from .process import CLOCK
from .training import GoneError, Training

REDUCE = [torch_frame("distributed/distributed_c10d.py", 3252, "all_reduce")]
_GLOO = "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
TIMED_OUT = _GLOO + "Timed out waiting 1800000ms for recv operation to complete"
_TIMEOUT, _SUSPECTED_AFTER = 1800, 60
_DATA, _BARRIER = 51, 60  # Lines of main().


class Hang(Training):
    """The training hangs in its last collective; which the guilty rank makes is said by the subclass."""

    rest = 3
    outlived_by = 1805.0
    other_calls = 3  # Two that make groups, and the last.
    guilty_call = ALL_REDUCE

    def leave(self) -> None:
        """Come to the last collective and wait in it."""
        call = self.guilty_call if self.guilty else ALL_REDUCE
        self.come_to("leave")
        number = self.enter(call)
        self.suspect(call.line, call.op, number)
        self.give_up(call.line)

    def enter(self, call: Call) -> int:
        """Begin it; return its number."""
        assert self.ledger is not None
        return self.ledger.begin(call)

    def suspect(self, line: int, operation: str = "", number: int = 0, during: str = "") -> None:
        """Write what the watcher of the rank says after a minute."""
        CLOCK.now += _SUSPECTED_AFTER * 10**9
        frames = [at(70, "<module>"), at(line), *([torch_frame("distributed/distributed_c10d.py", 3252, operation)] if operation else [])]
        said = schema.HangSuspected(
            since=float(_SUSPECTED_AFTER),
            operation=operation,
            number=number or None,
            during=during,
            threads=[schema.ThreadStack(name="MainThread", main=True, frames=frames)],
        )
        self.process.point(said)

    def give_up(self, line: int) -> None:
        """Raise after the timeout."""
        CLOCK.stand_at(self.meeting("leave") + _TIMEOUT + 0.2 * self.chance.random())
        assert self.ledger is not None
        self.ledger.give_up()
        self.die(failure("RuntimeError", TIMED_OUT, REDUCE), line)


class Absent(Hang):
    """It waits for a batch that does not come, while the others wait for it in a collective."""

    def leave(self) -> None:
        """Wait in the last collective, or for a batch until the launcher ends the rank."""
        if not self.guilty:
            super().leave()
        self.come_to("leave", 2)
        assert self.ledger is not None
        self.ledger.stay_in("dataloader", self.launch.records // 4, _DATA)
        self.suspect(_DATA, during="dataloader")
        raise GoneError


class OtherOperation(Hang):
    """It comes to a barrier that the others do not make: they are in an all_reduce (08_all_reduce_against_broadcast)."""

    guilty_call = Call("barrier", 0, _BARRIER)


class OtherSize(Hang):
    """It reduces one element more than the others (08_different_sizes)."""

    guilty_call = ALL_REDUCE._replace(elements=ALL_REDUCE.elements + 1)


class Behind(Absent):
    """It waits for a batch, twelve collectives behind: the others issue theirs on the device, and wait for the last."""

    ahead = 12
    other_calls = 2 + ahead

    def enter(self, call: Call) -> int:
        """Issue twelve and wait for the last."""
        assert self.ledger is not None
        numbers = [self.ledger.begin(call._replace(is_async=True)) for _ in range(self.ahead)]
        self.ledger.wait()
        return numbers[-1]


HANGS: Dict[str, Type[Hang]] = {"absent": Absent, "other_op": OtherOperation, "other_size": OtherSize, "behind": Behind}
