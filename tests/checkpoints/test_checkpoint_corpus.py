"""Every file of the corpus is whole, and holds what torch says it holds."""

from typing import Any, Callable, Dict, List

import pytest
from corpus_table import CORPUS, truth

from ddp_probe.checkpoints.judge_path import judge
from ddp_probe.checkpoints.judged import WHOLE, Judged

TRUTH = truth()


def _held(judged: Judged) -> Dict[str, List[Any]]:
    return {tensor.name: [list(tensor.shape), tensor.dtype, tensor.device] for tensor in judged.names}


@pytest.mark.parametrize("deep", [False, True])
def test_every_file_of_torch_is_whole_and_names_are_torchs(deep: bool) -> None:
    """What torch wrote with any option is whole, and names, shapes, types and devices are those that torch has after loading."""
    found = {file: judge(str(CORPUS / file), deep=deep) for file in TRUTH}
    assert {file: (one.verdict, one.faults) for file, one in found.items() if one.verdict != WHOLE} == {}
    assert {file: _held(one) for file, one in found.items() if _held(one) != TRUTH[file]} == {}


def test_nothing_of_torch_is_imported(run_python: Callable[..., Any]) -> None:
    """The command imports neither torch nor numpy nor pickle's own machine for loading."""
    code = (
        "import sys; from ddp_probe import cli; code = cli.main(['checkpoint', '--json', %r]);"
        "print(sorted(name for name in ('torch', 'numpy', 'mmengine', 'wrapt') if name in sys.modules), code, file=sys.stderr)"
    )
    done = run_python(code % str(CORPUS / "new"))
    assert done.stderr.splitlines()[-1] == "[] 0", done.stderr


def test_the_kind_is_named(command: Callable[..., Any]) -> None:
    """Archives, older files, TorchScript, pickles and arrays are told apart by their content."""
    kinds = {one["path"].rpartition("/")[2]: one["kind"] for one in command("--json", CORPUS / "new").objects}
    expected = {"state-zip-2.pt": "torch zip", "state-old-2.pt": "torch legacy", "script.pt": "TorchScript"}
    assert {**kinds, **expected, "pickled.pkl": "pickle", "array.npy": "numpy array"} == kinds


def test_what_frameworks_record_is_told(command: Callable[..., Any]) -> None:
    """Keys at the top, versions and counters are read from the pickle, and mixed prefixes are counted."""
    trained, wrapped = command("--json", CORPUS / "new" / "trained-zip-2.pt", CORPUS / "new" / "wrapped-zip-2.pt").objects
    assert trained["keys"] == ["state_dict", "optimizer", "epoch", "meta"]
    assert (trained["versions"], trained["progress"]) == ({"mmengine": "0.10.7"}, {"epoch": 3, "iter": 40})
    assert wrapped["prefixes"] == {"module.": 9, "": 1}


def test_devices_are_named_with_what_a_load_needs(command: Callable[..., Any]) -> None:
    """A storage of another device is named, and that a host without it needs map_location."""
    done = command(CORPUS / "new" / "npu3-old-2.pt")
    assert "npu:3; a host without it needs map_location" in done.out
    assert done.code == 0
