"""Promise 4: it never initialises a device: it reads what is imported and initialised, and otherwise the environment and /dev."""

import json

from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name


def test_no_device_is_initialised(training):
    """After a whole job torch.cuda and torch.xpu are uninitialised, and no device file is open."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["cuda"] == plain["cuda"] == [False, False]
        assert probed["devices"] == plain["devices"] == []


def test_no_vendor_module_is_imported(training):
    """Vendors' modules that lie on the path are noticed in every rank, and not imported."""
    assert training["probed"].imported == ""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["vendors"] == plain["vendors"]
        assert "torch_gcu" not in probed["vendors"]
    for path in training["probed"].runs.rglob("rank*.jsonl"):
        start = json.loads(path.read_text().split("\n", 1)[0])
        assert {"name": "gcu", "importable": True}.items() <= next(card for card in start["accelerators"] if card["name"] == "gcu").items()


_BESIDE = """
import ddp_probe, gc, sys, threading, time, weakref
ddp_probe.activate()
import torch, torch_gcu, torch.distributed as dist
from torch_gcu import gcu
asked = []
for name in ("synchronize", "mem_get_info", "empty_cache", "init", "set_device"):
    setattr(gcu, name, lambda *given, name=name, kept=getattr(gcu, name, None): (asked.append(name), kept(*given) if kept else None)[1])
from ddp_probe.traced.device_states import device_memory
before = device_memory()
assert before == ("", []) and not gcu.is_initialized(), before
device = gcu.DEVICE_TYPE
gcu.set_device(3)
del asked[:]
kept = [torch.empty(1 << 20, device=device + ":3")]
seen, stop = [], threading.Event()
def sample():
    while not stop.is_set():
        current, found = device_memory(device + ":3", ask=False)
        seen.append((current, [(one.device, one.allocated) for one in found]))
readers = [threading.Thread(target=sample) for _ in range(2)]
[reader.start() for reader in readers]
until = time.monotonic() + 1.5
rounds = 0
while time.monotonic() < until or len(seen) < 100:
    one = torch.empty(1 << 18, device=device + ":3")
    gone = weakref.ref(one)
    del one
    assert gone() is None, "a tensor is held"
    rounds += 1
stop.set()
[reader.join() for reader in readers]
assert asked == ["init"] * asked.count("init"), asked
allowed = [4 << 20, 5 << 20]
wrong = [one for one in seen if one[0] != device + ":3" or [name for name, _ in one[1]] != [device + ":3"] or one[1][0][1] not in allowed]
print(rounds > 10, len(seen) >= 100, wrong[:3], sorted(set(asked) - {"init"}))
"""


def test_memory_is_read_beside_allocations(run_python, clean_env, gcu_env, tmp_path):  # noqa: F811  # the fixture, by its name
    """While a thread allocates, two others read the counters: each figure is one that was true, nothing is asked to wait, and no tensor is held."""
    done = run_python(_BESIDE, env=clean_env(**gcu_env, DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "True True [] []"), done.stderr
