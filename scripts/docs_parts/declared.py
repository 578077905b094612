"""Prints ddp_probe/shared/declared.py: what every interpreter has to know of the probes and the remedies before their files may be loaded."""

import json
from typing import Any, Iterable, Iterator, Tuple

from docs_parts import declarations

_WIDTH = 150
_HEAD = '''"""What probes and remedies declare in their own files, as plain data: every interpreter needs it before those may be loaded.

Printed by scripts/render_docs from ddp_probe/traced/probes and ddp_probe/traced/remedies. Change those, then run scripts/render_docs.
"""
'''


def declared_py() -> str:
    """Return ddp_probe/shared/declared.py."""
    remedies = declarations.remedies()
    lines = [
        _HEAD,
        "# probe, module, qualname, roles, optional",
        *table("TARGETS", [row for probe in declarations.probes() for row in targets(probe)]),
        "",
        "# In the order in which they are applied to one call.",
        *table("REMEDIES", [remedy.word for remedy in remedies]),
        "",
        "# remedy, module, qualname",
        *table("REMEDY_TARGETS", [(remedy.word, *target.split(":")) for remedy in remedies for target in remedy.targets]),
    ]
    return "\n".join(lines) + "\n"


def targets(probe: Any) -> Iterator[Tuple[Any, ...]]:
    """Yield the rows of one probe."""
    for optional, each in ((False, probe.targets), (True, probe.optional)):
        for target in each:
            module, _, qualname = target.partition(":")
            yield probe.name, module, qualname, tuple(probe.roles), optional


def table(name: str, rows: Iterable[Any]) -> Iterator[str]:
    """Yield a tuple of rows as ruff lays it out."""
    yield "%s = (" % name
    for row in rows:
        line = "    %s," % literal(row)
        if len(line) <= _WIDTH:
            yield line
        else:
            yield from ("    (", *("        %s," % literal(item) for item in row), "    ),")
    yield ")"


def literal(value: Any) -> str:
    """Return a value as source, texts in double quotes."""
    if isinstance(value, tuple):
        return "(%s)" % ("".join(literal(item) + ", " for item in value).rstrip() if len(value) == 1 else ", ".join(literal(item) for item in value))
    return json.dumps(value) if isinstance(value, str) else repr(value)
