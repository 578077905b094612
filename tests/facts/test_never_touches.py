"""Taking every fact leaves the process as it was."""

LOOK = """
import os, random, sys, threading
import torch, mmengine.dist, mmengine.device
from ddp_probe.traced.facts import accelerator_state, call_site, checkpoint_file, describe, failure, placement, versions
from ddp_probe.traced import opening
from ddp_probe.shared import masks

PATH = sys.argv[1]
torch.save({"w": torch.zeros(5)}, PATH)
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
stream = open(PATH, "rb")
stream.read(3)
random.seed(1)
torch.manual_seed(1)

def state():
    return {
        "random": random.getstate(), "torch": torch.get_rng_state().tolist(), "threads": [thread.name for thread in threading.enumerate()],
        "tasks": len(os.listdir("/proc/self/task")), "cuda": torch.cuda._initialized, "environ": dict(os.environ), "path": list(sys.path),
        "plugins": sorted(name for name in sys.modules if name.startswith(("torch", "mmengine", "habana", "intel"))),
        "imported": sorted(name for name in sys.modules if name.split(".")[0] in ("asyncio", "subprocess", "multiprocessing")),
        "position": (stream.tell(), os.lseek(stream.fileno(), 0, os.SEEK_CUR)), "versions": [p._version for p in model.parameters()],
        "values": [p.tolist() for p in model.parameters()], "grad": [p.grad for p in model.parameters()], "cwd": os.getcwd(),
        "descriptors": sorted(os.listdir("/proc/self/fd")), "meta_path": list(sys.meta_path), "hooks": list(sys.path_hooks),
        "grad_mode": torch.is_grad_enabled(), "default": torch.get_default_dtype(),
    }

def facts():
    return [
        accelerator_state.accelerators(), accelerator_state.mmengine_device(), accelerator_state.init_dist_branch(),
        checkpoint_file.look(PATH), checkpoint_file.look(stream), checkpoint_file.locations(PATH), checkpoint_file.locations(stream),
        call_site.call_path(), call_site.caller_package(),
        describe.describe([model, stream, torch.zeros(2)]),
        describe.describe_mapping({"a": model}),
        opening.environment(), failure.failure(ValueError("x")),
        placement.snapshot(model), placement.devices_only(model), masks.mask("token=a"), masks.mask_argv(sys.argv),
        versions.versions(), versions.installed(),
    ]

before = state()
taken = facts() and facts()
after = state()
different = [name for name in before if before[name] != after[name]]
assert not different, [(name, before[name], after[name]) for name in different]
assert len(taken) == 19 and taken[3].complete and taken[5] == ["cpu"]
pid = os.fork()
if pid == 0:
    try:
        facts()
        assert torch.cuda._initialized is False
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
print("untouched")
"""


def test_nothing_is_touched(run_python, tmp_path):
    """After every fact was taken, twice and once more in a fork, no device is initialised, nothing was imported, moved, started or drawn."""
    done = run_python(["-c", LOOK, tmp_path / "x.pth"], timeout=120)
    assert done.stdout == "untouched\n", done.stderr


def test_facts_need_no_torch(run_python):
    """Every module of facts is imported without importing torch, mmengine or wrapt."""
    code = (
        "import importlib, pkgutil, sys, ddp_probe.traced.facts as facts\n"
        "for module in pkgutil.iter_modules(facts.__path__): importlib.import_module('ddp_probe.traced.facts.' + module.name)\n"
        "print([name for name in ('torch', 'mmengine', 'wrapt', 'asyncio', 'numpy', 'importlib.metadata') if name in sys.modules])"
    )
    assert run_python(code).stdout == "[]\n"
