"""Remedies that fail in every way: the job's call goes on as the job made it. Runs with DDP_PROBE_FIX=auto and without DDP_PROBE_STRICT."""

import gc
import importlib
import io
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from checked import Skipped, failure, main, recorded, saved_elsewhere
from mmengine.device import get_device
from mmengine.dist.utils import get_comm_device, init_dist
from mmengine.fileio.backends.local_backend import LocalBackend
from torch.nn.parallel import DistributedDataParallel

from ddp_probe.shared.settings import REMEDIES
from ddp_probe.traced.patching import guard
from ddp_probe.traced.remedies import Remedy, atomic_save

CLASSES = [importlib.import_module("ddp_probe.traced.remedies." + name.replace("-", "_")).REMEDY for name in REMEDIES]
OLD_TORCH = torch.__version__.startswith("1.")


class Patched:
    """Attributes that are something else for a while; faults are counted anew."""

    def __init__(self, *places):
        self.places = places

    def __enter__(self):
        guard.forget()
        recorded()
        self.kept = [(holder, name, vars(holder).get(name)) for holder, name, _ in self.places]
        for holder, name, value in self.places:
            setattr(holder, name, value)

    def __exit__(self, *exc):
        for holder, name, value in self.kept:
            if value is None:
                delattr(holder, name)
            else:
                setattr(holder, name, value)
        guard.forget()


def broken(*_, **__):
    """Fail."""
    raise ZeroDivisionError("a fault of the probe's own")


def everything(patched):
    """Make every call that a remedy may change, in the way that asks for the remedy; return what came of each."""
    kind = (lambda function: function) if patched else (lambda function: function._self_original)
    options = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    saved_elsewhere({"a": torch.zeros(2)}, "elsewhere.pth")
    told = {
        "save": kind(torch.save)({"a": 1}, "a.pth"),
        "inode": os.stat("a.pth").st_ino,
        "unsaved": failure(kind(torch.save), {"a": 1}, "missing/a.pth"),
        "put": kind(LocalBackend.put)(LocalBackend(), b"x", "a.bin"),
        "load": kind(torch.load)("a.pth"),
        "elsewhere": failure(kind(torch.load), "elsewhere.pth"),
        "missing": failure(kind(torch.load), "missing.pth"),
        "set_device": failure(kind(torch.cuda.set_device), 0),
        "backend": failure(kind(dist.init_process_group), "abacus", **options),
        "rendezvous": failure(kind(init_dist), "pytorch"),
        "get_device": kind(get_device)(),
        "get_comm_device": kind(get_comm_device)(),
    }
    dist.init_process_group("gloo", **options)
    module = torch.nn.Linear(2, 2)
    wrapper = DistributedDataParallel.__new__(DistributedDataParallel)
    told["device_ids"] = failure(kind(vars(DistributedDataParallel)["__init__"]), wrapper, module, device_ids=[0])
    del wrapper
    gc.collect()
    dist.destroy_process_group()
    return told


def _same(places):
    Path("a.pth").write_bytes(b"old")
    plain = everything(False)
    with Patched(*places):
        overridden = everything(True)
        assert overridden == plain, [(name, overridden[name], plain[name]) for name in plain if overridden[name] != plain[name]]
        return recorded("probe.fault")


def check_a_remedy_that_fails_before_and_after_each_call():
    """If every moment of every remedy fails, each call returns and raises what it does without remedies, and the faults are recorded."""
    places = [(one, moment, broken) for one in CLASSES for moment in ("prepare", "rescue", "settled")]
    faults = _same(places)
    assert {fault["probe"] for fault in faults} == {"fix." + name for name in REMEDIES}
    assert {fault["failure"]["type"] for fault in faults} == {"ZeroDivisionError"}


def check_a_remedy_that_cannot_record():
    """If a change cannot be recorded, it is not made, and nothing is left of it."""
    faults = _same([(Remedy, "record", broken), (Remedy, "declined", broken)])
    assert {"fix.atomic-save", "fix.map-location", "fix.set-device", "fix.device-ids", "fix.backend"} <= {fault["probe"] for fault in faults}
    assert [name for name in os.listdir(".") if name.startswith(".ddp_probe")] == []


def check_an_allow_list_that_cannot_be_recorded():
    """If weights-only cannot record what it allows, nothing is allowed."""
    if OLD_TORCH:
        raise Skipped("torch.load has no weights_only before torch 1.13.")
    from mmengine.logging import HistoryBuffer

    torch.save({"buffer": HistoryBuffer()}, "a.pth")
    before = set(torch.serialization.get_safe_globals())
    with Patched((Remedy, "record", broken)):
        told = failure(torch.load, "a.pth")
        assert told == failure(torch.load._self_original, "a.pth")
        faults = [(fault["probe"], fault["failure"]["message"]) for fault in recorded("probe.fault")]
        assert faults == [("fix.weights-only", "a fault of the probe's own")], faults
    assert set(torch.serialization.get_safe_globals()) == before


def check_a_stage_that_cannot_be_made():
    """If the stage's own code fails, the save goes to the path itself."""
    Path("a.pth").write_bytes(b"old")
    inode = os.stat("a.pth").st_ino
    with Patched((atomic_save.Stage, "beside", broken)):
        torch.save({"a": 1}, "a.pth")
        assert [fault["probe"] for fault in recorded("probe.fault")] == ["fix.atomic-save"]
    assert torch.load("a.pth") == {"a": 1}
    assert os.stat("a.pth").st_ino == inode


def check_a_stage_that_cannot_be_cleared():
    """If clearing up fails after a failed save, the job gets its own failure."""
    with Patched((atomic_save.Stage, "clear", broken)):
        told = failure(torch.save, {"f": lambda: 0}, "a.pth")
    assert told[0] is failure(torch.save._self_original, {"f": lambda: 0}, "b.pth")[0]
    assert told[0] is not ZeroDivisionError
    for name in os.listdir("."):
        if name.startswith(".ddp_probe"):
            for file in os.listdir(name):
                os.unlink(os.path.join(name, file))
            os.rmdir(name)


def check_faults_end():
    """After five faults a remedy is left out, and the others go on."""
    saved_elsewhere({"a": torch.zeros(2)}, "elsewhere.pth")
    with Patched((CLASSES[REMEDIES.index("settled-load")], "prepare", broken)):
        for _ in range(7):
            assert torch.load("elsewhere.pth")["a"].tolist() == [0, 0]
        assert [fault["count"] for fault in recorded("probe.fault")] == [1, 2, 3, 4, 5]


def check_called_once():
    """A load that no remedy changes is made once, even if every remedy fails."""
    torch.save({"a": torch.zeros(2)}, "a.pth")
    data = Path("a.pth").read_bytes()
    seen = []
    with Patched(*[(one, moment, broken) for one in CLASSES for moment in ("prepare", "rescue", "settled")]):
        torch.load(io.BytesIO(data), map_location=lambda storage, location: seen.append(1) or storage)
    assert seen == [1]


def check_arguments_of_the_jobs_own_classes():
    """A remedy takes a string, a list, a number and a time of the job's own classes by their content; their methods do not run."""

    def method(*_, **__):
        raise SystemExit(7)

    named = ("__bool__", "__len__", "__eq__", "__str__", "__repr__", "__iter__", "__hash__", "total_seconds")
    word, ids, number, time = (type("Own", (kind,), dict.fromkeys(named, method)) for kind in (str, list, int, timedelta))
    os.environ["DDP_PROBE_TIMEOUT"] = "77"
    dist.init_process_group(word("nccl"), timeout=time(seconds=5), store=dist.HashStore(), rank=0, world_size=1)
    assert dist.get_backend() == "gloo"
    DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=ids([0]), output_device=number(0))
    dist.destroy_process_group()


def check_a_model_of_the_jobs_own_class():
    """Dropping device_ids and moving a model look at its parameters without asking the model: its methods run as often as torch calls them."""
    asked = []

    class Own(torch.nn.Linear):
        def parameters(self, recurse=True):
            asked.append(1)
            return super().parameters(recurse)

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    counts = []
    for given in ({}, {"device_ids": [0], "output_device": 0}):
        DistributedDataParallel(Own(2, 2), **given)
        counts.append(len(asked))
        del asked[:]
    dist.destroy_process_group()
    assert counts[0] == counts[1], counts


if __name__ == "__main__":
    main(globals())
