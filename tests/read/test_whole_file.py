"""A file that is written for somebody else is there as a whole or not at all."""

import ast
import os
import stat
from pathlib import Path
from typing import Iterator, Tuple

import pytest

import ddp_probe
from ddp_probe.shared.whole_file import whole_file

_PACKAGE = Path(ddp_probe.__file__).resolve().parent
# What moves a file by itself, each with its reason.
_MOVES = {
    "shared/whole_file.py": "It is the one way.",
    "activation/installer/activator_files.py": "Its draft has a name that uninstall removes.",
    "moving/gather/keep.py": "A file of which a part has come stays for the next gather.",
    "traced/record/recorder.py": "The folder is known by its descriptor, not by its path.",
    "traced/record/files.py": "It is a link and not a file.",
    "traced/remedies/atomic_save.py": "torch.save of the job writes the draft.",
}


def _write_half(place: Path) -> None:
    with whole_file(str(place)) as file:
        file.write(b"half")
        raise OSError("full")


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    """If writing fails, what was there stays, and the draft is gone."""
    place = tmp_path / "metrics.prom"
    place.write_bytes(b"before")
    with pytest.raises(OSError, match="full"):
        _write_half(place)
    assert (place.read_bytes(), os.listdir(str(tmp_path))) == (b"before", ["metrics.prom"])


def test_a_reader_meets_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """While a file is written, its name leads to what was there before, and afterwards to all of it."""
    place = tmp_path / "verdict.json"
    place.write_bytes(b"before")
    with whole_file(str(place), 0o600) as file:
        file.write(b"after")
        file.flush()
        assert place.read_bytes() == b"before"
    assert (place.read_bytes(), os.listdir(str(tmp_path))) == (b"after", ["verdict.json"])
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_link_of_that_name_is_replaced(tmp_path: Path) -> None:
    """A link that somebody has put there leads to a file that stays as it is."""
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    (tmp_path / "mine").symlink_to(other)
    with whole_file(str(tmp_path / "mine")) as file:
        file.write(b"ours")
    assert (other.read_bytes(), (tmp_path / "mine").read_bytes()) == (b"theirs", b"ours")
    assert not (tmp_path / "mine").is_symlink()


def _write_beside(place: Path) -> None:
    with whole_file(str(place), replace=False) as file:
        file.write(b"ours")
        place.write_bytes(b"theirs")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_what_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """A file that appears while its namesake is written stays; a free name is taken."""

    def link(_source: str, _target: str) -> None:
        raise PermissionError("no hard links")

    if not links:
        monkeypatch.setattr("ddp_probe.shared.whole_file.os.link", link)
    place = tmp_path / "bundle.tar.gz"
    with pytest.raises(FileExistsError):
        _write_beside(place)
    assert (place.read_bytes(), os.listdir(str(tmp_path))) == (b"theirs", ["bundle.tar.gz"])
    place.unlink()
    with whole_file(str(place), replace=False) as file:
        file.write(b"ours")
    assert (place.read_bytes(), os.listdir(str(tmp_path))) == (b"ours", ["bundle.tar.gz"])


def _attributes() -> Iterator[Tuple[str, str]]:
    """Yield what the files of the package look up, as OWNER.NAME."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                yield path.relative_to(_PACKAGE).as_posix(), "%s.%s" % (owner, node.attr)


def test_there_is_one_way_to_write_a_whole_file() -> None:
    """No other file of the package gives a draft its name, but for those that have a reason."""
    moves = {"os.replace", "os.rename", "os.renames", "os.link"}
    assert {file for file, name in _attributes() if name in moves} == set(_MOVES)


def test_there_is_one_way_to_set_stdout() -> None:
    """What stdout does with characters that it cannot encode is set in one place, for all commands."""
    assert {file for file, name in _attributes() if name.endswith(".reconfigure")} == {"cli/_stdout.py"}
