"""Takes the steps of one order: T imports torch, M mmengine.dist, A activates, R restores; after each step everything is as it has to be.

With 'pristine' for a path it writes what the targets and their aliases are where there is no probe.
"""

import atexit
import gc
import importlib
import io
import json
import os
import sys
import types

from ddp_probe.activation.targets import TARGETS

MODULES = {"T": ["torch.distributed", "torch.distributed.run"], "M": ["mmengine.dist", "mmengine.model"]}


def held(row):
    """Return what the slot of a target holds itself, raw; None where it is empty or not imported."""
    found = sys.modules.get(row.module)
    *owners, last = row.qualname.split(".")
    for name in owners:
        found = vars(found).get(name) if found is not None else None
    return None if found is None else vars(found).get(last)


def identity(thing):
    """Return what tells one function from another in whatever interpreter."""
    code = getattr(thing, "__code__", None)
    return None if thing is None else [type(thing).__name__, thing.__qualname__, code.co_filename, code.co_firstlineno]


def aliases(things):
    """Return, for each of these objects by its id, the names of all modules under which that very object can be had."""
    names = {id(thing): [] for thing in things}
    for module_name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType):
            for key, value in list(vars(module).items()):
                if id(value) in names:
                    names[id(value)].append("%s.%s" % (module_name, key))
    return {each: sorted(found) for each, found in names.items()}


def picture():
    """Return every target and its aliases, of the modules that are imported."""
    slots = {str(row): held(row) for row in TARGETS if row.module in sys.modules}
    names = aliases([thing for thing in slots.values() if thing is not None])
    return {row: [identity(thing), names.get(id(thing), []) if thing is not None else []] for row, thing in slots.items()}


class Order:
    """One order of steps, checked as it goes."""

    def __init__(self, pristine):
        self.pristine = pristine
        self.active = False
        self.seen = []
        self.taken = ""
        self.at_start = self.surroundings()

    def surroundings(self):
        """Return what surrounds a program and has to be as before."""
        finders = [type(finder) for finder in sys.meta_path]
        hooks = [sys.excepthook, sys.exit, os._exit, type(exit).__call__]
        return [len(sys.meta_path), finders, *hooks, len(threads()), atexit._ncallbacks()]

    def take(self, step):
        """Take one step and check."""
        import ddp_probe
        from ddp_probe import activation

        self.taken += step
        if step in MODULES:
            for name in MODULES[step]:
                importlib.import_module(name)
            if not self.active:
                self.unpatched()
        elif step == "A":
            ddp_probe.activate()
            self.active = True
        else:
            writes = activation.lifecycle.lifecycle.session is not None
            certificate = ddp_probe.restore()
            self.active = False
            assert certificate is None or certificate.ok, (self.taken, certificate.lines())
            assert writes == (certificate is not None)
            self.unpatched()
            assert self.surroundings()[2:6] == self.at_start[2:6], self.taken
        self.events()

    def unpatched(self):
        """Everything imported so far is the original, under each of its names, and no wrapper of ours is in use."""
        wrapper = sys.modules.get("ddp_probe.traced.patching.wrapper")
        for name, (what, names) in picture().items():
            was, had = self.pristine[name]
            assert what == was, (self.taken, name, what, was)
            missing = [each for each in had if each.rpartition(".")[0] in sys.modules and each not in names]
            assert not missing, (self.taken, name, missing)
        if wrapper is not None:
            inside = [one for one in gc.get_objects() if type(one) in (wrapper.Wrapper, wrapper.Bound) and not one._self_patch_site.retired]
            assert not inside, (self.taken, inside)

    def events(self):
        """Calls are written while the probe is active, once each, and not otherwise."""
        before = lines()
        expected = []
        if "T" in self.taken or "M" in self.taken:
            expected += self.load()
        if "M" in self.taken:
            expected += self.init_dist()
        found = [(event["event"], event["phase"]) for event in lines()[len(before) :] if event["event"].startswith(("checkpoint", "mmengine"))]
        assert found == (expected if self.active else []), (self.taken, found)
        self.seen += found

    def load(self):
        """Save and load through a name taken this moment."""
        import torch

        file = io.BytesIO()
        torch.save({"a": torch.ones(1)}, file)
        file.seek(0)
        assert torch.load(file)["a"].item() == 1.0
        return [("checkpoint.save", "begin"), ("checkpoint.save", "end"), ("checkpoint.load", "begin"), ("checkpoint.load", "end")]

    def init_dist(self):
        """Call init_dist by its alias with a launcher that there is not."""
        import mmengine.dist

        try:
            mmengine.dist.init_dist("no such launcher")
        except ValueError as exc:
            text = str(exc)
        assert "no such launcher" in text
        return [("mmengine.init_dist", "begin"), ("mmengine.init_dist", "error")]


def threads():
    """Return the threads of this process."""
    return os.listdir("/proc/self/task")


def lines():
    """Return every line of every run of this process."""
    root = os.environ["DDP_PROBE_DIR"]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".jsonl")]
    found.sort(key=os.path.getmtime)
    events = []
    for path in found:
        with open(path) as file:
            events += [json.loads(line) for line in file]
    return sorted(events, key=lambda event: (event["mono_ns"], event["seq"]))


def main():
    """Write the pristine picture, or take the steps."""
    path, steps = sys.argv[1:]
    if steps == "pristine":
        for name in MODULES["T"] + MODULES["M"]:
            importlib.import_module(name)
        with open(path, "w") as file:
            json.dump(picture(), file)
        return
    with open(path) as file:
        order = Order(json.load(file))
    for step in steps:
        order.take(step)
    import wrapt

    print(json.dumps({"events": len(order.seen), "wrapt": wrapt.__version__, "surroundings": order.surroundings()[:1] == order.at_start[:1]}))


if __name__ == "__main__":
    main()
