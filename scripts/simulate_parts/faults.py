"""What can go wrong at one rank, and what the others see of it; each as a recorded job of tests/jobs has it."""

from typing import Dict, Type

from ddp_probe.shared import schema

from .hangs import HANGS, REDUCE, TIMED_OUT
from .launch import Launch, at, failure, host_name, torch_frame
from .process import CLOCK
from .training import BACKWARD, LINES, WRAP, GoneError, Training

_VERIFY = [*WRAP, torch_frame("distributed/utils.py", 286, "_verify_param_shape_across_processes")]
_JOIN = [
    torch_frame("distributed/distributed_c10d.py", 1892, "init_process_group"),
    torch_frame("distributed/rendezvous.py", 199, "_create_c10d_store"),
]
_ON_CPU = (
    "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got"
    " device_ids [%d], output_device None, and module parameters {device(type='cpu')}."
)


class ModelOnCpu(Training):
    """Its model was never moved; the others lose it while they verify theirs (03_model_on_cpu_on_one_rank)."""

    fill_before = "wrap"
    rest = 6

    def wrap(self) -> None:
        """Wrap a model on the CPU for a card, or wait for who does."""
        if not self.guilty:
            self.move()
            span = self.begin_wrap()
            if self.is_ended_by_launcher():
                raise GoneError
            self.fail("wrap", span, self.peer_is_gone(_VERIFY), schema.Wrap(), late=0.05 + 0.2 * self.chance.random())
        warning = "the parameters are on cpu and device_ids is [%d]; the wrap is about to fail" % self.card
        span = self.begin_wrap(device="cpu", warning=warning)
        self.process.recorder.warn("rank %d at %s:%d: %s." % (self.rank, at(0).file, LINES["wrap"], warning))
        self.fail("wrap", span, failure("ValueError", _ON_CPU % self.card, WRAP), schema.Wrap())


class Killed(Training):
    """A signal ends it in the middle of the training (12_killed_by_sigkill)."""

    rest = 2

    def leave(self) -> None:
        """Be killed, or see a peer gone in the next step."""
        if self.guilty or self.is_ended_by_launcher():
            raise GoneError
        CLOCK.stand_at(self.meeting("leave") + 0.05 + 0.2 * self.chance.random())
        self.die(self.peer_is_gone([at(57, "train_step"), *BACKWARD]), LINES["steps"])


class Missing(Training):
    """It was started and never came so far as to leave a file; the others wait for it in vain (10_rank_never_started)."""

    fill_before = "group"
    rest = 4
    outlived_by = 1805.0

    def live(self) -> None:
        """Leave no file."""
        if not self.guilty:
            super().live()

    def group(self) -> None:
        """Give up after the timeout; rank 0, who counts, says how many have come."""
        span = self.begin_group()
        there = (self.launch.ranks - 1, self.launch.ranks)
        if self.rank == 0:
            text = "Timed out after 1801 seconds waiting for clients. %d/%d clients joined." % there
            told = failure("torch.distributed.DistStoreError", text, _JOIN)
        elif self.launch.guilty == 0:
            text = "The client socket has timed out after 1800000ms while trying to connect to (%s, 29500)." % host_name(0)
            told = failure("torch.distributed.DistNetworkError", text, _JOIN)
        else:
            told = failure("torch.distributed.DistNetworkError", "failed to recv, got 0 bytes. Connection was likely closed.", _JOIN)
        self.fail("group", span, told, schema.InitProcessGroup(), late=1801 + (0 if self.rank == 0 else 0.05 + 0.2 * self.chance.random()))


class OtherModel(Training):
    """Its model has a layer that the others do not have (09_extra_layer_on_one_rank)."""

    fill_before = "wrap"
    rest = 6

    def wrap(self) -> None:
        """Compare the models, and find them different."""
        mine = 6 if self.guilty else 4
        other = (0 if self.launch.guilty else 1) if self.guilty else self.launch.guilty
        self.move()
        span = self.begin_wrap(parameters=mine)
        text = "DDP expects same model across all ranks, but Rank %d has %d params, while rank %d has inconsistent %d params."
        told = failure("RuntimeError", text % (self.rank, mine, other, 10 - mine), _VERIFY)
        self.fail("wrap", span, told, schema.Wrap(), late=0.01 * self.chance.random())


class EnvSkew(Training):
    """It alone has TORCH_DISTRIBUTED_DEBUG=DETAIL, and so makes a group that the others do not make (13_mixed_environment)."""

    fill_before = "group"
    rest = 6
    outlived_by = 1805.0

    def environment(self) -> Dict[str, str]:
        """Return the variables, with one more at the guilty rank."""
        return {**super().environment(), **({"TORCH_DISTRIBUTED_DEBUG": "DETAIL"} if self.guilty else {})}

    def group(self) -> None:
        """Join, or wait for the others in a group of one's own."""
        if not self.guilty:
            super().group()
            return
        span = self.begin_group()
        frames = [_JOIN[0], torch_frame("distributed/distributed_c10d.py", 5456, "_create_process_group_wrapper")]
        told = failure("torch.distributed.DistStoreError", "wait timeout after 1800000ms, keys: /default_pg/0//cpu//pg_wrapper:0/0/0", frames)
        self.fail("group", span, told, schema.InitProcessGroup(), late=1800)

    def wrap(self) -> None:
        """Wait in the first collective, which comes before the wrap."""
        CLOCK.stand_at(self.meeting("group") + 1800 + 0.2 * self.chance.random())
        self.die(failure("RuntimeError", TIMED_OUT, REDUCE), 37)


FAULTS: Dict[str, Type[Training]] = {
    "model_on_cpu": ModelOnCpu,
    "killed": Killed,
    "missing": Missing,
    "other_model": OtherModel,
    "env_skew": EnvSkew,
    **HANGS,
}


def kind_of(fault: str) -> Type[Training]:
    """Return the kind of training in which this goes wrong; nothing does if the name is empty."""
    return FAULTS.get(fault, Training)


def training(launch: Launch, rank: int) -> Training:
    """Return the life of a rank."""
    return kind_of(launch.fault)(launch, rank)
