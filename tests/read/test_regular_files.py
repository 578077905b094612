"""The one door through which readers open files."""

import os
import socket
from pathlib import Path

import pytest

from ddp_probe.shared import regular_files


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_what_is_not_a_regular_file_is_not_opened(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, a socket, a folder and a device that never ends are refused at once, and no descriptor stays open."""
    path = tmp_path / "rank00000.host.1.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    before = len(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX) as listening:
        if kind == "socket":
            monkeypatch.chdir(tmp_path)  # The address of a socket may be no longer than 107 bytes.
            listening.bind(path.name)
        for way in (regular_files.open_bytes, regular_files.open_unbuffered, regular_files.open_text):
            with pytest.raises(OSError, match=r"Not a regular file|No such device"):
                way(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    """A regular file is opened, also through a link."""
    (tmp_path / "log").write_text("a line\n")
    (tmp_path / "latest").symlink_to("log")
    with regular_files.open_text(tmp_path / "latest") as file:
        assert file.read() == "a line\n"
