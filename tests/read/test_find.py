"""Which files a report reads: the newest run by default, and whatever is named."""

import os
from pathlib import Path
from typing import Any, Callable

import pytest

from ddp_probe.reading import find
from ddp_probe.reading.load_run import load
from ddp_probe.shared.errors import ProbeError


@pytest.fixture
def runs(tmp_path: Path, event: Callable[..., str], write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of three runs, of which the second by name was written last; the working folder is the one above it."""
    root = tmp_path / "ddp_probe_runs"
    for name, age in (("a", 300), ("b", 100), ("c", 200)):
        folder = write_run(root / name, {"rank00000.node1.1.jsonl": [event("process.start", rank=0, run=name)]})
        for file in folder.iterdir():
            os.utime(file, (1_000_000 - age, 1_000_000 - age))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DDP_PROBE_DIR", raising=False)
    return root


def test_newest_by_default(runs: Path) -> None:
    """Without a path the run is read that was written to last, whatever its name."""
    assert load().name == "b"


def test_folder_of_runs_means_its_newest(runs: Path) -> None:
    """A folder with runs but no file of a rank means the newest of them."""
    assert load([str(runs)]).name == "b"


def test_setting_names_the_folder(runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DDP_PROBE_DIR says where the runs are."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("DDP_PROBE_DIR", str(runs))
    assert load().name == "b"


def test_link_to_a_run_is_not_counted_twice(runs: Path) -> None:
    """The link `latest` is not a run of its own, but can be named like one."""
    (runs / "latest").symlink_to("a")
    assert [os.path.basename(path) for path in find.runs(str(runs))] == ["b", "c", "a"]
    assert load([str(runs / "latest")]).name == "a"


def test_several_folders_are_one_run(runs: Path, event: Callable[..., str], write_run: Callable[..., Path]) -> None:
    """Two folders are read together, as when each host wrote to its own disk."""
    write_run(runs / "d", {"rank00001.node1.2.jsonl": [event("process.start", rank=1)]})
    run = load([str(runs / "a"), str(runs / "d")])
    assert sorted(run.ranks) == [0, 1]
    assert run.folders == [str(runs / "a"), str(runs / "d")]


def test_pattern(runs: Path) -> None:
    """A pattern that the shell has left alone is filled in."""
    assert len(load([str(runs / "[ac]" / "*.jsonl")]).inventory.files) == 2


def test_name_with_the_letters_of_a_pattern(runs: Path, event: Callable[..., str], write_run: Callable[..., Path]) -> None:
    """A folder whose name looks like a pattern is used as it is."""
    write_run(runs / "x[1]", {"rank00000.node1.1.jsonl": [event("process.start", rank=0, run="odd")]})
    assert load([str(runs / "x[1]")]).name == "odd"


def test_file_named_twice_is_read_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read once, by whatever names it was given."""
    monkeypatch.chdir(runs)
    (runs / "latest").symlink_to("a")
    assert len(load(["a", "./a", "latest", str(runs / "a" / "rank00000.node1.1.jsonl")]).processes) == 1


@pytest.mark.parametrize(
    ("name", "events", "texts"), [("rank00000.x.1.jsonl", 1, 0), ("moved.log", 1, 0), ("train.log", 0, 1), ("launcher.x.jsonl", 1, 0)]
)
def test_tells_events_from_text(tmp_path: Path, event: Callable[..., str], name: str, events: int, texts: int) -> None:
    """A file is the probe's by its name or by its first line; everything else is what a job printed."""
    content = "Traceback (most recent call last):\n" if name == "train.log" else event("process.start", rank=0) + "\n"
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = find.sources([str(tmp_path / name)])
    assert (len(found.events), len(found.texts)) == (events, texts)


def test_says_how_to_get_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no run, the error names the searched folder and says what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DDP_PROBE_DIR", raising=False)
    with pytest.raises(ProbeError) as error:
        load()
    assert str(tmp_path / "ddp_probe_runs") in error.value.why
    assert "DDP_PROBE=1" in error.value.what_to_do


@pytest.mark.parametrize(("name", "run"), [("b", "b"), ("latest", "b"), ("ddp_probe_runs/c", "c"), ("20261121-1849", "20261121-184940-19219-4ebc")])
def test_one_way_to_name_a_run(runs: Path, event: Callable[..., str], write_run: Callable[..., Path], name: str, run: str) -> None:
    """A run is named by its name, by `latest`, by the beginning of its name that no other has, or by its path."""
    long = "20261121-184940-19219-4ebc"
    folder = write_run(runs / long, {"rank00000.node1.1.jsonl": [event("process.start", rank=0, run=long)]})
    os.utime(folder / "rank00000.node1.1.jsonl", (1, 1))
    assert load([name]).name == run


def test_a_beginning_that_several_have(runs: Path, event: Callable[..., str], write_run: Callable[..., Path]) -> None:
    """A beginning of several names is refused with those names, the newest first; a name that is nearly one is met with that one."""
    for name, age in (("job-1", 5), ("job-2", 1)):
        folder = write_run(runs / name, {"rank00000.node1.1.jsonl": [event("process.start", rank=0)]})
        os.utime(folder / "rank00000.node1.1.jsonl", (2_000_000 - age, 2_000_000 - age))
    with pytest.raises(ProbeError) as error:
        load(["job"])
    assert (error.value.why, error.value.exit_code) == ("job-2, job-1.", 2)
    with pytest.raises(ProbeError) as error:
        load(["joob-2"])
    assert error.value.what_to_do == "Did you mean job-2?"


@pytest.mark.parametrize("path", ["nowhere", "no*where", "a\0b", "x" * 5000])
def test_nothing_there(runs: Path, path: str) -> None:
    """A name that nothing has is one clear error."""
    with pytest.raises(ProbeError, match="No such file or folder: "):
        load([path])


def test_folder_without_a_run(runs: Path, tmp_path: Path) -> None:
    """A folder with other files, or a path that does not exist, is not a run; if given together with a run, it is reported."""
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ProbeError, match="No run in %s" % tmp_path) as error:
        load([str(tmp_path)])
    assert error.value.exit_code == 2
    run = load([str(tmp_path), str(runs / "a")])
    assert (run.name, list(run.inventory.unreadable)) == ("a", [str(tmp_path)])


def test_runs_of_no_folder(tmp_path: Path) -> None:
    """No folder has no runs."""
    assert find.runs(str(tmp_path / "nowhere")) == []


def test_progress(runs: Path) -> None:
    """Progress ends at the sum of the sizes of all files."""
    told: Any = []
    log = runs.parent / "train.log"
    log.write_text("line\n" * 1000)
    load([str(runs / "a"), str(log)], progress=lambda read, total: told.append((read, total)))
    size = sum(path.stat().st_size for path in [log, *(runs / "a").iterdir()])
    assert told[-1] == (size, size)
