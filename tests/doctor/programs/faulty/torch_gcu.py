"""The simulated accelerator with faults: first on PYTHONPATH, it takes the place of the plugin, and the plugin takes its place.

CARD_FAULTS is a list such as `hang:1,crash:2`: the physical card 1 never returns from set_device, and card 2 ends the process there.
With RANK_FAULT, rank 1 hangs in `set_device:1`, is killed in `init_process_group:1` or crashes in `all_reduce:1`. UUIDS gives each card a UUID.
"""

import ctypes
import importlib
import os
import signal
import sys
from types import SimpleNamespace


def _faults():
    """Return the fault of each number that has one."""
    return dict(reversed(entry.split(":")) for entry in os.environ.get("CARD_FAULTS", "").split(",") if entry)


def _physical(index):
    visible = os.environ.get("TOPS_VISIBLE_DEVICES", "")
    return visible.split(",")[index] if visible else str(index)


def _rank_fails_in(stage):
    return os.environ.get("RANK_FAULT", "") == "%s:%s" % (stage, os.environ.get("RANK"))


def _hang():
    """Hang in C with the interpreter's lock held, as a driver does."""
    ctypes.PyDLL(None).pause()


def _crash():
    ctypes.string_at(0)


def _set_device(original):
    def set_device(index):
        fault = _faults().get(_physical(index))
        if fault == "hang" or _rank_fails_in("set_device"):
            _hang()
        if fault == "crash":
            _crash()
        original(index)

    return set_device


def _fails(original, stage, fail):
    def call(*args, **options):
        if _rank_fails_in(stage):
            fail()
        return original(*args, **options)

    return call


sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
del sys.modules["torch_gcu"]
_real = importlib.import_module("torch_gcu")
_real.set_device = _real.gcu.set_device = _set_device(_real.gcu.set_device)
_group = _real.eccl.ProcessGroupEccl
_group.__init__ = _fails(_group.__init__, "init_process_group", lambda: os.kill(os.getpid(), signal.SIGKILL))
_group.allreduce = _fails(_group.allreduce, "all_reduce", _crash)
if os.environ.get("UUIDS"):
    _real.get_device_properties = _real.gcu.get_device_properties = lambda index: SimpleNamespace(uuid="GCU-%s" % _physical(index))
