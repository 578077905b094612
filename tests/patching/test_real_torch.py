"""The real targets, patched late and early, each in an interpreter of its own."""

import pytest

pytest.importorskip("torch")

TARGETS = """
import functools, io, inspect, pickle, sys
from ddp_probe.traced.patching import Observer, PatchRegistry, Target, guard

TARGETS = [Target(*name.split(":")) for name in (
    "torch.serialization:load", "torch.serialization:save", "torch.nn.modules.module:Module.to",
    "torch.nn.parallel.distributed:DistributedDataParallel.__init__", "torch.distributed.distributed_c10d:all_reduce",
    "torch.distributed.distributed_c10d:init_process_group", "torch.cuda:set_device")]
MMENGINE = [Target("mmengine.runner.runner", "Runner.wrap_model"), Target("mmengine.dist.utils", "init_dist")]

class Seen(Observer):
    name = "seen"
    def __init__(self):
        self.names = []
    def before(self, call):
        call.arguments()
        self.names.append(call.target.qualname)

def raw(target):
    from ddp_probe.traced.patching.slot import locate
    return locate(target)[1]

observer, registry = Seen(), PatchRegistry()
"""


def test_late_activation_and_restore(run_python):
    """After import torch and mmengine, every alias of every target is replaced, calls are seen, and undo restores all by identity."""
    done = run_python(
        TARGETS
        + """
import torch, torch.distributed, mmengine.runner, mmengine.dist
targets = TARGETS + MMENGINE
before = [raw(target) for target in targets]
dist_before = {name: id(value) for name, value in vars(torch.distributed).items()}
patches = registry.apply_all([(target, observer) for target in targets])
assert all(patch.state == "patched" for patch in patches), [patch.why for patch in patches]
aliases = {patch.target.qualname: patch.aliases for patch in patches}
assert "torch.load" in aliases["load"] and "torch.save" in aliases["save"]
assert {"mmengine.dist.init_dist", "mmengine.runner.runner.init_dist"} <= set(aliases["init_dist"])
assert "torch.distributed.all_reduce" in aliases["all_reduce"]
assert torch.load is torch.serialization.load and raw(TARGETS[0]) is not before[0]
model = torch.nn.Linear(2, 2).to("cpu")
try:
    torch.nn.parallel.DistributedDataParallel(model)
except (RuntimeError, ValueError) as exc:
    assert "process group" in str(exc)
file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
torch.load(file)
assert observer.names == ["Module.to", "DistributedDataParallel.__init__", "save", "load"], observer.names
assert guard.counts == {}
certificate = registry.undo()
assert certificate.ok and {e.kind for e in certificate.entries if not e.restored} <= {"unreachable"}, certificate.lines()
assert all(raw(target) is original for target, original in zip(targets, before))
assert dist_before == {name: id(value) for name, value in vars(torch.distributed).items()}
model.to("cpu")
assert len(observer.names) == 4
print("good")
""",
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


def test_wrappers_survive_torch_itself(run_python):
    """Wrapped torch functions pickle, script and compile without a graph break, with the results of the originals."""
    done = run_python(
        TARGETS
        + """
import torch, torch.distributed
registry.apply_all([(target, observer) for target in TARGETS])
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    for thing in (torch.load, torch.nn.Module.to, torch.distributed.all_reduce, functools.partial(torch.load, map_location="cpu")):
        again = pickle.loads(pickle.dumps(thing, protocol))
        assert again is thing or again.func is thing.func
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
x = torch.ones(1, 2)
assert torch.equal(torch.jit.script(model)(x), model(x))
assert inspect.getsource(torch.load).startswith("def load(")
if hasattr(torch, "compile"):
    def step(x):
        return model.to("cpu")(x) * 2
    for backend in ("eager", "aot_eager"):
        assert torch.allclose(torch.compile(step, backend=backend, fullgraph=True)(x), step(x))
assert guard.counts == {}
print("good")
""",
        timeout=180,
    )
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


def test_a_compiled_collective_has_no_graph_break(run_python, free_port):
    """A wrapped all_reduce runs eagerly and under torch.compile as one graph, over a real process group of one."""
    done = run_python(
        TARGETS
        + """
import torch, torch.distributed as dist
registry.apply_all([(target, observer) for target in TARGETS])
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d", rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
assert observer.names == ["init_process_group", "all_reduce"], observer.names
if hasattr(torch, "compile"):
    def step(x):
        dist.all_reduce(x)
        return x + 1
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        assert torch.compile(step, backend=backend, fullgraph=True)(torch.ones(2)).tolist() == [2.0, 2.0]
dist.destroy_process_group()
assert guard.counts == {}
print("good")
"""
        % free_port(),
        timeout=180,
    )
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


def test_patching_the_defining_module_first_leaves_no_alias_behind(run_python):
    """Patched as soon as the defining module is there, a name imported later is the wrapper, and undo finds it."""
    done = run_python(
        TARGETS
        + """
import torch
import mmengine.dist.utils
original = [mmengine.dist.utils.init_dist]  # In a list: a name in a module would be an alias, and be replaced.
registry.apply(MMENGINE[1], observer)
import mmengine.runner.runner
assert mmengine.runner.runner.init_dist is mmengine.dist.utils.init_dist is not original[0]
certificate = registry.undo()
assert certificate.ok
assert mmengine.runner.runner.init_dist is mmengine.dist.init_dist is mmengine.dist.utils.init_dist is original[0]
assert "mmengine.runner.runner.init_dist" in [entry.slot for entry in certificate.entries]
print("good")
""",
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr
