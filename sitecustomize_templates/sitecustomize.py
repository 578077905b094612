# ddp_probe activator, version 4: written by 'python -m ddp_probe install', removed by 'python -m ddp_probe uninstall'.
"""Starts ddp_probe, then runs the sitecustomize that this file shadows as if this one were not there."""

import os
import sys

# Both are loaded in every interpreter; importlib.util, their public home, costs up to 4 ms at each start.
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder


def _activate():
    if not os.environ.get("DDP_PROBE"):
        return
    try:
        import ddp_probe_activator
    except ImportError:  # the file beside this one is gone
        return
    ddp_probe_activator.activate("sitecustomize")


def _is_ours(path):
    """Tell whether a file is one of ours, with nothing of anybody else in it."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except (OSError, TypeError, ValueError):  # inside a zip file, or no file at all
        return False
    return bool(lines) and lines[0].startswith(b"# ddp_probe activator, version ") and lines[-1].startswith(b"# ddp_probe activator, end")


def _shadowed():
    """Find the next sitecustomize on sys.path after this one; other copies of this one are passed over."""
    here = os.path.dirname(__file__)
    for entry in sys.path[sys.path.index(here) + 1 if here in sys.path else 0 :]:
        spec = PathFinder.find_spec("sitecustomize", [entry])
        if spec is not None and spec.loader is not None and not _is_ours(spec.origin):
            return spec
    return None


def _hand_over():
    """Put the shadowed module in our place and run it; what it raises reaches site as usual."""
    spec = _shadowed()
    if spec is None:  # what site expects, and ignores, if there is no sitecustomize
        raise ModuleNotFoundError("No module named 'sitecustomize'", name="sitecustomize")
    if not hasattr(spec.loader, "exec_module"):  # zipimport before Python 3.10; it would fill the module that it finds
        del sys.modules["sitecustomize"]
        spec.loader.load_module("sitecustomize")
        return
    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _run_shadowed():
    """Hand over. What others wrote into this file still has to run: what is raised before it is printed, as site does."""
    try:
        _hand_over()
    except Exception as exc:
        if _is_ours(__file__):
            raise
        if not (isinstance(exc, ImportError) and exc.name == "sitecustomize"):
            sys.stderr.write("Error in sitecustomize; set PYTHONVERBOSE for traceback:\n%s: %s\n" % (type(exc).__name__, exc))


_activate()
_run_shadowed()
# ddp_probe activator, end
