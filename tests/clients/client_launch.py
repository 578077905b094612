"""What a launch of a client needs: an interpreter with the commands and stand-ins beside it, and variables that keep the frameworks quiet."""

import subprocess
import sys
import sysconfig
from pathlib import Path

_COMMANDS = ("accelerate", "coverage", "ddtrace-run", "deepspeed", "opentelemetry-instrument", "pytest", "torchrun")
_LINKED = ("mpirun",)  # Those that are not scripts of Python.
_HERE = Path(__file__).resolve().parent

QUIET = {
    "ACCELERATE_USE_CPU": "1",
    "DD_TRACE_ENABLED": "false",
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # mpirun counts the cores.
    "PYTHONDONTWRITEBYTECODE": "",
    "RECORDED": str(_HERE / "recorded"),
    "PYTHONUNBUFFERED": "",  # Else print writes a line and its end apart, and another rank's may come between.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OTEL_SDK_DISABLED": "true",
    "TOKENIZERS_PARALLELISM": "false",
}


def _script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def interpreter_in(place: Path) -> Path:
    """Build an environment that sees all packages of this one; return its bin folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=60)
    site = next(place.glob("lib/python*/site-packages"))
    # Before what install puts there, which looks for ddp_probe as soon as it is read.
    (site / "00_packages.pth").write_text("import site; site.addsitedir(%r)\n" % sysconfig.get_path("purelib"), encoding="utf-8")
    for name in _COMMANDS:  # Each begins with a line that names the interpreter.
        text = Path(sysconfig.get_path("scripts"), name).read_text(encoding="utf-8")
        _script(place / "bin" / name, "#!%s\n%s" % (place / "bin" / "python", text.split("\n", 1)[1]))
    for name in _LINKED:
        _script(place / "bin" / name, '#!/bin/sh\nexec "%s" "$@"\n' % Path(sysconfig.get_path("scripts"), name))
    for file in (_HERE / "stand_ins").iterdir():
        _script(place / "bin" / file.name, file.read_text(encoding="utf-8").replace("/usr/bin/env python3", str(place / "bin" / "python")))
    return place / "bin"
