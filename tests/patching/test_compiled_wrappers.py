"""torch.compile leaves the frames of wrappers alone: to compile them takes time, and may fail."""

import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

Armed = Callable[..., Dict[str, str]]

_JOB = """
import io, torch
from torch._dynamo.utils import counters

def saved(x):
    buffer = io.BytesIO()
    torch.save(x * 2, buffer)
    buffer.seek(0)
    return torch.load(buffer) + 1

assert torch.compile(saved, backend="eager")(torch.arange(2.0)).tolist() == [1.0, 3.0]
print(counters["frames"]["total"])
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="torch 1.12 has no torch.compile")
def test_no_frame_of_ours_is_compiled(armed: Armed, run_python: Any, tmp_path: Path) -> None:
    """A function that saves and loads has about as many compiled frames; 172 more if ours are not hidden."""
    frames = []
    for root in (None, tmp_path / "runs"):
        done = run_python(_JOB, env=armed(root, RANK="0", WORLD_SIZE="1", LOCAL_RANK="0"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        frames.append(int(done.stdout))
    assert list((tmp_path / "runs").rglob("rank*.jsonl"))
    assert frames[0] <= frames[1] < frames[0] + 10
