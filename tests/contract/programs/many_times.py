"""Activates and restores, as often as its argument says, while others hold on to wrappers; what is out of reach falls through and is listed."""

import collections
import functools
import gc
import io
import json
import os
import sys
import threading
import types

import torch
import torch.distributed
from orders import lines

import ddp_probe
from ddp_probe.traced.patching.wrapper import Wrapper

original = [torch.load, torch.nn.Module.__dict__["to"]]  # in a list: a name of this module would be an alias


def state():
    """Return what would grow if anything were stacked: atexit keeps an empty slot for what was taken out again, so the objects are counted."""
    gc.collect()
    ours = collections.Counter(type(one).__name__ for one in gc.get_objects() if str(type(one).__module__).startswith("ddp_probe."))
    kept = {
        name: ours[name] for name in ("Session", "Ending", "Recorder", "Writer", "Wrapper", "PatchSite", "PatchRegistry", "ImportHook", "ThisProcess")
    }
    return [len(sys.meta_path), threading.active_count(), len(os.listdir("/proc/self/fd")), sys.excepthook, kept]


def depth(thing):
    """Return how many wrappers of ours lie on top of each other."""
    return 1 + depth(thing._self_original) if type(thing) is Wrapper else 0


def file():
    """Return a checkpoint in memory."""
    made = io.BytesIO()
    torch.save([1], made)
    made.seek(0)
    return made


def rounds(times):
    """Activate, call, restore; each call is written once each time."""
    sizes = []
    for number in range(times):
        ddp_probe.activate()
        ddp_probe.activate()
        assert depth(torch.load) == 1 == depth(vars(torch.nn.Module)["to"])
        before = len(lines())
        torch.load(file())
        written = [event["event"] + "." + event["phase"] for event in lines()[before:] if event["event"] == "checkpoint.load"]
        assert written == ["checkpoint.load.begin", "checkpoint.load.end"], (number, written)
        certificate = ddp_probe.restore()
        assert certificate.ok, certificate.lines()
        assert ddp_probe.restore() is None
        assert torch.load is torch.serialization.load is original[0]
        assert vars(torch.nn.Module)["to"] is original[1]
        sizes.append(state())
    assert sizes[-1] == sizes[0], (sizes[0], sizes[-1])


def held():
    """Wrappers in partials, closures, containers, classes, methods and other modules."""
    ddp_probe.activate()
    model = torch.nn.Linear(1, 1)
    mine = sys.modules["mine"] = types.ModuleType("mine")
    mine.load = mine.again = torch.load
    partial = functools.partial(torch.load)
    registry = {"load": torch.load}
    method = model.to

    def closure(what, load=torch.load, inner=torch.load):
        return load(what)

    @functools.wraps(torch.load)
    def decorated(what):
        return wrapped(what)

    wrapped = torch.load
    torch.serialization.load = decorated
    kind = type("Kind", (), {"load": staticmethod(torch.load)})
    certificate = ddp_probe.restore()
    before = len(lines())
    assert mine.load is mine.again is original[0]
    assert torch.serialization.load is decorated
    assert decorated.__wrapped__ is original[0]
    for call in (partial, registry["load"], closure, kind.load, decorated, torch.serialization.load):
        assert call(file()) == [1]
    assert method("cpu") is model
    assert len(lines()) == before
    assert certificate.ok, certificate.lines()
    told = {entry.kind for entry in certificate.entries}
    assert {"unreachable", "spliced", "alias", "attribute"} <= told, told
    listed = " ".join(entry.slot for entry in certificate.entries if entry.kind == "unreachable")
    assert "partial" in listed, listed
    assert "dict" in listed, listed
    torch.serialization.load = original[0]
    return len(certificate.entries)


def main():
    """Print how often it was activated and how many entries the last certificate has."""
    rounds(int(sys.argv[1]))
    print(json.dumps({"entries": held()}))


if __name__ == "__main__":
    main()
