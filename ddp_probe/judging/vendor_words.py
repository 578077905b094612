"""The vendors' words in what a job prints, as parts of regular expressions: from their records, so that a rule names no vendor.

What torch itself says of CUDA, and what has no record, stays in the rules.
"""

import re
from itertools import chain
from typing import Iterable, List

from ddp_probe.shared.accelerators import ACCELERATORS, modules, runtime_variables

_WITH_PLUGIN = [accelerator for accelerator in ACCELERATORS if accelerator.modules]
_TYPES: List[str] = []
_BACKENDS: List[str] = []
for _accelerator in _WITH_PLUGIN:
    _TYPES += (_accelerator.name, *_accelerator.device_types)
    _BACKENDS += [name for name in _accelerator.backends if name not in _accelerator.device_types]


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in dict.fromkeys(words) if word)


MODULES = _any(modules())
"""The import names of all plugins."""

DEVICES = _any(_TYPES)
"""What torch calls the devices of all plugins: gcu, npu."""

CARDS = _any(kind.upper() for kind in _TYPES)
"""The same as a plugin writes it in a message: GCU, NPU."""

ATTRIBUTES = _any(accelerator.torch_attribute for accelerator in _WITH_PLUGIN)
"""What the plugins add to torch."""

COMMUNICATION = _any(name.upper() for name in _BACKENDS)
"""The plugins' backends as their messages and variables have them: ECCL, HCCL."""

BACKENDS = _any(chain.from_iterable((name, name.upper()) for name in _BACKENDS))
"""The plugins' backends in both spellings."""

VARIABLES = _any(runtime_variables())
"""The beginnings of the variables that decide how a vendor's runtime or backend works, CUDA's too."""

FITTING = ", ".join(
    "%s for %s" % (" or ".join(accelerator.backends), accelerator.device_types[0])
    for accelerator in _WITH_PLUGIN
    if accelerator.device_types and set(accelerator.backends) & set(_BACKENDS)
)
"""For a sentence, which backend goes with which device."""

PLUGIN_LIBRARY = r"(?:%s|torch_ccl|oneccl_bindings_for_pytorch|Ascend|habana_frameworks)[/\\][^\n]*\.so[\w.]*: undefined symbol: " % MODULES
"""The loader's words for a library of a plugin, or of the toolkit that it needs, which misses a symbol."""

SPOKEN_OF = r"\b(?:%s|%s|%s|(?:%s):\d)\b" % (MODULES, BACKENDS, _any(known.smi for known in _WITH_PLUGIN), DEVICES)
"""Matches a text about an accelerator that has a plugin: its module, its backend, its tool or one of its devices."""
