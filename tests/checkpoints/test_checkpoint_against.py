"""--against lists what differs, and where one renaming explains it, the printed lines make the load strict."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from corpus_table import CORPUS

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, run_python: Callable[..., Any], clean_env: Callable[..., Any]) -> Dict[str, List[Any]]:
    """What a program did that saves with mmengine, asks the command, and applies what it prints."""
    done = run_python([HERE / "programs" / "against_mmengine.py"], env=clean_env(COLUMNS="80"), cwd=tmp_path_factory.mktemp("against"), timeout=200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout[done.stdout.index('{"') :])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("other", ["digest.json", "own.pth"])
@pytest.mark.parametrize("way", ["wrapped", "compiled", "renamed", "inner"])
def test_the_printed_renaming_makes_the_load_strict(tried: Dict[str, List[Any]], way: str, other: str) -> None:
    """A checkpoint that load_state_dict refuses is loaded by the lines that are printed, for every way of renaming."""
    code, page, fits, loads = tried["%s %s" % (way, other)]
    assert "One renaming explains all" in " ".join(page.split()), page
    assert (code, fits, loads) == (1, False, True)


@pytest.mark.parametrize("other", ["digest.json", "own.pth"])
def test_a_checkpoint_that_fits_is_said_to_fit(tried: Dict[str, List[Any]], other: str) -> None:
    """The model's own checkpoint fits, and buffers that a list of parameters cannot have are not held against it."""
    code, page, fits, _ = tried["same %s" % other]
    assert (code, fits) == (0, True)
    assert "fits" in page
    assert "does not fit" not in page


def test_no_renaming_is_invented(tried: Dict[str, List[Any]]) -> None:
    """For a checkpoint of another model the names are listed, and no renaming is printed."""
    code, page, _, _ = tried["other own.pth"]
    text = " ".join(page.split())
    assert code == 1
    assert "does not fit own.pth: 0 names are the same" in text
    assert "2 only here: weight, bias" in text
    assert "renaming" not in text


def test_another_shape_is_named(command: Callable[..., Any]) -> None:
    """A tensor of another shape is named with both shapes."""
    one = command("--json", CORPUS / "new" / "state-zip-2.pt", "--against", CORPUS / "new" / "wrapped-zip-2.pt").objects[0]["against"]
    assert (one["fits"], one["missing"][0], one["unexpected"][0]) == (False, "module.stem.weight", "stem.weight")
    other = command(CORPUS / "legacy" / "tensor-zip-2.pt", "--against", CORPUS / "new" / "types-zip-2.pt")
    assert other.code == 1


@pytest.mark.parametrize("content", [b"", b"{}", b'[["a",[1],"float32",true]]', b"\xff\xfe", b"[" * 100000])
def test_what_cannot_be_compared_with_is_refused(command: Callable[..., Any], tmp_path: Path, content: bytes) -> None:
    """A file that is not a list of parameters is refused with exit code 2 and what to do."""
    path = tmp_path / "digest.json"
    path.write_bytes(content)
    done = command(CORPUS / "new" / "state-zip-2.pt", "--against", path)
    assert done.code == 2
    assert "is not a list of parameters." in done.err
    assert "what to do:" in done.err


def test_renaming_also_of_safetensors(command: Callable[..., Any], tmp_path: Path) -> None:
    """The names of a safetensors file are compared as those of any other."""
    header = json.dumps({"module.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    plain = header.replace(b"module.", b"")
    (tmp_path / "b.safetensors").write_bytes(len(plain).to_bytes(8, "little") + plain + bytes(8))
    one = command("--json", tmp_path / "a.safetensors", "--against", tmp_path / "b.safetensors").objects[0]["against"]
    assert one["renaming"] == "{name[7:] if name.startswith('module.') else name: value for name, value in state.items()}"
    assert one["load"] == "safetensors.torch.load_file(%r)" % str(tmp_path / "a.safetensors")
