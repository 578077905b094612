"""The folders that matter: those that this interpreter reads at start, the templates, the package itself."""

import os
import site
import sys
import sysconfig
from typing import List

from ddp_probe.shared.errors import ProbeError
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import quoted

RUN_INSTEAD = say("'python -m ddp_probe run -- COMMAND' works without writing anything.")


def or_run() -> Text:
    """Return RUN_INSTEAD as the last of several remedies."""
    return say("Or: {remedy}", remedy=RUN_INSTEAD)


def home() -> str:
    """Return the folder that the package lies in."""
    return os.path.dirname(_package())


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def templates() -> str:
    """Return the folder of the files that install and run put in place."""
    for parent in (_package(), home()):  # installed; or a checkout: the folder lies beside the package
        folder = os.path.join(parent, "sitecustomize_templates")
        if os.path.isfile(os.path.join(folder, "ddp_probe_activator.py")):
            return folder
    raise ProbeError(
        what=say("The folder sitecustomize_templates is missing."),
        why=say("It belongs to the package, beside or inside {folder}.", folder=_package()),
        what_to_do=say("Install ddp-probe again."),
    )


def all_folders() -> List[str]:
    """Return every folder that install may have written to, for this interpreter."""
    found = _package_folders()
    user = getattr(site, "getusersitepackages", None)  # missing in the site of old virtualenvs
    return _distinct(found + ([user()] if user else []))


def _package_folders() -> List[str]:
    known = getattr(site, "getsitepackages", None)
    return [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")] + (known() if known else [])


def _distinct(folders: List[str]) -> List[str]:
    seen = {os.path.realpath(folder): folder for folder in reversed(folders) if os.path.isdir(folder)}
    return list(reversed(list(seen.values())))


def target_folder() -> str:
    """Return the folder that install writes to; refuse where there is none, or it is read-only."""
    if not sys.executable:
        raise ProbeError(
            what=say("There is no interpreter to install for."),
            why=say("sys.executable is empty."),
            what_to_do=RUN_INSTEAD,
        )
    folders = _distinct(_package_folders())
    if not folders:
        raise ProbeError(
            what=say("{python} has no site-packages folder.", python=quoted(sys.executable)),
            why=say("{folder} does not exist.", folder=sysconfig.get_path("purelib")),
            what_to_do=joined([say("Create a virtual environment."), or_run()]),
        )
    if os.access(folders[0], os.W_OK | os.X_OK):
        return folders[0]
    user = _users_folder()
    if not user:
        raise read_only(folders[0])
    return user


def _users_folder() -> str:
    """Return the site-packages of this user, from which Python reads .pth files too; empty if this interpreter does not, or cannot."""
    if not getattr(site, "ENABLE_USER_SITE", False):
        return ""
    folder = site.getusersitepackages()
    above = folder
    while not os.path.isdir(above) and os.path.dirname(above) != above:
        above = os.path.dirname(above)
    return folder if os.access(above, os.W_OK | os.X_OK) else ""


def is_users(folder: str) -> bool:
    """Tell whether a folder is the site-packages of this user."""
    ask = getattr(site, "getusersitepackages", None)
    return ask is not None and os.path.realpath(folder) == os.path.realpath(ask())


def make(folder: str) -> None:
    """Make a user's folder that is not there yet."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as exc:
        raise read_only(folder) from exc


def read_only(folder: str) -> ProbeError:
    """Return the refusal for a folder that this user may not write to."""
    template = "The folder is read-only for this user, and the activator has to lie there to be read at start."
    return ProbeError(
        what=say("Nothing is installed: {folder} cannot be written to.", folder=folder),
        why=say(template),
        what_to_do=joined([RUN_INSTEAD, say("Or: install into a virtual environment of your own.")]),
    )
