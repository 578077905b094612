"""Promise 10: values are described, not shown: no contents, no repr of a user's object, secrets masked."""

import json
import sys

from contract_pieces import ARGUMENTS, PROGRAMS, SECRET, SECRETS, files_below

sys.path.insert(0, str(PROGRAMS))
from secrets_everywhere import TOLD

_HOW = """Read values of the job with ddp_probe/traced/facts, such as describe(); getattr, str, == and isinstance on them run code of the job.
`fault` is what the probe or remedy of that target raised; `ran` is the code of the job that it ran:
"""


def _holding(root, text):
    files = files_below(root)
    assert files, root
    return [path.name for path in files if text.encode() in path.read_bytes()]


def test_strange_and_secret_values_of_every_target(told, tmp_path):
    """Handed to every parameter of every target, no value runs its own code, none is shown, and every argument arrives as it was."""
    found = told("strange_values", tmp_path)
    assert _holding(tmp_path / "runs", SECRET) == []
    assert _holding(tmp_path / "runs", "7654321.") == []
    assert found["lines"] > 1000
    assert found["found"] == [], _HOW + "\n".join(found["found"])
    assert found["lost"] == 0


def test_no_secret_of_a_real_launch_is_in_any_file(training):
    """Secrets in the environment, on the command line and in addresses are in no file of the run, the launcher's included."""
    root = training["probed"].runs
    assert {path.name.split(".")[0] for path in files_below(root) if path.suffix == ".jsonl"} == {"launcher", "rank00000", "rank00001"}
    assert _holding(root, SECRET) == []
    assert training["probed"].facts[0]["argv"] == ARGUMENTS


def test_what_is_masked_is_still_told(training, read_events):
    """The command line is there with its secrets masked, and variables outside the named list are not there at all."""
    (path,) = training["probed"].runs.rglob("rank00000.*.jsonl")
    start = read_events(path)[0]
    assert "--api-key" in start["argv"]
    assert "***" in start["argv"]
    assert "SOMEBODYS_OWN" not in start["environment"]
    assert "NCCL_SECRET_TOKEN" not in start["environment"]
    assert start["environment"]["GLOO_PROXY"].startswith("http://***@proxy")
    assert set(SECRETS) & set(start["environment"]) == {"GLOO_PROXY"}


def test_no_parameter_is_shown(training):
    """A models file holds names, shapes, dtypes and devices; no number in it is a weight."""
    files = list(training["probed"].runs.rglob("models/*.json"))
    assert files
    for path in files:
        for _, shape, dtype, grad, device in json.loads(path.read_text()):
            assert all(type(size) is int for size in shape)
            assert (dtype, grad in (True, False), device) == ("float32", True, "cpu")


def _leaks(text):
    """Return which of the planted texts come through, by what must not."""
    return [told for told, core in TOLD if core in text]


def test_no_planted_secret_reaches_a_file_or_a_reader(told, tmp_path, run_python):
    """Paths of source, names of functions, groups, threads and parameters leave the process masked: files, logs and trace hold no secret."""
    assert told("secrets_everywhere", tmp_path)["told"] == len(TOLD) > 250
    files = files_below(tmp_path / "runs")
    kinds = {path.suffix for path in files}
    assert {".jsonl", ".ledger", ".json"} <= kinds
    assert {path.name: _leaks(path.read_bytes().decode("utf-8", "replace")) for path in files} == {path.name: [] for path in files}
    (run,) = {path.parent for path in files if path.suffix == ".ledger"}
    shown = run_python(["-m", "ddp_probe", "logs", run]).stdout
    run_python(["-m", "ddp_probe", "report", run, "--trace", tmp_path / "trace.json"])
    assert len(shown.splitlines()) > 2 * len(TOLD)
    assert _leaks(shown) == _leaks((tmp_path / "trace.json").read_text()) == []


_LOAD = """
import torch

class Answer:
    asked = 0
    __class__ = property(lambda self: setattr(Answer, "asked", Answer.asked + 1) or Answer)
    __bool__ = lambda self: False

torch.save(1, "a.pt")
try:
    torch.load("a.pt", weights_only=Answer())
except TypeError:  # torch 1.12 has no such argument
    pass
print(Answer.asked)
"""


def test_no_argument_of_a_load_is_asked_for_its_class(run_python, armed, tmp_path):
    """The probe decides by the type of an argument, which the job cannot answer, and never by its __class__."""
    done = [run_python(_LOAD, env=armed(root), cwd=tmp_path) for root in (None, tmp_path / "runs")]
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    assert done[0].stdout == done[1].stdout
    assert files_below(tmp_path / "runs")


_RAISES = """
import torch
import torch.distributed as dist

def step(loss, name, api_key, weights):
    raise ValueError("worse")

dist.init_process_group("gloo", init_method="file://%s/store", rank=0, world_size=1)
step(7654.5, "a private text", 987654321, torch.full((2, 3), 4711.25))
"""


def test_of_the_names_in_a_frame_only_plain_values_are_shown(run_python, armed, tmp_path):
    """When an exception ends a rank, its log holds numbers and shapes of local names; no text, no content of a tensor, no secret's number."""
    program = tmp_path / "raises.py"
    program.write_text(_RAISES % tmp_path)
    done = run_python([program], env=armed(tmp_path / "runs"), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (log,) = {path.resolve() for path in (tmp_path / "runs").rglob("rank*.jsonl")}
    end = json.loads(log.read_text().splitlines()[-1])
    (frame,) = [frame for frame in end["failure"]["values"] if frame["site"]["function"] == "step"]
    assert frame["values"] == {"loss": "7654.5", "api_key": "***", "weights": "shape [2, 3]"}
    assert not any(_holding(tmp_path / "runs", text) for text in ("a private text", "987654321", "4711.25"))
