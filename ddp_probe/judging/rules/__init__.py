"""The rules, one file each; walking the package is what lists them. Ids and slugs never change: RETIRED keeps those of rules that are gone.

A file has a check(). Of a cause that is known by its words alone it has none: the texts in `printed` decide, in an exception that a process died of
or in a plain log, and the file is data. A cause that needs more than its words, such as another event or another rank, needs a check().
"""

import importlib
import pkgutil
from functools import lru_cache
from typing import Any, Dict, Tuple

from ddp_probe.judging.rule import Rule

RETIRED: Dict[str, str] = {}  # id to slug


@lru_cache(maxsize=1)
def modules() -> Tuple[Any, ...]:
    """Return the modules of all rules, by id."""
    names = [found.name for found in pkgutil.iter_modules(__path__, __name__ + ".")]
    return tuple(sorted(map(importlib.import_module, names), key=lambda module: rule_of(module).id))


def rule_of(module: Any) -> Rule:
    """Return the RULE of a rule's module."""
    rule: Rule = module.RULE
    return rule
