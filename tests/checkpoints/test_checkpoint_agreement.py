"""What the command says about a file is what torch does with it: the torch of this environment is asked in a process of its own."""

import json
import random
import struct
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from corpus_table import CORPUS, truth

from ddp_probe.checkpoints import weights_only
from ddp_probe.checkpoints.judge_path import judge
from ddp_probe.checkpoints.judged import BROKEN, WHOLE, Judged

HERE = Path(__file__).resolve().parent
Answers = Dict[str, List[str]]


@pytest.fixture(scope="module")
def new() -> bool:
    """Tell whether the torch of this environment has weights_only."""
    torch = pytest.importorskip("torch")
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory, whole: bool, new: bool, request: pytest.FixtureRequest) -> List[Tuple[Path, str, str]]:
    """Copies of files of the corpus, each with one change: the file, where it is from, and the change."""
    draw = random.Random(request.config.getoption("--seed") or 20261122)
    folder = tmp_path_factory.mktemp("changed")
    made = []
    # What the other torch wrote may need what this one lacks.
    originals = [file for file in sorted(truth()) if file.endswith(".pt") and "script" not in file and file.startswith("new" if new else "legacy")]
    for number in range(4000 if whole else 300):
        origin = draw.choice(originals)
        change, data = _changed(draw, (CORPUS / origin).read_bytes())
        file = folder / ("%04d.pt" % number)
        file.write_bytes(data)
        made.append((file, origin, change))
    for number, (origin, change, data) in enumerate(_planted(new)):
        file = folder / ("planted-%d.pt" % number)
        file.write_bytes(data)
        made.append((file, origin, change))
    return made


def _planted(new: bool) -> Iterator[Tuple[str, str, bytes]]:
    """Yield changes that draws found: torch.load goes through whatever stands for the list of storages, and asks a tensor for its dtype too."""
    nothing, trained = "%s/nothing-old-2.pt" % ("new" if new else "legacy"), "new/trained-old-5.pt"
    for other in (b"}", b")"):
        yield nothing, "%r for the list of storages" % other, other.join((CORPUS / nothing).read_bytes().rsplit(b"]", 1))
    if new:
        data = bytearray((CORPUS / trained).read_bytes())
        data[1560] ^= 16
        yield trained, "a tensor for the class of a storage", bytes(data)


def _changed(draw: random.Random, data: bytes) -> Tuple[str, bytes]:
    at = draw.randrange(len(data))
    way = draw.choice(["cut", "cut", "flip", "flip", "zero", "twice", "gone"])
    end = min(len(data), at + draw.choice([1, 4, 16, 100]))
    if way == "cut":
        return "cut at %d" % at, data[:at]
    if way == "flip":
        return "bit %d" % at, data[:at] + struct.pack("B", data[at] ^ 1 << draw.randrange(8)) + data[at + 1 :]
    middle = {"zero": bytes(end - at), "twice": data[at:end] * 2, "gone": b""}[way]
    return "%s %d-%d" % (way, at, end), data[:at] + middle + data[end:]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Path]:
    """Copies of the files of the corpus: a load must not leave anything beside them."""
    folder = tmp_path_factory.mktemp("originals")
    made = {file: folder / ("%03d.pt" % number) for number, file in enumerate(sorted(truth())) if file.endswith(".pt")}
    for file, copy in made.items():
        copy.write_bytes((CORPUS / file).read_bytes())
    return made


@pytest.fixture(scope="module")
def asked(run_python: Callable[..., Any], cases: List[Tuple[Path, str, str]], originals: Dict[str, Path], new: bool) -> Dict[str, Any]:
    """What torch says, asked once: about each file, and which names and opcodes weights_only accepts."""
    files = [str(file) for file, _, _ in cases] + [str(copy) for copy in originals.values()]
    listed = cases[0][0].parent / "files.json"
    listed.write_text(json.dumps(files), encoding="utf-8")
    done = run_python([HERE / "programs" / "ask_torch.py", listed, "new" if new else "old"], timeout=250)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def answers(asked: Dict[str, Any]) -> Answers:
    """What torch.load answers about each file without and with weights_only: 'loads', or the exception."""
    found = asked["answers"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def judged(cases: List[Tuple[Path, str, str]]) -> Dict[str, Judged]:
    """What we say about each changed file, with all checksums."""
    return {str(file): judge(str(file), deep=True) for file, _, _ in cases}


def test_torch_loads_every_file_of_the_corpus(originals: Dict[str, Path], answers: Answers, new: bool) -> None:
    """Each file that is judged whole is loaded by this torch, and weights_only accepts those that we say it accepts."""
    found = {file: answers[str(copy)] for file, copy in originals.items()}
    # torch 1.12 lacks the types of late-zip-2 and numpy 1 the modules of numpy 2; each lacks what the other calls for sparse tensors.
    known = ("legacy/sparse",) if new else ("new/late", "new/foreign", "new/sparse")
    assert {file: answer for file, answer in found.items() if answer[0] != "loads" and not file.startswith(known)} == {}
    for file, copy in originals.items() if new else ():
        ours = judge(str(copy)).weights_only
        assert ours is not None, file
        assert (file, ours.accepted) == (file, found[file][1] == "loads"), (ours, found[file][1])


def test_what_is_whole_loads(cases: List[Tuple[Path, str, str]], judged: Dict[str, Judged], answers: Answers) -> None:
    """If torch fails on a changed archive, it is judged broken; also an older file, which has no checksums, if it was cut."""
    wrong = []
    for file, origin, change in cases:
        answer, found = answers[str(file)][0], judged[str(file)]
        refused = found.kind == "pickle" and "torch.load refuses it" in found.because
        unseen = found.kind == "torch legacy" and not change.startswith("cut")
        if answer != "loads" and found.verdict == WHOLE and not refused and not unseen:
            wrong.append((origin, change, answer))
    assert wrong == []


def test_what_torch_is_said_to_fail_on_fails(cases: List[Tuple[Path, str, str]], judged: Dict[str, Judged], answers: Answers, new: bool) -> None:
    """A fault that is not marked as unnoticed makes torch.load fail; torch 1.12 looks at fewer records."""
    wrong = []
    for file, origin, change in cases if new else ():
        found = judged[str(file)]
        if found.verdict == BROKEN and not all(fault.unnoticed for fault in found.faults) and answers[str(file)][0] == "loads":
            wrong.append((origin, change, [fault.text for fault in found.faults]))
    assert wrong == []
    assert sum(found.verdict == BROKEN for found in judged.values()) > len(judged) // 2


def test_the_list_of_weights_only_is_torchs(asked: Dict[str, Any], new: bool) -> None:
    """The names and opcodes that we say weights_only accepts are those of the installed torch, and those that importing torch registers."""
    if not new:
        pytest.skip("this torch has no weights_only")
    assert sorted(weights_only.DEFAULT) == asked["default"]
    assert sorted(weights_only.REGISTERED) == asked["registered"]
    assert sorted(weights_only.opcodes()) == asked["opcodes"]
