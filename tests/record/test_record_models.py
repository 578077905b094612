"""models/<digest>.json: once, whole, and never through a link."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder

Make = Callable[..., Recorder]
_ROWS: List[Any] = [["layer.weight", [10, 10], "float32", True], ["layer.bias", [10], "float32", True]]


def _models(tmp_path: Path) -> List[str]:
    return sorted(path.name for path in (tmp_path / "run" / "models").iterdir())


def test_a_model_is_written_once(make: Make, tmp_path: Path) -> None:
    """The same digest a second time writes nothing; another one is another file; no draft stays behind."""
    recorder = make()
    recorder.model("aa11", _ROWS)
    file = tmp_path / "run" / "models" / "aa11.json"
    before = file.stat()
    recorder.model("aa11", [])
    make().model("aa11", [])
    recorder.model("bb22", _ROWS)
    assert json.loads(file.read_text(encoding="utf-8")) == _ROWS
    assert file.read_text(encoding="utf-8").count("\n") == len(_ROWS) + 2  # a row a line, for diff
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert _models(tmp_path) == ["aa11.json", "bb22.json"]
    assert recorder.path is None


def test_ranks_that_race_for_one_model(tmp_path: Path, clean_env: Callable[..., Dict[str, str]]) -> None:
    """Four processes write the same thirty models at the same moment: each file is whole, no draft is left, nobody loses or complains."""
    code = """
import sys
from ddp_probe.traced.record import Recorder
recorder = Recorder("run", lambda: "rank", {}, max_bytes=1 << 26)
rows = [["p%d" % n, [1, 2, 3], "float32", True] for n in range(3000)]
print("ready", flush=True)
sys.stdin.read()
for number in range(30):
    recorder.model("d%d" % number, rows)
sys.exit(recorder.lost)
"""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=clean_env(), **pipes) for _ in range(4)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 4
    for racer in racers:  # All four are there: the end of its input starts each.
        racer.stdin.close()
        racer.stdin = None
    assert [(racer.communicate(timeout=60)[1], racer.returncode) for racer in racers] == [("", 0)] * 4
    assert _models(tmp_path) == sorted("d%d.json" % number for number in range(30))
    for path in (tmp_path / "run" / "models").iterdir():
        assert len(json.loads(path.read_text(encoding="utf-8"))) == 3000


def test_a_symlink_at_the_models_name_is_left_alone(make: Make, tmp_path: Path) -> None:
    """What it points at is neither written nor made."""
    (tmp_path / "run" / "models").mkdir(parents=True)
    (tmp_path / "run" / "models" / "aa11.json").symlink_to(tmp_path / "victim")
    make().model("aa11", _ROWS)
    assert not (tmp_path / "victim").exists()
    assert _models(tmp_path) == ["aa11.json"]


def test_a_models_folder_that_is_a_symlink_is_refused(make: Make, tmp_path: Path, capfd: Any) -> None:
    """Nothing is written behind it; it is counted, said, and the recorder's own file is not hindered."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "models").symlink_to(tmp_path / "elsewhere")
    recorder = make()
    recorder.model("aa11", _ROWS)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert recorder.lost == 1
    assert "cannot write %s" % (tmp_path / "run" / "models") in capfd.readouterr().err
    recorder.point(schema.SetDevice())
    assert recorder.lines == 2


@pytest.mark.parametrize("digest", ["../escape", "", "a/b", ".hidden", "a\0b"])
def test_a_digest_is_a_plain_name(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, digest: str) -> None:
    """A digest that would lead out of the folder is refused: raised in our own tests, counted in a job."""
    with pytest.raises(ValueError, match="letters and digits"):
        make().model(digest, _ROWS)
    monkeypatch.delenv("DDP_PROBE_STRICT")
    recorder = make()
    recorder.model(digest, _ROWS)
    assert recorder.lost == 1
    assert list(tmp_path.iterdir()) == []


def test_models_count_towards_the_limit(make: Make, tmp_path: Path) -> None:
    """A job that wraps thousands of distinct models does not fill the disk."""
    recorder = make(max_bytes=16384)
    for number in range(50):
        recorder.model("d%d" % number, [["p" * 100, [1], "float32", True]] * 10)
    sizes = [path.stat().st_size for path in (tmp_path / "run" / "models").iterdir()]
    assert 0 < sum(sizes) <= 16384
    assert recorder.lost == 50 - len(sizes)
    recorder.point(schema.SetDevice())
    assert sum(sizes) + Path(str(recorder.path)).stat().st_size <= 16384
