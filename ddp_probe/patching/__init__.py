"""Apply, undo, and know: the ledger of everything the probe puts in the way of a call."""

from .call import Call
from .certificate import Certificate, Entry
from .frames import clean_exception, clean_traceback, is_our_frame
from .guard import Guard, guard
from .ledger import Ledger
from .observer import Observer
from .patch import Patch
from .switch import Switch, switch
from .target import Target

__all__ = [
    "Call",
    "Certificate",
    "Entry",
    "Guard",
    "Ledger",
    "Observer",
    "Patch",
    "Switch",
    "Target",
    "clean_exception",
    "clean_traceback",
    "guard",
    "is_our_frame",
    "switch",
]
