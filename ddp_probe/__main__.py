"""Makes ``python -m ddp_probe`` the command line."""

import contextlib
import sys


def _own_modules() -> "contextlib.AbstractContextManager[None]":
    """-m puts the folder of the job first on the path, and a msgspec.py may lie there. A broken package is still to be removed by `uninstall`."""
    try:
        from ddp_probe.activation.own_imports import own_modules
    except Exception:
        return contextlib.nullcontext()
    return own_modules()


if __name__ == "__main__":
    with _own_modules():
        from ddp_probe.cli import main

        sys.exit(main())
