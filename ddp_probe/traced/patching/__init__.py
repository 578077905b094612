"""Puts the probe in the way of the job's calls, and takes it out again.

Three things live here, each in a package of its own:

- `intercept/` sits in the call path: the wrapper in place of an original, the one frame that stays on the stack, and the dispatch to observers.
- `undo/` knows what was patched and puts it back: the registry of patches, the census of modules, the holders of a wrapper, the certificate.
- `changes/` may change a call: an override says what to change, a plan carries it out. Without DDP_PROBE_FIX there is no override.

What the three share lies beside them: a `Target` names a callable, a `Slot` is the attribute that holds it, a `PatchSite` is one wrapper in one
slot, a `Patch` is one observer at one site, and a `Call` is what an observer sees. The guard keeps our faults from the job, the switch turns all
wrappers off. Imports go one way: changes and undo use the shared modules, intercept uses changes, and undo uses intercept.
"""

from .call import Call
from .changes.change import Change
from .changes.override import Override
from .frames import clean_exception, clean_traceback, is_our_frame
from .guard import Guard, guard
from .observer import Observer
from .patch import Patch
from .switch import Switch, switch
from .target import Target
from .undo.certificate import Certificate, Entry
from .undo.chain import overwritten_by
from .undo.registry import PatchRegistry

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
