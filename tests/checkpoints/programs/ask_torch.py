"""Asks the installed torch: loads each file of a list, and lists what weights_only accepts.

`ask_torch.py FILES.json new|old` prints one JSON object: answers (file to [answer, answer with weights_only]), and with new the lists.
"""

import inspect
import json
import os
import re
import sys
import warnings
from typing import Any, Dict, List

import torch

warnings.simplefilter("ignore")


def answer(file: str, **options: Any) -> str:
    """Return 'loads', or the exception in a line."""
    try:
        torch.load(file, map_location="cpu", **options)
    except Exception as exc:
        return "%s: %s" % (type(exc).__name__, str(exc)[:200].replace("\n", " "))
    finally:
        # A load that has failed leaves its sparse tensors in a list that the next load would check.
        getattr(torch._utils, "_sparse_tensors_to_validate", []).clear()
    return "loads"


def lists() -> Dict[str, List[str]]:
    """Return the names and opcodes that weights_only accepts."""
    from torch import _weights_only_unpickler as unpickler

    registered = ["%s.%s" % (each.__module__, each.__qualname__) for each in torch.serialization.get_safe_globals()]
    opcodes = set(re.findall(r"\b([A-Z][A-Z0-9_]+)\[0\]", inspect.getsource(unpickler.Unpickler.load)))
    return {"default": sorted(unpickler._get_allowed_globals()), "registered": sorted(registered), "opcodes": sorted(opcodes)}


def main() -> None:
    """Answer, on a stdout of our own: what a pickle prints does not belong there."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with open(sys.argv[1], encoding="utf-8") as stream:
        files = json.load(stream)
    new = sys.argv[2] == "new"
    accepted = lists() if new else {}  # Before any file has made torch import more, which may register more.
    found = {file: [answer(file, weights_only=False), answer(file, weights_only=True)] if new else [answer(file), ""] for file in files}
    json.dump({"answers": found, **accepted}, out)


if __name__ == "__main__":
    main()
