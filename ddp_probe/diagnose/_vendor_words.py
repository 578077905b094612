"""The vendors' words in what a job prints, as regular expressions: from their records, so that a rule names no vendor."""

import re
from typing import Iterable

from ddp_probe.accelerators import ACCELERATORS

_WITH_PLUGIN = tuple(known for known in ACCELERATORS if known.modules)
_BACKENDS = tuple(name for known in _WITH_PLUGIN for name in known.backends if name not in known.device_types)


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in dict.fromkeys(words) if word)


MODULES = _any(module for known in _WITH_PLUGIN for module in known.modules)
"""The import names of all plugins."""

SPOKEN_OF = r"\b(?:%s|%s|%s|(?:%s):\d)\b" % (
    MODULES,
    _any(form for name in _BACKENDS for form in (name, name.upper())),
    _any(known.smi for known in _WITH_PLUGIN),
    _any(kind for known in _WITH_PLUGIN for kind in known.device_types),
)
"""A text speaks of an accelerator that has a plugin: of its module, its backend, its tool or one of its devices."""
