"""mmengine's Runner over two ranks under torchrun: the events prove why it fails, on every rank and at which line."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from run_pieces import PROGRAMS, line_of

pytest.importorskip("mmengine")

RANKS = ("rank00000", "rank00001")
WAYS = ("init_dist", "wrap_model", "trains", "swallows")


@pytest.fixture(scope="module")
def runs(launch):
    """Each way once, two at a time."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(WAYS, pool.map(lambda way: launch("runner.py", way), WAYS)))


def test_the_runs_end_as_their_names_say(runs):
    """Only the run that names device_ids=None trains; each leaves a launcher's file and two ranks' files."""
    assert [runs[way].done.returncode for way in WAYS] == [1, 1, 0, 1], runs["trains"].done.stderr
    for run in runs.values():
        assert sorted(path.name.split(".")[0] for path in run.root.rglob("*.jsonl")) == ["launcher", *RANKS]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_failing_init_dist(runs, rank):
    """init_dist names the cuda branch beforehand; the error names the line of mmengine that raised; no process group was asked for."""
    kind = RANKS[rank]
    begin = runs["init_dist"].one(kind, "mmengine.init_dist", "begin")
    assert (begin["rank"], begin["local_rank"], begin["world_size"]) == (rank, rank, 2)
    assert (begin["launcher"], begin["backend"], begin["branch"]) == ("pytorch", "gloo", "cuda")
    assert begin["branch_because"]
    assert begin["site"]["file"] == str(PROGRAMS / "runner.py")
    assert begin["site"]["line"] == line_of("runner.py", "# builds")
    assert begin["through"][-1]["file"].endswith("mmengine/runner/runner.py")
    error = runs["init_dist"].one(kind, "mmengine.init_dist", "error")
    assert error["span"] == begin["span"]
    frames = [frame["function"].rpartition(".")[2] for frame in error["failure"]["frames"]]
    assert "_init_dist_pytorch" in frames
    assert "group_size" not in error
    asked = runs["init_dist"].one(kind, "device.set", "begin")
    assert (asked["target"], asked["device"]) == ("torch.cuda.set_device", str(rank))
    assert runs["init_dist"].one(kind, "device.set", "error")["failure"]["message"] == error["failure"]["message"]
    assert not runs["init_dist"].events(kind, "dist.init_process_group")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_failing_wrap_model(runs, rank):
    """The wrap records device_ids, the devices that the parameters are on, the line of the job and the line of mmengine that passed them."""
    kind = RANKS[rank]
    run = runs["wrap_model"]
    model = run.one(kind, "mmengine.wrap_model", "begin")
    assert (model["launcher"], model["distributed"], model["get_device"]) == ("pytorch", True, "cpu")
    begin = run.one(kind, "ddp.init", "begin")
    assert begin["rank"] == rank
    assert begin["device_ids"] == [str(rank)]
    assert set(begin["placement"]["devices"]) == {"cpu"}
    assert begin["placement"]["parameters"] == 2
    assert begin["warning"]
    assert begin["site"] == {"file": str(PROGRAMS / "runner.py"), "line": line_of("runner.py", "# builds"), "function": "main"}
    assert "/mmengine/" in begin["through"][-1]["file"]
    assert begin["last_move"]
    error = run.one(kind, "ddp.init", "error")
    assert error["failure"]["type"].endswith("ValueError")
    assert error["failure"]["message"].startswith("DistributedDataParallel device_ids")
    assert run.one(kind, "mmengine.wrap_model", "error")["failure"]["message"] == error["failure"]["message"]
    assert run.one(kind, "process.end", "point")["uncaught"] is True
    run.one(kind, "probe.warning", "point")
    told = [line for line in run.done.stderr.splitlines() if "ddp_probe: rank " in line]
    assert len(told) == 1  # for both ranks
    assert "runner.py:%d" % begin["site"]["line"] in told[0]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_training_runner(runs, rank):
    """With device_ids=None the wrap succeeds; the group, the wrapper and the placement after it are recorded, and no warning."""
    kind, run = RANKS[rank], runs["trains"]
    assert run.one(kind, "dist.init_process_group", "end")["group_size"] == 2
    wrap = run.one(kind, "ddp.init", "begin")
    assert "device_ids" not in wrap
    assert wrap["backend"] == "gloo"
    run.one(kind, "ddp.init", "end")
    model = run.one(kind, "mmengine.wrap_model", "end")
    assert model["wrapper"].endswith("MMDistributedDataParallel")
    assert not run.events(kind, "probe.warning")
    assert not run.events(kind, "probe.fault")
    end = run.one(kind, "process.end", "point")
    assert not end.get("uncaught")
    assert not end.get("lost")
    assert run.events(kind)[-1] == end


@pytest.mark.parametrize("rank", [0, 1])
def test_a_swallowed_set_device_is_in_the_log(runs, rank):
    """A set_device whose exception the program swallows is recorded with its line and its argument; the wrap that fails follows it."""
    kind, run = RANKS[rank], runs["swallows"]
    begin = run.one(kind, "device.set", "begin")
    assert begin["device"] == str(rank)
    assert begin["site"]["line"] == line_of("runner.py", "# swallowed")
    error = run.one(kind, "device.set", "error")
    assert error["failure"]["type"]
    wrap = run.one(kind, "ddp.init", "error")
    assert wrap["seq"] > error["seq"]


def test_coverage_is_told_at_the_end(runs):
    """At exit there is one event per target, and those that the run went through are patched and counted."""
    events = {each["target"]: each for each in runs["trains"].events("rank00000", "probe.coverage")}
    for target in ("mmengine.runner.runner.Runner.wrap_model", "torch.nn.parallel.distributed.DistributedDataParallel.__init__"):
        assert (events[target]["state"], events[target]["calls"]) == ("patched", 1), events[target]
    assert events["torch.serialization.save"]["state"] == "patched"


def test_the_launcher_tells_of_its_children(runs):
    """The launcher records the exit code of each child, and that no rank was silent."""
    for way in WAYS:
        children = runs[way].events("launcher", "launcher.child")
        codes = {child["child_local_rank"]: child.get("exit_code") for child in children if child.get("child_pid")}
        assert set(codes) == {0, 1}
        assert all(code == 0 for code in codes.values()) == (way == "trains")
        assert "silent_ranks" not in runs[way].one("launcher", "launcher.end", "point")
