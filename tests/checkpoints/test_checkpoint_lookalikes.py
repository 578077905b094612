"""What is found in the place of a checkpoint is named, with what to do."""

import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, Callable

import pytest
from corpus_table import CORPUS

WHOLE = CORPUS / "new" / "trained-zip-2.pt"


@pytest.mark.parametrize(
    ("content", "verdict", "kind", "words"),
    [
        (b"", "broken", "empty", "The file is empty."),
        (b"<!DOCTYPE html>\n<html><body>Sign in</body></html>", "broken", "HTML page", "Download it again"),
        (b"  \n<html>", "broken", "HTML page", "Download it again"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 102400\n", "broken", "git-lfs pointer", "git lfs pull"),
        (b"epoch 1 loss 0.5\n" * 40, "unknown", "text", "Name the checkpoint itself."),
        (b"\x1f\x8b\x08" + b"\x01\x02" * 99, "unknown", "gzip", "gunzip"),
        pytest.param(b"\xff" * 257 + b"ustar\x0000" + b"\1" * 249, "unknown", "tar", "tar -xf", id="tar"),
        (bytes(4096), "broken", "zeros", "zeros"),
        (b"PK", "broken", "unknown", "cut off"),
        (b"\x80", "broken", "unknown", "cut off"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "unknown", "unknown", "begins like none"),
    ],
)
def test_a_lookalike_is_named(command: Callable[..., Any], tmp_path: Path, content: bytes, verdict: str, kind: str, words: str) -> None:
    """The verdict, the kind and what to do are right for each file that is not a checkpoint."""
    path = tmp_path / "model.pth"
    path.write_bytes(content)
    one = command("--json", path).objects[0]
    assert (one["verdict"], one["kind"]) == (verdict, kind)
    shown = command(path)
    assert words in " ".join(shown.out.split())
    assert shown.code == (1 if verdict == "broken" else 3)


def test_a_cut_archive_says_how_far_it_goes(command: Callable[..., Any], tmp_path: Path) -> None:
    """An archive without its end names the record in which it ends, and how many storages are complete."""
    data = WHOLE.read_bytes()
    path = tmp_path / "model.pth"
    path.write_bytes(data[: data.index(b"data/5") + 60])
    done = command(path)
    text = " ".join(done.out.split())
    assert done.code == 1
    assert "The archive has no end: it was cut off, or its writer has not finished. 5 of " in text
    assert "trained-zip-2/data/5" in text
    path.write_bytes(data[:200])
    assert "It ends within data.pkl." in " ".join(command(path).out.split())


_JOBLIB = b"\x80\x03cjoblib.numpy_pickle\nNumpyArrayWrapper\nq\x00)\x81q\x01}q\x02b\x93raw bytes of an array"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("m.gguf", b"GGUF\3\0\0\0" + b"\1" * 90, "GGUF"),
        ("m.onnx", b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:\x80\x01" + b"\x0a\x05abcde" * 18, "ONNX"),
        ("variables.index", b"\1" * 60 + bytes.fromhex("57fb808b247547db"), "TensorFlow"),
        ("model.ckpt.data-00000-of-00001", bytes(64), "TensorFlow"),
        ("m.tflite", b"\x1c\0\0\0TFL3" + b"\1" * 90, "TensorFlow Lite"),
        ("tokenizer.json", b'{"version": "1.0", "added_tokens": [], "model": {"type": "BPE"}}', "tokenizer"),
        ("m.joblib", _JOBLIB, "joblib"),
        ("m.joblib.z", zlib.compress(_JOBLIB), "joblib"),
    ],
)
def test_a_file_of_another_library_is_called_by_its_name(name: str, data: bytes, kind: str, command: Callable[..., Any], tmp_path: Path) -> None:
    """What another library has written is neither broken nor unknown: its kind is named, and what reads it."""
    (tmp_path / name).write_bytes(data)
    one = command("--json", tmp_path / name).objects[0]
    assert (one["verdict"], one["kind"], one["faults"]) == ("unknown", kind, [])
    assert one["what_to_do"].startswith(("Read it with", "Name the file of the weights"))


def test_folders_of_other_libraries(command: Callable[..., Any], tmp_path: Path) -> None:
    """A folder of TensorFlow or of a tokenizer says what it is, and a file of DeepSpeed to what it belongs."""
    for folder, file, said, advice in (
        ("saved", "saved_model.pb", "TensorFlow model", "tf.saved_model.load"),
        ("tok", "tokenizer_config.json", "tokenizer of Hugging Face", "Name the folder of the weights."),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_bytes(b"{}")
        done = command(tmp_path / folder)
        assert said in done.err
        assert advice in done.err
        assert done.code == 2
    part = tmp_path / "mp_rank_00_model_states.pt"
    part.write_bytes(WHOLE.read_bytes())
    assert "DeepSpeed" in " ".join(command("--json", part).objects[0]["remarks"])


def test_numpy_archives_and_checksums_that_were_not_compared(command: Callable[..., Any], tmp_path: Path) -> None:
    """An archive of numpy is whole; of one of torch it is said that checksums were not compared, unless --deep does."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\1\0")
    one = command("--json", tmp_path / "a.npz").objects[0]
    assert (one["verdict"], one["kind"]) == ("whole", "numpy archive")
    assert "were not compared" in " ".join(command("--json", WHOLE).objects[0]["remarks"])
    assert "were not compared" not in " ".join(command("--json", "--deep", WHOLE).objects[0]["remarks"])


@pytest.mark.skipif(not os.path.isdir("/proc/self/fdinfo"), reason="needs /proc")
def test_a_writer_is_named(command: Callable[..., Any], tmp_path: Path) -> None:
    """The process that has a cut file open for writing is named; one that only reads it is not."""
    path = tmp_path / "model.pth"
    path.write_bytes(WHOLE.read_bytes()[:500])
    code = "import sys; f = open(%r, %r); print('open', flush=True); sys.stdin.read()"
    children = []
    try:
        for mode in ("rb", "ab"):
            child = subprocess.Popen([sys.executable, "-c", code % (str(path), mode)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            children.append(child)
            assert child.stdout is not None
            assert child.stdout.readline() == b"open\n"
        one = command("--json", path).objects[0]
    finally:
        for child in children:
            child.communicate(b"")
    assert [writer["pid"] for writer in one["writers"]] == [children[1].pid]
    assert "has it open for writing. Run this again once it has finished." in one["what_to_do"]
    assert (one["verdict"], one["because"]) == ("unknown", "It is being written.")
    assert command("--json", path).objects[0]["writers"] == []
