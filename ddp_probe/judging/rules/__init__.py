"""The rules, one file each; walking the package is what lists them. Ids and slugs never change: RETIRED keeps those of rules that are gone.

A file has a check(). Of a cause that is known by its words alone it has none: the texts in `printed` decide, in an exception that a process died of
or in a plain log, and the file is data. A cause that needs more than its words, such as another event or another rank, needs a check().
"""

import importlib
import os
from functools import lru_cache
from typing import Any, Dict, List, Optional, Tuple

from ddp_probe.judging.rule import RESTARTS, Rule
from ddp_probe.shared.regular_files import open_text

RETIRED: Dict[str, str] = {}  # id to slug


@lru_cache(maxsize=1)
def modules() -> Tuple[Any, ...]:
    """Return the modules of all rules, by id."""
    return tuple(sorted(map(_load, _names()), key=lambda module: rule_of(module).id))


def named(name: str) -> Optional[Any]:
    """Return the module of the rule with this id or slug, in lower case; no other is imported."""
    names, file = _names(), name.replace("-", "_")
    file_name = file if file in names else next((other for other in names if 'id="%s"' % name.upper() in _source(other)), None)
    return None if file_name is None else _load(file_name)


def _names() -> List[str]:
    return [file[:-3] for file in os.listdir(__path__[0]) if file.endswith(".py") and not file.startswith("_")]


def _load(name: str) -> Any:
    module = importlib.import_module("%s.%s" % (__name__, name))
    checked(rule_of(module))
    return module


def checked(rule: Rule) -> Rule:
    """Return a rule that says whether a restart helps; refuse any other."""
    for word in (rule.restart, *(printed.restart or rule.restart for printed in rule.printed)):
        if word not in RESTARTS:
            raise ValueError("%s: restart=%r" % (rule.slug, word))  # RESTARTS has the words that are known.
    return rule


def _source(name: str) -> str:
    with open_text(os.path.join(__path__[0], name + ".py")) as file:
        return file.read()


def rule_of(module: Any) -> Rule:
    """Return the RULE of a rule's module."""
    rule: Rule = module.RULE
    return rule
