"""Several ranks and one checkpoint: who writes, who reads, at which lines, and for how long both at once, whoever catches the failure."""

import os
import re
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from run_pieces import PROGRAMS, line_of

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.rule import ERROR, WARNING
from ddp_probe.reading.load_run import load


@pytest.fixture
def raced(
    run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path
) -> Callable[..., Diagnosis]:
    """Let ranks race for a file, and judge the run."""

    def run(by: str, handling: str, ranks: int) -> Diagnosis:
        done = run_python([PROGRAMS / "race.py", by, handling, ranks, free_port()], env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=240)
        assert (done.returncode == 0) == (handling == "again"), done.stderr
        return judge(load([str(tmp_path / "runs")]))

    return run


def _replaces(folder: Path) -> bool:
    """Tell whether the installed safetensors gives a new file the name of the old one, instead of writing into it."""
    from safetensors.torch import save_file

    inodes = set()
    for _ in range(2):
        save_file({}, str(folder / "a.safetensors"))
        inodes.add(os.stat(str(folder / "a.safetensors")).st_ino)
    return len(inodes) > 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("handling", ["fails", "again"])
@pytest.mark.parametrize("by", ["torch", "mmengine", "safetensors"])
def test_both_lines_and_the_overlap_are_told(raced: Callable[..., Diagnosis], tmp_path: Path, by: str, handling: str, ranks: int) -> None:
    """The finding names a reader, its line, the writer's line and the milliseconds; a failure that the job caught and tried again is a warning."""
    pytest.importorskip(by)
    if by == "safetensors" and _replaces(tmp_path):
        pytest.skip("This safetensors writes beside the file and renames: there is no race.")
    finding = raced(by, handling, ranks).findings[0]
    assert (finding.id, finding.severity) == ("DDP503", WARNING if handling == "again" else ERROR)
    assert finding.ranks
    assert set(finding.ranks) <= set(range(1, ranks))
    told = re.search(
        r"rank (\d+) loads best\.pth at \S.*?race\.py:(\d+) while rank 0 writes it at \S.*?race\.py:(\d+).* overlap by (\d+\.\d) ms",
        finding.verdict,
        re.I,
    )
    assert told is not None, finding.verdict
    assert int(told[1]) in finding.ranks
    assert (int(told[2]), int(told[3])) == (line_of("race.py", "# line: %s loads" % by), line_of("race.py", "# line: %s saves" % by))
    assert float(told[4]) > 0
    met = "the last collective before the load is number 1, barrier at %s:%d" % (PROGRAMS / "race.py", line_of("race.py", "# line: meets"))
    assert [item.text for item in finding.evidence if item.text.startswith(met)], finding.evidence


def test_a_file_that_nobody_writes_is_not_a_race(run_python: Any, armed: Any, tmp_path: Path) -> None:
    """A file that was cut long before the load is called truncated."""
    program = "import torch\ntorch.save({'a': torch.zeros(99999)}, 'a.pth')\nopen('b.pth', 'wb').write(open('a.pth', 'rb').read()[:9999])\n"
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    (tmp_path / "t.py").write_text(program + "torch.load('b.pth')\n")
    done = run_python([tmp_path / "t.py"], env=armed(tmp_path / "runs", **place), cwd=tmp_path)
    assert done.returncode == 1
    assert [finding.id for finding in judge(load([str(tmp_path / "runs")])).findings] == ["DDP501"]
