"""Says which device mmengine chooses, after importing a vendor's module, if one is named."""

import importlib
import importlib.util
import sys
from typing import Any

from ddp_probe.doctor.programs._say import end_with_parent, say


def main(module: str = "") -> None:
    """Import and answer."""
    if importlib.util.find_spec("mmengine") is None:
        say(installed=False)
        return
    if module:
        importlib.import_module(module)
    device: Any = importlib.import_module("mmengine.device")
    say(installed=True, version=str(importlib.import_module("mmengine").__version__), device=str(device.get_device()))


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
