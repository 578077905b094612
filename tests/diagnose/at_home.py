"""A recorded run in which the job's source is where the run says that it is, as on the machine of the job."""

import shutil
from pathlib import Path

from registry import FOLDER


def at_home(folder: Path, copy: Path) -> Path:
    """Return a copy in which the paths of the programs are those of this checkout, so that the job's source is there as on its own machine."""
    shutil.copytree(folder, copy)
    for path in [path for path in copy.rglob("*") if path.is_file()]:
        path.write_text(path.read_text(encoding="utf-8").replace("/train/", "%s/" % FOLDER), encoding="utf-8")
    return copy
