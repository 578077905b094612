"""Removes what install wrote, wherever this interpreter reads at start; nothing beyond the standard library."""

from typing import List

from ddp_probe.activation.installer import _files, locations
from ddp_probe.shared.errors import ProbeError


def uninstall() -> List[str]:
    """Remove every file of ours, also what an interrupted install left; return what went."""
    try:
        return [path for folder in locations.all_folders() for path in _remove(folder)]
    except OSError as exc:
        raise ProbeError(
            what="The activator is still in place: %s." % exc.filename,
            why="Removing it fails: %s." % exc.strerror,
            what_to_do="Run 'python -m ddp_probe uninstall' as the user who installed it. Until then: leave DDP_PROBE unset.",
        ) from exc


def _remove(folder: str) -> List[str]:
    with _files.alone(folder):
        return _files.remove(folder)
