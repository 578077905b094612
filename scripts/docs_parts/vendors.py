"""Prints the vendors' modules into the import contract of setup.cfg, from ddp_probe/shared/accelerators.py."""

import re
from pathlib import Path

from ddp_probe.shared import accelerators

_SETUP = Path(__file__).resolve().parent.parent.parent / "setup.cfg"
_FORBIDDEN = re.compile(r"(?s)(\[importlinter:contract:no-framework\].*?\nforbidden_modules =\n)(?:    \S+\n)+")


def setup_cfg() -> str:
    """Return setup.cfg with the modules that the package must never import."""
    names = sorted({"mmengine", "torch", *accelerators.modules()})
    text, count = _FORBIDDEN.subn(lambda found: found.group(1) + "".join("    %s\n" % name for name in names), _SETUP.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit("setup.cfg has no contract no-framework with forbidden_modules. Put [importlinter:contract:no-framework] back.")
    return text
