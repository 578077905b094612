"""mmengine's Runner over two ranks under torchrun: the events prove why it fails, on every rank and at which line."""

import pytest
from run_pieces import PROGRAMS, line_of

pytest.importorskip("mmengine")

RANKS = ("rank00000", "rank00001")
WAYS = ("init_dist", "wrap_model", "trains", "swallows")
DRAWN = pytest.mark.sample(2, of="ways of a Runner")


@pytest.fixture(scope="module")
def runs(launch):
    """Each way that is asked for, once."""

    class Runs(dict):
        def __missing__(self, way):
            self[way] = launch("runner.py", way)
            return self[way]

    return Runs()


@DRAWN
@pytest.mark.parametrize("way", WAYS)
def test_a_run_ends_as_its_name_says(runs, way):
    """Only the run that names device_ids=None trains; each leaves a launcher's file and two ranks' files."""
    run = runs[way]
    assert run.done.returncode == (0 if way == "trains" else 1), run.done.stderr
    assert sorted(path.name.split(".")[0] for path in run.root.rglob("*.jsonl")) == ["launcher", *RANKS]


@DRAWN
@pytest.mark.parametrize("way", ["init_dist"])
def test_a_failing_init_dist(runs, way):
    """init_dist names the cuda branch beforehand; the error names the line of mmengine that raised; no process group was asked for."""
    for rank, kind in enumerate(RANKS):
        begin = runs[way].one(kind, "mmengine.init_dist", "begin")
        assert (begin["rank"], begin["local_rank"], begin["world_size"]) == (rank, rank, 2)
        assert (begin["launcher"], begin["backend"], begin["branch"]) == ("pytorch", "gloo", "cuda")
        assert begin["branch_because"]
        assert begin["site"]["file"] == str(PROGRAMS / "runner.py")
        assert begin["site"]["line"] == line_of("runner.py", "# builds")
        assert begin["through"][-1]["file"].endswith("mmengine/runner/runner.py")
        error = runs[way].one(kind, "mmengine.init_dist", "error")
        assert error["span"] == begin["span"]
        frames = [frame["function"].rpartition(".")[2] for frame in error["failure"]["frames"]]
        assert "_init_dist_pytorch" in frames
        assert "group_size" not in error
        asked = runs[way].one(kind, "device.set", "begin")
        assert (asked["target"], asked["device"]) == ("torch.cuda.set_device", str(rank))
        assert runs[way].one(kind, "device.set", "error")["failure"]["message"] == error["failure"]["message"]
        assert not runs[way].events(kind, "dist.init_process_group")


@DRAWN
@pytest.mark.parametrize("way", ["wrap_model"])
def test_a_failing_wrap_model(runs, way):
    """The wrap records device_ids, the devices that the parameters are on, the line of the job and the line of mmengine that passed them."""
    run = runs[way]
    for rank, kind in enumerate(RANKS):
        model = run.one(kind, "mmengine.wrap_model", "begin")
        assert (model["launcher"], model["distributed"], model["get_device"]) == ("pytorch", True, "cpu")
        begin = run.one(kind, "ddp.init", "begin")
        assert begin["rank"] == rank
        assert begin["device_ids"] == [rank]
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


@DRAWN
@pytest.mark.parametrize("way", ["trains"])
def test_a_training_runner(runs, way):
    """With device_ids=None the wrap succeeds; the group, the wrapper and the placement after it are recorded, and no warning."""
    run = runs[way]
    for kind in RANKS:
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


@DRAWN
@pytest.mark.parametrize("way", ["swallows"])
def test_a_swallowed_set_device_is_in_the_log(runs, way):
    """A set_device whose exception the program swallows is recorded with its line and its argument; the wrap that fails follows it."""
    run = runs[way]
    for rank, kind in enumerate(RANKS):
        begin = run.one(kind, "device.set", "begin")
        assert begin["device"] == str(rank)
        assert begin["site"]["line"] == line_of("runner.py", "# swallowed")
        error = run.one(kind, "device.set", "error")
        assert error["failure"]["type"]
        wrap = run.one(kind, "ddp.init", "error")
        assert wrap["seq"] > error["seq"]


@DRAWN
@pytest.mark.parametrize("way", ["trains"])
def test_coverage_is_told_at_the_end(runs, way):
    """At exit one event has all targets, and those that the run went through are patched and counted."""
    coverage = runs[way].one("rank00000", "probe.coverage", "point")
    events = {each["target"]: each for each in coverage["targets"]}
    for target in ("mmengine.runner.runner.Runner.wrap_model", "torch.nn.parallel.distributed.DistributedDataParallel.__init__"):
        assert (events[target]["state"], events[target]["calls"]) == ("patched", 1), events[target]
    assert events["torch.serialization.save"]["state"] == "patched"


@DRAWN
@pytest.mark.parametrize("way", WAYS)
def test_the_launcher_tells_of_its_children(runs, way):
    """The launcher records the exit code of each child, and that no rank was silent."""
    children = runs[way].events("launcher", "launcher.child")
    codes = {child["child_local_rank"]: child.get("exit_code") for child in children if child.get("child_pid")}
    assert set(codes) == {0, 1}
    assert all(code == 0 for code in codes.values()) == (way == "trains")
    assert "silent_ranks" not in runs[way].one("launcher", "launcher.end", "point")
