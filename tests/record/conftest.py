"""A recorder in a folder of its own, and the one way in which these tests read a file back: through the schema."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Union

import msgspec
import pytest

from ddp_probe.shared import schema, settings
from ddp_probe.traced.record import Recorder

# What every child program of these tests starts with: `make(**extra)` builds a recorder in the folder run/ of its working directory.
PRELUDE = """
import os, sys
from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder

def make(**extra):
    extra = {"max_bytes": 1 << 20, "first": lambda: schema.ProcessStart(schema=schema.VERSION), **extra}
    return Recorder("run", lambda: "rank00003.host.%d" % os.getpid(), {"rank": 3, "host": "host", "run": "r1"}, **extra)
"""


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line is read back against the schema as it is written."""
    monkeypatch.setenv(settings.STRICT.name, "1")
    monkeypatch.setenv(settings.BROKEN.name, "")  # and what a hindered recorder leaves here does not outlive its test


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Recorder]:
    """A recorder of rank 3 whose run's folder is tmp_path / "run"."""

    def build(**extra: Any) -> Recorder:
        extra = {"max_bytes": 1 << 20, "first": lambda: schema.ProcessStart(schema=schema.VERSION), **extra}
        return Recorder(str(tmp_path / "run"), lambda: "rank00003.host.7", {"rank": 3, "world_size": 8, "host": "host", "run": "r1"}, **extra)

    return build


@pytest.fixture
def lines_of() -> Callable[[Union[str, Path, None]], List[Dict[str, Any]]]:
    """Every line of a file as a dict; each of them is decoded against the schema as well."""

    def read(path: Union[str, Path, None]) -> List[Dict[str, Any]]:
        assert path is not None
        data = Path(path).read_bytes()
        assert data.endswith(b"\n")
        lines = data[:-1].split(b"\n")
        for line in lines:
            msgspec.json.decode(line, type=schema.AnyEvent)
        return [json.loads(line) for line in lines]

    return read


@pytest.fixture
def program(run_python: Any, tmp_path: Path) -> Callable[..., Any]:
    """A program of its own that has `make`, run in tmp_path; it prints nothing."""

    def run(code: str, **keywords: Any) -> Any:
        done = run_python(PRELUDE + code, cwd=tmp_path, **keywords)
        assert done.stdout == "", done.stdout  # promise 5
        return done

    return run


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], List[Path]]:
    """The .jsonl files of the run, by name."""
    return lambda: sorted((tmp_path / "run").glob("*.jsonl"))
