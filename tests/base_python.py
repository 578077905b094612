"""The interpreter that this environment was made from, for environments that tests make themselves.

Debian and Ubuntu bring a sitecustomize.py in the folder of the standard library. It comes before each one in site-packages, so that the form of the
activator that takes this name works in no environment of such a Python. Tests of that form get the same interpreter without the file.
"""

import os
import shutil
import sys
from pathlib import Path


def path() -> str:
    """Return the interpreter as it is."""
    return os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])


def without_sitecustomize(folder: Path) -> str:
    """Return it if its standard library has no sitecustomize.py; else make, in a new folder, one that has all but this file."""
    library = Path(os.__file__).parent
    if not (library / "sitecustomize.py").exists():
        return path()
    ours = folder / "lib" / library.name
    ours.mkdir(parents=True)
    for entry in library.iterdir():
        if entry.name not in ("sitecustomize.py", "__pycache__"):
            (ours / entry.name).symlink_to(entry)
    (folder / "bin").mkdir()
    return shutil.copy(os.path.realpath(path()), str(folder / "bin" / library.name))
