"""What a test needs to run on a stand-in for cards; `from accelerator.fixtures import gcu_env, labelled_env` in a conftest of tests/."""

import os
import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

_HERE = Path(__file__).resolve().parent


def _reachable(folder: Path, clean_env: Callable[..., Dict[str, str]]) -> Dict[str, str]:
    """A PYTHONPATH with a folder before what a clean environment has there."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [clean_env().get("PYTHONPATH")])])}


@pytest.fixture(scope="session")
def gcu_env(clean_env: Callable[..., Dict[str, str]], run_python: Callable[..., Any]) -> Dict[str, str]:
    """For clean_env(**gcu_env): `import torch_gcu` gives torch eight cards and the backend eccl. Compiled once per machine, 10 to 25 s."""
    torch_version = metadata.version("torch")
    if (1, 12) < tuple(int(part) for part in re.findall(r"\d+", torch_version)[:2]) < (2, 4):
        pytest.skip("The cards are simulated on torch 1.12, and on torch 2.4 or newer; this is %s" % torch_version)
    if shutil.which("g++") is None:
        pytest.skip("The simulated cards are compiled: needs g++")
    env = _reachable(_HERE / "plugin", clean_env)
    done = run_python(["-m", "torch_gcu.build"], env=clean_env(**env), timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return env


@pytest.fixture(scope="session")
def labelled_env(clean_env: Callable[..., Dict[str, str]]) -> Dict[str, str]:
    """For clean_env(**labelled_env): `import labelled`, on any torch, without a compiler."""
    return _reachable(_HERE, clean_env)
