"""Moves a package of this folder into a wheel, and installs the wheel into an environment of its own, job/, that sees all packages of this one."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

_SETUP = "from setuptools import setup\nsetup(name=%r, version='1.0', packages=[%r])\n"


def main(package: str) -> None:
    """Build and install it; what lies in the folder is gone, so that only the installed one can be imported."""
    Path("source").mkdir()
    shutil.move(package, "source")
    shutil.copy("pieces.py", str(Path("source", package)))
    Path("source", "setup.py").write_text(_SETUP % (package, package), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "job"], check=True)
    site = next(Path("job").glob("lib/python*/site-packages"))
    (site / "00_packages.pth").write_text("import site; site.addsitedir(%r)\n" % sysconfig.get_path("purelib"), encoding="utf-8")
    subprocess.run(["job/bin/python", "-m", "pip", "install", "-qq", "--no-index", "--no-deps", "--no-build-isolation", "./source"], check=True)
    shutil.rmtree("source")


if __name__ == "__main__":
    main(sys.argv[1])
