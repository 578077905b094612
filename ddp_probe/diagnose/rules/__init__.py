"""The rules, one file each; walking the package is what lists them. Ids and slugs never change: RETIRED keeps those of rules that are gone.

A file in this folder has a check(). A file in by_words/ has none: its texts are its check. recorded/ holds logs of their examples.
"""

import importlib
import pkgutil
from functools import lru_cache
from typing import Any, Dict, Iterator, Tuple

from ddp_probe.diagnose.rule import Rule
from ddp_probe.diagnose.rules import by_words

RETIRED: Dict[str, str] = {}  # id to slug


@lru_cache(maxsize=1)
def modules() -> Tuple[Any, ...]:
    """Return the modules of all rules, by id."""
    names = [*_files(__path__, __name__), *_files(by_words.__path__, by_words.__name__)]
    return tuple(sorted(map(importlib.import_module, names), key=lambda module: rule_of(module).id))


def _files(path: Any, package: str) -> Iterator[str]:
    """Yield the names of the rules in a folder."""
    for found in pkgutil.iter_modules(path, package + "."):
        if not found.ispkg:
            yield found.name


def rule_of(module: Any) -> Rule:
    """Return the RULE of a rule's module."""
    rule: Rule = module.RULE
    return rule
