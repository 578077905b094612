"""Undo of a code swap: the original code goes back into the function, checked by identity."""

from ddp_probe.traced.patching.intercept.code_swap import INLINED, Swap

from .certificate import Entry


def put_back(swap: Swap) -> Entry:
    """Put the original code back, unless somebody else has put in theirs."""
    function, label = swap.function, str(swap.target)
    if swap.shown is not None and vars(function).get(INLINED) is swap.shown:
        del vars(function)[INLINED]
    if function.__code__ is swap.code:
        function.__code__ = swap.original
        return Entry(swap.target, label, "code", function.__code__ is swap.original, "The original code is back.")
    if function.__code__ is swap.original:
        return Entry(swap.target, label, "code", True, "Somebody else put the original code back.")
    return Entry(swap.target, label, "overwritten", False, "Somebody put other code there, which stays.")
