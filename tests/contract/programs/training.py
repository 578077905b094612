"""Trains with DDP and then with mmengine's Runner, saves, loads, fails and swallows, and writes down everything that must not change."""

import contextlib
import gc
import hashlib
import json
import os
import random
import sys
import threading
import time
import weakref

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

FOLDER = sys.argv[1]
COLLECTIVES = "all_reduce broadcast barrier all_gather all_gather_object broadcast_object_list reduce gather scatter send recv".split()
VENDORS = ("torch_gcu", "torch_npu", "torch_mlu", "torch_musa", "torch_xla", "torch_dipu", "habana_frameworks", "intel_extension_for_pytorch")
calls = dict.fromkeys(COLLECTIVES, 0)
facts = {}


def count():
    """Count what is called of torch.distributed's collectives, by whichever name."""
    homes = [dist, dist.distributed_c10d]
    for name in COLLECTIVES:
        original = getattr(dist.distributed_c10d, name)

        def counted(*args, _original=original, _name=name, **kwargs):
            calls[_name] += 1
            return _original(*args, **kwargs)

        for home in homes:
            setattr(home, name, counted)


def digest(data):
    """Return a digest of bytes or of what can be written as text."""
    return hashlib.sha256(data if isinstance(data, bytes) else repr(data).encode()).hexdigest()[:16]


def parameters(model):
    """Return a digest over all parameters and buffers, bit for bit."""
    return digest(b"".join(value.detach().numpy().tobytes() for value in model.state_dict().values()))


def random_state():
    """Return a digest of every random number generator."""
    return [digest(torch.get_rng_state().numpy().tobytes()), digest(random.getstate()), digest(str(np.random.get_state()[1].tolist()))]


def say(text):
    """Print one line in one write, so that lines of two ranks do not mix."""
    sys.stdout.flush()
    os.write(1, (text + "\n").encode())


def net():
    """Return a model that draws random numbers while it trains."""
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 1))


def train(model, steps=5):
    """Return the losses, bit for bit."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        inputs = torch.randn(4, 8) * random.random() + float(np.random.rand())
        loss = model(inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
        say("rank %d loss %s" % (dist.get_rank(), losses[-1]))
    return losses


def plain():
    """Wrap, train, save and load."""
    model = net().to("cpu").to(torch.float32)
    assert model.cpu() is model
    wrapped = nn.parallel.DistributedDataParallel(model, broadcast_buffers=True)
    facts["wrapper"] = [type(wrapped).__mro__[0].__name__, isinstance(wrapped, nn.parallel.DistributedDataParallel), wrapped.device_ids]
    facts["losses"] = train(wrapped)
    path = os.path.join(FOLDER, "rank%d.pth" % dist.get_rank())
    torch.save(model.state_dict(), path)
    facts["saved"] = digest(b"".join(value.numpy().tobytes() for value in torch.load(path).values()))
    facts["file"] = os.path.getsize(path)
    group = dist.new_group([0])
    facts["member"] = group is not None
    facts["parameters"] = parameters(model)


def swallowed():
    """Fail in every way that a program can live through; write down what it learns."""
    told = []
    attempts = (
        lambda: torch.cuda.set_device(0),
        lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1), device_ids=[0]),
        lambda: nn.parallel.DistributedDataParallel(nn.ReLU()),
        lambda: nn.Linear(1, 1).to("cuda"),
        lambda: nn.Linear(1, 1).to("nonsense"),
        lambda: nn.Linear(1, 1).to(device="cpu", nonsense=1),
        lambda: torch.load(os.path.join(FOLDER, "missing.pth")),
        lambda: torch.load(b"nowhere"),
        torch.load,
        lambda: torch.save([1], "/nowhere/at/all"),
        lambda: torch.save(lambda: 1, os.path.join(FOLDER, "lambda.pth")),
        lambda: dist.init_process_group("gloo"),
        lambda: dist.new_group([7]),
        lambda: dist.destroy_process_group("nonsense"),
    )
    for number, attempt in enumerate(attempts):
        try:
            attempt()
        except BaseException as exc:
            chained = [type(one).__name__ for one in (exc.__cause__, exc.__context__)]
            told.append([number, type(exc).__module__, type(exc).__name__, str(exc).replace(FOLDER, ""), len(exc.args), chained])
        else:
            told.append([number, "nothing"])
    facts["exceptions"] = told


def holds_nothing():
    """Tell whether models, tensors and exceptions go away as soon as the program lets go of them, with the collector off."""
    gc.collect()
    gc.disable()
    alive = {}
    model = net().to("cpu")
    refs = {"moved": weakref.ref(model), "tensor": weakref.ref(next(model.parameters()))}
    del model
    failed = net()
    refs["failed"] = weakref.ref(failed)
    with contextlib.suppress(ValueError):
        nn.parallel.DistributedDataParallel(failed, device_ids=[0])
    del failed
    wrapped = nn.parallel.DistributedDataParallel(net())
    refs["wrapped"] = weakref.ref(wrapped.module)
    del wrapped
    alive.update({name: ref() is not None for name, ref in refs.items()})
    gc.enable()
    gc.collect()
    alive.update({name + " collected": ref() is not None for name, ref in refs.items()})
    facts["alive"] = alive


def runner():
    """Train with mmengine's Runner."""
    from mmengine.dataset import DefaultSampler
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Model(BaseModel):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, inputs, mode="tensor"):
            found = self.net(inputs)
            return {"loss": found.pow(2).mean()} if mode == "loss" else found

    rows = [{"inputs": torch.randn(8)} for _ in range(16)]
    sampler = {"type": DefaultSampler, "shuffle": True}
    loader = {"batch_size": 4, "num_workers": 0, "sampler": sampler, "dataset": rows, "collate_fn": {"type": "default_collate"}}
    made = Runner(
        model=Model(),
        work_dir=os.path.join(FOLDER, "work"),
        train_dataloader=loader,
        train_cfg={"by_epoch": True, "max_epochs": 1},
        optim_wrapper={"optimizer": {"type": torch.optim.SGD, "lr": 0.01}},
        default_hooks={"logger": None, "checkpoint": {"type": "CheckpointHook", "interval": 1}},
        env_cfg={"dist_cfg": {"backend": "gloo"}},
        launcher="pytorch",
        log_level="CRITICAL",
        default_scope="mmengine",
        randomness={"seed": 7},
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
    )
    made.train()
    facts["runner"] = [type(made.model).__name__, parameters(made.model.module)]


def surroundings():
    """Write down what belongs to the process and not to the program."""
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        facts["children"] = len(file.read().split())
    facts["threads"] = sorted(type(thread).__name__ for thread in threading.enumerate())
    facts["tasks"] = min(_tasks() for _ in range(5))  # A thread that has ended is counted until the kernel has taken it away.
    facts["cuda"] = [torch.cuda.is_initialized(), bool(getattr(getattr(torch, "xpu", None), "_initialized", False))]
    facts["vendors"] = sorted(name for name in sys.modules if name.split(".")[0] in VENDORS)
    facts["devices"] = sorted(os.readlink("/proc/self/fd/" + fd) for fd in _descriptors() if _is_device(fd))
    facts["argv"] = sys.argv[2:]


def _tasks():
    time.sleep(0.02)
    return len(os.listdir("/proc/self/task"))


def _descriptors():
    return [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]


def _is_device(fd):
    try:
        return os.readlink("/proc/self/fd/" + fd).startswith("/dev/") and "shm" not in os.readlink("/proc/self/fd/" + fd)
    except OSError:
        return False


def issued():
    """Return what torch's own recorder knows of the collectives that were issued; it came with torch 2."""
    dump = getattr(torch._C._distributed_c10d, "_dump_fr_trace_json", None)
    if dump is None:
        return None
    return [entry["profiling_name"] for entry in json.loads(dump()).get("entries", [])]


def main():
    """Do all of it, and write down what there is to compare."""
    torch.manual_seed(3)
    random.seed(4)
    np.random.seed(5)
    count()
    dist.init_process_group("gloo")
    plain()
    swallowed()
    holds_nothing()
    facts["random"] = random_state()
    runner()
    facts["random at the end"] = random_state()
    surroundings()
    facts["calls"] = dict(calls)
    facts["issued"] = issued()
    with open(os.path.join(FOLDER, "rank%d.json" % dist.get_rank()), "w") as file:
        json.dump(facts, file)
    gc.collect()  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    dist.barrier()
    dist.destroy_process_group()
    say("done")


if __name__ == "__main__":
    main()
