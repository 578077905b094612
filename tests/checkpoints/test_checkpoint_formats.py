"""safetensors, distributed checkpoints, sharded indices and arrays of numpy are judged by their own rules."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from corpus_table import CORPUS

from ddp_probe.checkpoints.judge_path import judge
from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, WHOLE


def safetensors(path: Path, tensors: Dict[str, Any], data: int = 8, **more: Any) -> Path:
    """Write a file of safetensors by hand."""
    header = json.dumps({**more, **tensors}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(data))
    return path


def _tensor(begin: int, end: int, shape: List[int], dtype: str = "F32") -> Dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_a_file_of_safetensors_is_read(tmp_path: Path) -> None:
    """Names, shapes, types and the format that is recorded are those of the header."""
    path = safetensors(tmp_path / "a.safetensors", {"b": _tensor(4, 8, [2], "BF16"), "a": _tensor(0, 4, [1])}, __metadata__={"format": "pt"})
    found = judge(str(path), deep=True)
    assert (found.verdict, found.tensors, found.bytes, found.versions) == (WHOLE, 2, 8, {"format": "pt"})
    assert [(each.name, each.dtype, each.shape) for each in found.names] == [("b", "bfloat16", (2,)), ("a", "float32", (1,))]


@pytest.mark.parametrize(
    ("tensors", "data", "words"),
    [
        ({"a": _tensor(0, 8, [2])}, 4, "The file was cut off, or its writer has not finished: it has"),
        ({"a": _tensor(0, 8, [2])}, 12, "4 bytes follow the last tensor"),
        ({"a": _tensor(0, 8, [3])}, 8, "needs 12 bytes for its shape, and has 8"),
        ({"a": _tensor(0, 4, [1]), "b": _tensor(5, 9, [1])}, 9, "is said to be in bytes 5 to 9, and the one before it ends at 4"),
        ({"a": _tensor(0, 4, [1]), "b": _tensor(0, 4, [1])}, 4, "is said to be in bytes 0 to 4"),
        ({"a": _tensor(8, 0, [2])}, 8, "is said to be in bytes 8 to 0"),
        ({"a": _tensor(0, 8, [-1, -2])}, 8, "needs 8 bytes for its shape"),
        ({"a": {"dtype": "F32"}}, 8, "The header is not valid"),
        ({"a": 1}, 8, "The header is not valid"),
    ],
)
def test_offsets_of_safetensors_have_to_fill_the_file(tmp_path: Path, tensors: Dict[str, Any], data: int, words: str) -> None:
    """A gap, an overlap, a size that is not that of the shape, and a file that is too short or too long are broken."""
    found = judge(str(safetensors(tmp_path / "a.safetensors", tensors, data)))
    assert found.verdict == BROKEN
    assert words in found.faults[0].text


def test_a_cut_header_of_safetensors_is_broken(tmp_path: Path) -> None:
    """A file that ends within its header says so."""
    path = safetensors(tmp_path / "a.safetensors", {"a": _tensor(0, 8, [2])})
    path.write_bytes(path.read_bytes()[:30])
    assert "its header alone ends at byte" in judge(str(path)).faults[0].text


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A sharded checkpoint: an index and two files."""
    safetensors(tmp_path / "m-1.safetensors", {"module.a": _tensor(0, 8, [2])})
    safetensors(tmp_path / "m-2.safetensors", {"module.b": _tensor(0, 8, [2])})
    index = {"metadata": {"total_size": 16}, "weight_map": {"module.a": "m-1.safetensors", "module.b": "m-2.safetensors"}}
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return tmp_path / "m.safetensors.index.json"


def test_a_sharded_index_is_whole_if_every_shard_is(shards: Path) -> None:
    """All shards are there, and each has what the index says."""
    found = judge(str(shards))
    assert (found.verdict, found.kind, found.tensors, found.files) == (WHOLE, "sharded index", 2, ["m-1.safetensors", "m-2.safetensors"])
    assert found.prefixes == {"module.": 2}


def test_a_shard_that_lacks_something_is_named(shards: Path) -> None:
    """A shard that is gone, cut, or without a tensor of the map is named; so is a file outside the folder."""
    second = shards.parent / "m-2.safetensors"
    data = second.read_bytes()
    second.write_bytes(data[:-2])
    assert "m-2.safetensors" in judge(str(shards)).faults[0].record
    second.unlink()
    assert "it is not there" in judge(str(shards)).faults[0].text
    safetensors(second, {"module.c": _tensor(0, 8, [2])})
    found = judge(str(shards))
    assert "The index says that module.b is in this file, and it is not." in [fault.text for fault in found.faults]
    assert "m-2.safetensors has 1 tensors that the index does not name." in found.remarks
    shards.write_text('{"weight_map": {"a": "../m-1.safetensors", "b": "/etc/passwd"}}', encoding="utf-8")
    assert [("outside its folder" in fault.text) for fault in judge(str(shards)).faults] == [True, True]


def test_an_index_that_names_itself_ends(shards: Path) -> None:
    """An index whose shard is an index is not followed."""
    shards.write_text('{"weight_map": {"a": "m.safetensors.index.json"}}', encoding="utf-8")
    assert judge(str(shards)).verdict == UNKNOWN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A distributed checkpoint, as torch 2.13 wrote it."""
    shutil.copytree(str(CORPUS / "new" / "distributed"), str(tmp_path / "distributed"))
    return tmp_path / "distributed"


def test_a_distributed_checkpoint_is_read(folder: Path, command: Callable[..., Any]) -> None:
    """The tensors of the metadata are named, and the folder is one checkpoint, also within another folder."""
    found = judge(str(folder), deep=True)
    assert (found.verdict, found.kind) == (WHOLE, "distributed checkpoint")
    assert [(each.name, each.shape, each.dtype) for each in found.names] == [
        ("model.weight", (3, 4), "float32"),
        ("model.bias", (4,), "bfloat16"),
        ("model.scalar", (), "int64"),
    ]
    assert [one["path"] for one in command("--json", folder.parent).objects] == [str(folder)]


def test_a_save_that_did_not_finish_has_no_metadata(folder: Path) -> None:
    """The metadata are written last: without them the save has not finished."""
    (folder / ".metadata").unlink()
    found = judge(str(folder))
    assert found.verdict == BROKEN
    assert "no .metadata, which is written last" in found.faults[0].text


def test_a_data_file_that_lacks_something_is_named(folder: Path) -> None:
    """A file of a rank that is gone, cut, or has changed is named, with the tensor."""
    data = (folder / "__0_0.distcp").read_bytes()
    (folder / "__0_0.distcp").write_bytes(data[: len(data) // 2])
    cut = judge(str(folder)).faults[0]
    assert (cut.record, "is said to be in bytes" in cut.text) == ("__0_0.distcp", True)
    at = data.index(struct.pack("<f", 1.0) * 3)
    (folder / "__0_0.distcp").write_bytes(data[:at] + b"\x01" + data[at + 1 :])
    assert judge(str(folder)).verdict == WHOLE
    changed = judge(str(folder), deep=True).faults[0]
    assert (changed.text.partition(":")[0], changed.unnoticed) == ("model.weight", True)
    (folder / "__0_0.distcp").unlink()
    assert "it is not there" in judge(str(folder)).faults[0].text


def test_paths_that_lead_outside_the_folder_are_not_followed(folder: Path) -> None:
    """A file name of the metadata with '..' is broken, and not opened."""
    data = (folder / ".metadata").read_bytes()
    (folder / ".metadata").write_bytes(data.replace(b"__0_0.distcp", b"../../../etc"))
    assert {"outside the folder" in fault.text for fault in judge(str(folder)).faults} == {True}


def test_folders_and_patterns_name_checkpoints(tmp_path: Path, command: Callable[..., Any]) -> None:
    """A folder stands for the checkpoints in it and below, a pattern for what it matches; each is judged once."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("a.pth", "deep/b.pt", "deep/er/c.ckpt", "deep/notes.txt"):
        shutil.copy(str(CORPUS / "new" / "tensor-zip-2.pt"), str(tmp_path / name))
    names = [str(tmp_path / name) for name in ("a.pth", "deep/b.pt", "deep/er/c.ckpt")]
    assert [one["path"] for one in command("--json", tmp_path).objects] == names
    assert [one["path"] for one in command("--json", tmp_path / "**" / "*.pt", names[1]).objects] == [names[1]]
    assert command(tmp_path).out.startswith("3 checkpoints: 3 whole\n")


@pytest.mark.parametrize("path", ["nothing.pt", "*.nothing", "empty"])
def test_nothing_to_judge_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Any], path: str) -> None:
    """A path that does not exist, a pattern without a match and a folder without a checkpoint are exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = command(path)
    assert done.code == 2
    assert "what to do:" in done.err


def test_a_page_fits_a_terminal_and_a_name_cannot_control_it(tmp_path: Path, command: Callable[..., Any]) -> None:
    """At 80 columns no line of prose is longer, and an escape in a tensor's name or a path is shown as text."""
    path = safetensors(tmp_path / "\x1b[31m.safetensors", {"\x1b]0;title\x07": _tensor(0, 8, [2])})
    done = command(path, "--names")
    assert "\x1b" not in done.out
    assert "\\x1b]0;title\\x07" in done.out
    page = command(CORPUS / "new" / "foreign-zip-2.pt").out
    assert max(len(line) for line in page.splitlines()[1:]) <= 80


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    """A long reading says how many bytes of how many were read, never more than all; a deep one counts the whole file."""
    path = tmp_path / "a.safetensors"
    safetensors(path, {"a": _tensor(0, 4 << 20, [1 << 20])}, 4 << 20)
    told: List[Any] = []
    judge(str(path), deep=True, progress=lambda done, everything: told.append((done, everything)))
    assert len(told) >= 4
    assert all(done <= everything == path.stat().st_size for done, everything in told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
