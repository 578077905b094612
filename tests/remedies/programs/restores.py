"""Each remedy alone and all together, one after the other in one process, with restore() in between."""

import os
import pickle
import sys

import torch
import torch.distributed as dist
from checked import failure, main, saved_elsewhere
from mmengine import device as mmengine_device
from mmengine.dist import utils as dist_utils
from mmengine.fileio.backends.local_backend import LocalBackend
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

import ddp_probe
from ddp_probe import activation
from ddp_probe.shared.settings import REMEDIES


def originals():
    """Return everything that a remedy may change, by identity, with the names under which the job finds it too."""
    return {
        "save": vars(torch.serialization)["save"],
        "torch.save": vars(torch)["save"],
        "load": vars(torch.serialization)["load"],
        "torch.load": vars(torch)["load"],
        "set_device": vars(torch.cuda)["set_device"],
        "init_process_group": vars(distributed_c10d)["init_process_group"],
        "dist.init_process_group": vars(dist)["init_process_group"],
        "init_dist": vars(dist_utils)["init_dist"],
        "get_comm_device": vars(dist_utils)["get_comm_device"],
        "get_device": vars(mmengine_device)["get_device"],
        "utils.get_device": vars(mmengine_device.utils)["get_device"],
        "DistributedDataParallel": vars(DistributedDataParallel)["__init__"],
        "put": vars(LocalBackend)["put"],
    }


BEFORE = originals()
KINDS = {name: type(value).__name__ for name, value in BEFORE.items()}
SEEN = {
    "set-device": {"torch.cuda.set_device"},
    "backend": {"torch.distributed.distributed_c10d.init_process_group"},
    "rendezvous": {"torch.distributed.distributed_c10d.init_process_group", "mmengine.dist.utils.init_dist"},
    "mmengine-device": {"mmengine.device.utils.get_device", "mmengine.dist.utils.get_comm_device"},
    "move-model": {"torch.nn.parallel.distributed.DistributedDataParallel.__init__"},
    "device-ids": {"torch.nn.parallel.distributed.DistributedDataParallel.__init__"},
    "map-location": {"torch.serialization.load"},
    "weights-only": {"torch.serialization.load"},
    "settled-load": {"torch.serialization.load"},
    "atomic-save": {"torch.serialization.save", "mmengine.fileio.backends.local_backend.LocalBackend.put"},
    "timeout": {"torch.distributed.distributed_c10d.init_process_group"},
}


class Armed:
    """The process with these remedies, until the block ends."""

    def __init__(self, fix):
        self.fix = fix

    def __enter__(self):
        os.environ["DDP_PROBE_FIX"] = self.fix
        ddp_probe.activate()
        return self

    def overridden(self):
        """Return which remedies may change which calls, in the order in which they are asked."""
        patch_sites = activation.session().registry.patch_sites()
        return {str(patch_site.target): [patch.name for patch in patch_site.overrides] for patch_site in patch_sites if patch_site.overrides}

    def __exit__(self, *exc):
        certificate = ddp_probe.restore()
        assert certificate.ok, certificate.lines()
        del os.environ["DDP_PROBE_FIX"]
        now = originals()
        assert [name for name in BEFORE if now[name] is not BEFORE[name]] == []


def check_the_originals_are_no_wrappers():
    """What is compared are the originals themselves."""
    assert set(KINDS.values()) == {"function"}, KINDS


def check_each_remedy_alone():
    """A remedy alone may change exactly the calls that it names; restore() returns every original by identity."""
    assert set(SEEN) == set(REMEDIES)
    for name in REMEDIES:
        with Armed(name) as armed:
            assert armed.overridden() == {target: ["fix." + name] for target in SEEN[name]}


def check_all_together():
    """With auto each call is changed by those that name it, in the order of the table, also the third time round."""
    for _ in range(3):
        with Armed("auto") as armed:
            expected = {}
            for name in REMEDIES:
                for target in SEEN[name]:
                    expected.setdefault(target, []).append("fix." + name)
            assert armed.overridden() == expected


def check_without_any():
    """Without a name in the variable no call may be changed, whatever was armed before."""
    for fix in ("", "off", "0", " , "):
        with Armed(fix) as armed:
            assert armed.overridden() == {}


def check_order_and_spelling():
    """Names may stand in any order, with spaces, in capitals and twice: they are applied in the order of the table."""
    with Armed(" Settled-Load,map-location ,,WEIGHTS-ONLY,map-location") as armed:
        assert armed.overridden() == {"torch.serialization.load": ["fix.map-location", "fix.weights-only", "fix.settled-load"]}
    with Armed("timeout,auto") as armed:
        assert len(armed.overridden()) == len(set().union(*SEEN.values()))


def check_a_wrong_name_changes_nothing():
    """One wrong name among right ones, and no remedy is applied: a misspelt list is not half of what somebody wanted."""
    for fix in ("atomic-safe", "auto,atomic-safe", "set_device"):
        with Armed(fix) as armed:
            assert armed.overridden() == {}


def check_behaviour_comes_back():
    """After restore() what was changed fails again as it did before, and what was kept from then is the original again."""
    saved_elsewhere({"a": torch.zeros(2)}, "a.pth")
    before = [failure(torch.load, "a.pth"), failure(torch.cuda.set_device, 0)]
    kept = []
    with Armed("auto"):
        kept += [torch.load, torch.cuda.set_device, torch.save]
        torch.load("a.pth")
        torch.cuda.set_device(0)
        torch.save({}, "b.pth")
    assert [failure(torch.load, "a.pth"), failure(torch.cuda.set_device, 0)] == before
    assert [failure(kept[0], "a.pth"), failure(kept[1], 0)] == before
    inode = os.stat("b.pth").st_ino
    kept[2]({}, "b.pth")
    assert os.stat("b.pth").st_ino == inode  # In place; a renamed file has an inode of its own.


def check_pickles_by_name():
    """A function with a remedy pickles by its name, and comes back as what is there."""
    with Armed("auto"):
        data = pickle.dumps(torch.save)
        assert pickle.loads(data) is torch.save  # our own
    assert pickle.loads(data) is torch.save
    assert torch.save is BEFORE["torch.save"]


def check_modules_of_the_remedies():
    """Nothing of the remedies is imported until one is asked for."""
    assert OTHERS == []


ddp_probe.activate()
torch.save({}, os.devnull)
ddp_probe.restore()
OTHERS = [name for name in sys.modules if name.startswith("ddp_probe.traced.remedies")]

if __name__ == "__main__":
    main(globals())
