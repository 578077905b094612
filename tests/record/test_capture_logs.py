"""capture_logs: what the probe would write, for the tests of people who write a probe."""

import re
from pathlib import Path
from typing import Any, Callable

import pytest

from ddp_probe.shared import schema
from ddp_probe.structlog import capture_logs


def test_lines_are_captured_and_not_written(make: Callable[..., Any], lines_of: Callable[..., Any]) -> None:
    """Inside, lines are dicts with envelope and fields and none reaches the file; outside, the next line follows without a gap."""
    recorder = make()
    recorder.point(schema.SetDevice(device="1"))
    with capture_logs() as lines:
        recorder.begin(schema.Load(file=None)).end()
    recorder.point(schema.SetDevice(device="2"))
    assert [(line["event"], line["phase"], line["rank"], line["span"]) for line in lines] == [
        ("checkpoint.load", "begin", 3, 1),
        ("checkpoint.load", "end", 3, 1),
    ]
    written = lines_of(recorder.path)
    assert [line["event"] for line in written] == ["process.start", "device.set", "device.set"]
    assert [line["seq"] for line in written] == [0, 1, 2]


def test_the_block_of_the_page_runs(run_python: Any, clean_env: Callable[..., Any], repo: Path, tmp_path: Path) -> None:
    """The test that docs/contributing/adding.md shows passes in a process that has armed itself."""
    pytest.importorskip("torch")
    text = (repo / "docs" / "contributing" / "adding.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    program = "import pathlib, ddp_probe\nddp_probe.activate()\nimport torch\n%s\ntest_a_load_is_recorded(pathlib.Path('.'))\n" % block
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"))
    done = run_python(program, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
