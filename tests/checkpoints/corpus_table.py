"""The files that make_corpus.py wrote with torch 2.13 (new) and 1.12 (legacy), and what torch said about each."""

import json
from pathlib import Path
from typing import Any, Dict

CORPUS = Path(__file__).resolve().parent / "corpus"


def truth() -> Dict[str, Any]:
    """Return `STACK/FILE` to the tensors in it, by name: shape, type of numbers, device."""
    found = {}
    for stack in ("new", "legacy"):
        rows = json.loads((CORPUS / stack / "truth.json").read_text(encoding="utf-8"))
        found.update({"%s/%s" % (stack, file): tensors for file, tensors in rows.items()})
    return found
