"""Puts the probe in the way of the job's calls, and takes it out again.

- In the call path: the wrapper in place of an original, its one frame on the stack (`_importlib_bootstrap_frame`, a file name that `warnings` passes
  over when it looks for the line to blame), and the dispatch to observers. For the ledger the code of a function is swapped instead.
- To undo it: the registry of patches, the holders of a wrapper, what others built around it (`chain`), and the certificate.
- To change a call: an override says what to change, and a plan carries it out. Without DDP_PROBE_FIX there is no override.

A `Target` names a callable, a `Slot` is the attribute that holds it, a `PatchSite` is one wrapper in one slot, a `Patch` is one observer at one
site, and a `Call` is what an observer sees. The guard keeps our faults from the job, the switch turns all wrappers off.
"""

from ddp_probe.traced.patching.call import Call, Observer, Switch, Target, switch
from ddp_probe.traced.patching.certificate import Certificate, Entry
from ddp_probe.traced.patching.changes import Change, Override
from ddp_probe.traced.patching.frames import clean_exception, clean_traceback, is_our_frame
from ddp_probe.traced.patching.guard import Guard, guard
from ddp_probe.traced.patching.patch import Patch
from ddp_probe.traced.patching.registry import PatchRegistry
from ddp_probe.traced.patching.wrapped_chain import overwritten_by

__all__ = [
    "Call",
    "Certificate",
    "Change",
    "Entry",
    "Guard",
    "Observer",
    "Override",
    "Patch",
    "PatchRegistry",
    "Switch",
    "Target",
    "clean_exception",
    "clean_traceback",
    "guard",
    "is_our_frame",
    "overwritten_by",
    "switch",
]
