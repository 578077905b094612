"""Prints docs/settings.md from ddp_probe/shared/settings.py."""

from typing import Iterable, Iterator

from ddp_probe.shared import settings
from docs_parts.markdown import NOTE, prose


def settings_page() -> str:
    """Return docs/settings.md."""
    mine = [setting for setting in settings.SETTINGS if not setting.internal]
    others = [setting for setting in settings.SETTINGS if setting.internal]
    lines = [
        NOTE % "ddp_probe/shared/settings.py",
        "# Settings",
        "",
        "All of them are environment variables. One that cannot be read counts as its default, and the first line of each file says so.",
        "",
        *settings_table(mine),
        "",
        "## Set by the probe itself",
        "",
        "These carry what one process of a job tells another. Leave them alone.",
        "",
        *settings_table(others),
    ]
    return "\n".join(lines) + "\n"


def settings_table(chosen: Iterable[settings.Setting]) -> Iterator[str]:
    """Yield a table of settings."""
    yield "| variable | default | meaning |"
    yield "|---|---|---|"
    for setting in chosen:
        yield "| `%s` | %s | %s |" % (setting.name, "`%s`" % setting.default if setting.default else "unset", prose(setting.doc))
