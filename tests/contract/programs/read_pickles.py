"""Reads, where the probe is not even importable, pickles that were made under it: each is the original."""

import functools
import importlib
import json
import pickle
import sys


def reach(name):
    """Return a target by its full name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            return functools.reduce(getattr, parts[cut:], importlib.import_module(".".join(parts[:cut])))
        except (ImportError, AttributeError):
            continue
    raise LookupError(name)


with open(sys.argv[1]) as _file:
    _pickles = json.load(_file)["pickles"]
_wrong = [name for name, both in _pickles.items() for text in both if pickle.loads(bytes.fromhex(text)) is not reach(name)]
print(json.dumps({"wrong": _wrong, "read": len(_pickles), "probe": [name for name in sys.modules if name.startswith("ddp_probe")]}))
