"""What is found in the place of a checkpoint is named, with what to do."""

import os
import subprocess
import sys
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
    assert command("--json", path).objects[0]["writers"] == []
