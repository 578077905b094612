"""Arms a process late, makes collectives, restores, and says what is as it was; also what a traceback shows, and what a fork leaves alone."""

import inspect
import os
import socket
import sys
import traceback

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import ddp_probe
from ddp_probe.reading import whole_ledger

WORK = torch._C._distributed_c10d.Work


def state():
    """Return what is swapped or replaced, by identity."""
    found = {name: value for name, value in vars(c10d).items() if callable(value)}
    codes = {}
    for name, value in found.items():
        inner = inspect.unwrap(value) if inspect.isfunction(value) else value
        if hasattr(inner, "__code__"):
            codes[name] = (inner, inner.__code__, dict(vars(inner)))
    others = {
        "next": torch.utils.data.dataloader._BaseDataLoaderIter.__next__,
        "backward": torch.autograd.backward,
        "save": torch.save,
        "load": torch.load,
    }
    codes.update({name: (value, value.__code__, {}) for name, value in others.items()})
    return codes, {name: vars(WORK)[name] for name in ("wait", "is_completed")}


def maps():
    """Return how often a ledger is mapped or open in this process."""
    with open("/proc/self/maps") as file:
        mapped = sum(".ledger" in line or "ddp_probe_ledger" in line for line in file)
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink("/proc/self/fd/" + fd))
        except OSError:
            continue
    return mapped, sum(".ledger" in link or "ddp_probe_ledger" in link for link in links)


def same(before, after):
    """Return the names whose function, code or attributes differ."""
    codes = [name for name in before[0] if any(one is not other for one, other in zip(before[0][name][:2], after[0][name][:2]))]
    attributes = [name for name in before[0] if before[0][name][2] != after[0][name][2]]
    return codes + attributes + [name for name in before[1] if before[1][name] is not after[1][name]]


def refused():
    """Return the traceback of a call that fails."""
    try:
        dist.all_reduce("not a tensor")
    except (TypeError, RuntimeError):
        return traceback.format_exc()


def waited():
    """Return the traceback of a wait that fails."""
    try:
        WORK.wait(3)
    except TypeError:
        return traceback.format_exc().split("Invoked with")[0]


with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]), RANK="0", WORLD_SIZE="1")
before = state()
ddp_probe.activate()
dist.init_process_group("gloo")
import glob  # noqa: E402

(path,) = {os.path.realpath(path) for path in glob.glob(os.environ["DDP_PROBE_DIR"] + "/*/rank*.ledger")}
tensor = torch.zeros(3)
dist.all_reduce(tensor)
dist.all_reduce(tensor, async_op=True).wait()
print("swapped", len(same(before, state())) > 20, "mapped", maps()[0] > 0, sys.getrefcount(tensor))
shown, shown_wait = refused(), waited()

records = len(whole_ledger.read(path).records)
child = os.fork()
if child == 0:
    list(torch.utils.data.DataLoader([1, 2]))
    refused()  # gloo's threads do not survive a fork: a call that would go through never returns
    os._exit(maps()[0] + 10 * maps()[1])
print("child", os.WEXITSTATUS(os.waitpid(child, 0)[1]))
found = whole_ledger.read(path)
print("records", len(found.records) - records, "phases", [one.name for one in found.phases])

certificate = ddp_probe.restore()
print("restored", certificate.ok, [entry.slot for entry in certificate.entries if not entry.restored], same(before, state()), maps())
print("tracebacks", shown == refused(), shown_wait == waited())
if shown != refused() or shown_wait != waited():
    print(shown, refused(), shown_wait, waited())
print("closed", whole_ledger.read(path).header.closed_ns > 0)
ddp_probe.activate()
dist.destroy_process_group()
