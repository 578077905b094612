"""What set-device, backend, timeout, device-ids, move-model and mmengine-device do on simulated cards; one process, a world of one.

Runs with DDP_PROBE_FIX=auto and LOCAL_RANK=2: the rank's own card is the third of eight.
"""

import contextlib
import gc
import os
import subprocess
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from checked import applied, declined, main, recorded, same_failure
from mmengine.device import get_device
from mmengine.device import utils as device_utils
from mmengine.dist.utils import get_comm_device
from pieces import TinyModel, batches, train_step
from torch.nn.parallel import DistributedDataParallel

from ddp_probe import activation
from ddp_probe.traced.remedies import set_device

CARD = torch_gcu.DEVICE_TYPE
OLD_TORCH = torch.__version__.startswith("1.")


class Group:
    """A world of one, over eccl unless another backend is asked for."""

    def __init__(self, backend="eccl"):
        self.backend = backend

    def __enter__(self):
        dist.init_process_group(self.backend, store=dist.HashStore(), rank=0, world_size=1)
        recorded()

    def __exit__(self, *exc):
        gc.collect()
        dist.destroy_process_group()


class Named:
    """A variable of the environment, for a while."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def __enter__(self):
        os.environ[self.name] = self.value

    def __exit__(self, *exc):
        del os.environ[self.name]


def unset():
    """Forget that a card has been set, as at the start of a job."""
    torch_gcu.set_device(0)
    activation.session().probe("set_device").forget()


def trained(model, card):
    """Train a wrapped model and return its parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(3):
        train_step(model, optimizer, inputs.to(card), targets.to(card))
    return torch.cat([parameter.detach().cpu().flatten() for parameter in model.parameters()])


# set-device


def check_set_device_of_the_accelerator():
    """A number, a device and a name for CUDA's card become the accelerator's card of that number."""
    for asked, card in ((3, 3), (torch.device("cuda:5"), 5), ("cuda:1", 1), (torch.device("cuda", 0), 0)):
        assert torch.cuda.set_device(asked) is None
        assert torch_gcu.current_device() == card
    torch.cuda.set_device(device=4)
    assert torch_gcu.current_device() == 4
    events = recorded()
    assert [event["remedy"] for event in events] == ["set-device"] * 5
    assert events[0]["before"] == {"torch.cuda.set_device": "3"}
    assert events[0]["after"] == {"%s.set_device" % CARD: "3"}


def check_set_device_of_no_card():
    """A card that is not there, or a device without a number, is not guessed: the exception is torch's own."""
    torch_gcu.set_device(1)
    for asked in (8, 99, "cuda:8"):
        same_failure(torch.cuda.set_device, asked)
    assert torch_gcu.current_device() == 1
    assert declined() == ["%s has 8 cards, and the argument names none of them" % CARD]
    same_failure(torch.cuda.set_device, "cpu")
    same_failure(torch.cuda.set_device)


def check_set_device_beside_a_card_of_nvidia():
    """On a host that has a card of NVIDIA a failing CUDA is the problem, and is not hidden; such a host is pretended here."""
    kept = set_device._OF_NVIDIA
    set_device._OF_NVIDIA = ("/dev/nvidia7", "/dev/null")
    try:
        same_failure(torch.cuda.set_device, 0)
    finally:
        set_device._OF_NVIDIA = kept
    assert "/dev/nvidia0" in kept
    assert recorded() == []


def check_set_device_on_a_cpu_run():
    """Without any card, and with DDP_PROBE_DEVICE naming one that is not there, set_device does nothing; that it did is recorded."""
    with Named("DDP_PROBE_DEVICE", "npu"):
        torch_gcu.set_device(6)
        assert torch.cuda.set_device(0) is None
        assert torch_gcu.current_device() == 6
    assert applied() == ["set-device"]


def check_other_failures_of_set_device_pass():
    """An argument that is no device fails as ever."""
    same_failure(torch.cuda.set_device, "abacus:1")
    same_failure(torch.cuda.set_device, object())
    assert recorded() == []


# backend and timeout


def started(backend, **options):
    """Make a world of one, and return its backend."""
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, **options)
    try:
        return dist.get_backend()
    finally:
        dist.destroy_process_group()


def check_nccl_becomes_the_vendors():
    """If NCCL is not available, the backend that the vendor's plugin has registered is taken."""
    assert started("nccl") == started("NCCL") == "eccl"
    assert applied() == ["backend", "backend"]


def check_an_unknown_backend():
    """A backend that nobody has registered becomes the vendor's; without cards it becomes gloo; DDP_PROBE_BACKEND has the first word."""
    assert started("abacus") == "eccl"
    with Named("DDP_PROBE_DEVICE", "npu"):
        assert started("abacus") == started("nccl") == "gloo"
    with Named("DDP_PROBE_BACKEND", "GLOO"):
        assert started("abacus") == "gloo"
    assert applied() == ["backend"] * 4


def check_an_available_backend_stays():
    """gloo, eccl and no backend at all stay as they are, in capitals too, even if DDP_PROBE_BACKEND names another."""
    with Named("DDP_PROBE_BACKEND", "gloo"):
        assert started("eccl") == "eccl"
        assert started("ECCL") == "eccl"
    assert started("gloo") == "gloo"
    if not OLD_TORCH:
        started(None)
    assert recorded() == []


def check_a_composed_backend_is_the_jobs():
    """A backend for each device is left to the job."""
    for backend in ("cpu:gloo,%s:eccl" % CARD, "cpu:gloo,cuda:abacus"):
        with contextlib.suppress(Exception):  # torch 1.12 does not know them, and later versions take the second with a warning
            started(backend)
    assert recorded() == []


def check_neither_backend_is_there():
    """If the one that DDP_PROBE_BACKEND names is missing too, nothing is done, and torch's failure passes."""
    with Named("DDP_PROBE_BACKEND", "ucc"):
        same_failure(dist.init_process_group, "abacus", store=dist.HashStore(), rank=0, world_size=1)
    assert declined() == ["neither abacus nor ucc is available"]


def check_timeout():
    """The group's timeout is the one of DDP_PROBE_TIMEOUT, whether the job names another or none; without the variable it is the job's."""
    if not hasattr(dist.Backend, "NOTED"):
        dist.Backend.register_backend("noted", noted, **({} if OLD_TORCH else {"devices": ["cpu"]}))
    for text, options, expected in (
        ("7", {}, timedelta(seconds=7)),
        ("2m", {"timeout": timedelta(seconds=30)}, timedelta(minutes=2)),
        ("", {"timeout": timedelta(seconds=30)}, timedelta(seconds=30)),
    ):
        TIMEOUTS.clear()
        with Named("DDP_PROBE_TIMEOUT", text):
            started("noted", **options)
        assert TIMEOUTS[0] == expected
    assert applied() == ["timeout", "timeout"]


TIMEOUTS = []


def noted(store, rank, size, timeout):
    """Make a group as eccl does, and note its timeout."""
    TIMEOUTS.append(timeout)
    return torch_gcu.eccl.ProcessGroupEccl(store, rank, size, timeout)


# move-model and device-ids


def check_a_model_that_was_not_moved():
    """The model is moved in place to the rank's card, and trains to the bits of one that the job has moved."""
    unset()
    torch.manual_seed(1)
    moved = TinyModel()
    forgotten = TinyModel()
    forgotten.load_state_dict(moved.state_dict())
    with Group():
        expected = trained(DistributedDataParallel(moved.to("%s:2" % CARD)), "%s:2" % CARD)
        assert recorded() == []
        wrapped = DistributedDataParallel(forgotten, device_ids=[2])
        assert wrapped.module is forgotten
        assert {str(parameter.device) for parameter in wrapped.parameters()} == {"%s:2" % CARD}
        assert torch.equal(trained(wrapped, "%s:2" % CARD), expected)
        assert applied() == ["move-model", *(["device-ids"] if OLD_TORCH else [])]
        assert wrapped.device_ids == (None if OLD_TORCH else [2])
        del wrapped


def check_the_card_that_the_job_has_set():
    """A job that has set another card than LOCAL_RANK's gets its model there."""
    unset()
    torch_gcu.set_device(5)
    with Group():
        wrapped = DistributedDataParallel(TinyModel())
        assert next(wrapped.parameters()).device.index == 5
        del wrapped


def check_an_optimizer_that_holds_the_parameters():
    """A model whose parameters an optimizer has already is not moved: the optimizer might keep the old ones."""
    unset()
    with Group():
        model = TinyModel()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        other = torch.optim.SGD(TinyModel().parameters(), lr=0.01)
        wrapped = DistributedDataParallel(model)
        assert next(wrapped.parameters()).device.type == "cpu"
        assert "an optimizer already holds these parameters" in declined()[0]
        del wrapped, model, optimizer
        wrapped = DistributedDataParallel(TinyModel())
        assert next(wrapped.parameters()).device.type == CARD
        del wrapped, other


def check_a_gloo_group_is_a_cpu_run():
    """Under gloo the model stays on the CPU, and loses the device_ids that DDP would refuse."""
    unset()
    with Group("gloo"):
        for options in ({"device_ids": [0]}, {"device_ids": [torch.device("cpu")], "output_device": 0}, {"output_device": 1}):
            wrapped = DistributedDataParallel(TinyModel(), **options)
            assert wrapped.device_ids is None
            assert applied() == ["device-ids"]
        for options in ({}, {"device_ids": None}, {"device_ids": []}, {"output_device": 0}):
            wrapped = DistributedDataParallel(TinyModel(), **options)
        assert recorded() == []
        del wrapped


def check_a_model_over_two_devices():
    """A model that is on the CPU and on a card is left to the job: DDP says so better than anything that could be guessed."""
    unset()
    with Group():
        model = TinyModel()
        model.head.to("%s:2" % CARD)
        same_failure(DistributedDataParallel.__init__, DistributedDataParallel.__new__(DistributedDataParallel), model, device_ids=[2])
        assert declined() == ["the parameters are on cpu, %s, and dropping device_ids would not help" % CARD]
        del model


FULL = """
import sys
sys.path[:0] = %r
import torch, torch.distributed as dist, torch_gcu
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("eccl", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(600, 1000))
try:
    DistributedDataParallel(model, device_ids=[2])
except ValueError as exc:
    assert "CPU modules" in str(exc)
    print({parameter.device.type for parameter in model.parameters()})
else:
    print({str(parameter.device) for parameter in model.parameters()})
dist.destroy_process_group()
"""


def check_a_card_that_is_too_small():
    """A model that the card does not take is moved back whole, and the wrap fails as it does without the remedy."""
    # A process of its own, as another rank: the card's memory is set at its start.
    env = {**os.environ, "TORCH_GCU_MEMORY_MB": "2", "RANK": "0", "WORLD_SIZE": "1", "DDP_PROBE_FIX": "move-model", "DDP_PROBE_ECHO": "warn"}
    env["DDP_PROBE_DIR"] = os.path.abspath("runs")
    env = {name: value for name, value in env.items() if name not in ("DDP_PROBE_ARMED", "DDP_PROBE_RUN")}
    done = subprocess.run([sys.executable, "-c", FULL % sys.path[:1]], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["{'cpu'}"], done.stdout + done.stderr
    assert "move-model does nothing: %s:2 does not take the model" % CARD in done.stderr


def check_a_rank_without_a_card():
    """A rank that nothing names a card for is not moved to the first one."""
    unset()
    place = activation.session().process.rank_info
    for local, world in ((8, 9), (None, 2)):
        kept, place.local_rank, place.world_size = (place.local_rank, place.world_size), local, world
        try:
            with Group():
                place.local_rank, place.world_size = local, world  # the group has told the world's size
                wrapped = DistributedDataParallel(TinyModel())
                assert next(wrapped.parameters()).device.type == "cpu"
                assert get_device() == "cpu"
                del wrapped
        finally:
            place.local_rank, place.world_size = kept
        activation.session()._probes["fix.move-model"]._said.clear()
        assert set(declined()) == {"nothing tells which of the 8 %s cards is this rank's own" % CARD}


# mmengine-device


def check_get_device():
    """get_device() answers the cards' type as mmengine does for those it knows, and the current card is the rank's own."""
    unset()
    assert get_device() == CARD
    assert torch_gcu.current_device() == 2
    events = recorded()
    assert [event["remedy"] for event in events] == ["mmengine-device"]
    assert events[0]["before"] == {"get_device()": "cpu"}
    assert events[0]["after"] == {"get_device()": CARD, "current card": "%s:2" % CARD}


def check_get_device_and_the_jobs_card():
    """A card that the job has set stays the current one."""
    unset()
    torch_gcu.set_device(6)
    assert get_device() == CARD
    assert torch_gcu.current_device() == 6


def check_get_device_that_knows():
    """Whatever mmengine answers but cpu is left as it is."""
    kept, device_utils.DEVICE = device_utils.DEVICE, "npu"
    try:
        assert get_device() == "npu"
    finally:
        device_utils.DEVICE = kept
    with Named("DDP_PROBE_DEVICE", "npu"):
        assert get_device() == "cpu"
    assert recorded() == []


def check_the_communication_device():
    """Collectives of mmengine keep to the CPU without a group, over gloo, and where the backend says that it carries CPU tensors."""
    unset()
    assert get_comm_device().type == "cpu"
    with Group("gloo"):
        assert get_comm_device().type == "cpu"
    assert recorded() == []
    with Group():
        assert get_comm_device().type == (CARD if OLD_TORCH else "cpu")
        assert applied() == (["mmengine-device"] if OLD_TORCH else [])


if __name__ == "__main__":
    main(globals())
