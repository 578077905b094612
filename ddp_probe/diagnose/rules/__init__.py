"""The rules, one file each; walking the package is what lists them. Ids and slugs are for ever: RETIRED keeps those of rules that are gone."""

import importlib
import pkgutil
from functools import lru_cache
from typing import Any, Dict, Tuple

from ddp_probe.diagnose.rule import Rule

RETIRED: Dict[str, str] = {}  # id to slug


@lru_cache(maxsize=1)
def modules() -> Tuple[Any, ...]:
    """Return the modules of all rules, by id."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    loaded = [importlib.import_module("%s.%s" % (__name__, name)) for name in names]
    return tuple(sorted(loaded, key=lambda module: rule_of(module).id))


def rule_of(module: Any) -> Rule:
    """Return the RULE of a rule's module."""
    rule: Rule = module.RULE
    return rule
