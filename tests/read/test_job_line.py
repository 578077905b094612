"""The line that a report names is the job's own."""

import pytest

from ddp_probe.judging.waiting import stood
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed
from ddp_probe.shared.schema import Site

PACKAGES = "/env/lib/python3.11/site-packages/"
JOB = Site("/work/train.py", 31, "main")


def library(name, function="call"):
    """Return a frame of an installed library."""
    return Site(PACKAGES + name, 7, function)


@pytest.mark.parametrize(
    "names",
    [
        ("accelerate/accelerator.py", "torch/nn/parallel/distributed.py"),
        ("transformers/trainer.py", "accelerate/accelerator.py", "torch/_tensor.py"),
        ("lightning/pytorch/trainer/trainer.py", "lightning/pytorch/strategies/ddp.py"),
        ("hydra/_internal/utils.py", "hydra/core/utils.py"),
        ("somebodys/loop.py",),
    ],
)
def test_installed_libraries_are_never_it(names):
    """An exception raised inside libraries is reported at the line of the job that called them."""
    frames = [Site(PACKAGES + "fire/core.py", 3, "Fire"), JOB, *(library(name) for name in names)]
    assert job_line(frames) == JOB


@pytest.mark.parametrize("file", ["/usr/lib/python3.11/runpy.py", "<frozen runpy>", "/opt/lib/python3.13t/threading.py", "/env/bin/accelerate"])
def test_the_standard_library_is_never_it(file):
    """Files of Python itself and the commands that pip writes are passed over, inside and outside of the job."""
    assert job_line([Site(file, 1, "run"), JOB, Site(file, 2, "run")]) == JOB


def test_an_installed_program_is_the_job():
    """If the whole program is installed, the innermost line of the started package is reported."""
    inner = library("trainer/loop.py")
    started = [Site("<frozen runpy>", 198, "_run_module_as_main"), library("trainer/__main__.py")]
    assert job_line([*started, inner, library("accelerate/a.py"), library("torch/b.py")]) == inner


@pytest.mark.parametrize("begins", ["<frozen runpy>", "/usr/lib/python3.8/runpy.py"])
def test_a_script_of_a_framework_is_the_job(begins):
    """Of a script that a framework brings, the line is its own; in a traceback that begins elsewhere, nothing of the framework is the job's."""
    script = library("accelerate/test_utils/scripts/test_script.py", "<module>")
    inner = [library("accelerate/accelerator.py"), library("torch/b.py")]
    assert job_line([Site(begins, 198, "_run_module_as_main"), script, *inner]) == script
    assert job_line([Site("/usr/lib/python3.8/threading.py", 9, "run"), script, *inner]) is None


def test_a_line_of_torch_is_never_it():
    """If all frames are torch's, no line is the job's."""
    assert job_line([Site("<frozen runpy>", 198, "_run_code"), library("torch/distributed/run.py"), library("torch/distributed/hang.py")]) is None


@pytest.mark.parametrize(("module", "function"), [("spawn", "spawn_main"), ("forkserver", "main")])
def test_the_command_line_that_starts_a_child_is_never_it(module, function):
    """Nobody has written the line with which multiprocessing starts a child; a program given by python -c is the job's."""
    begun = [Site("<string>", 1, "<module>"), Site("/usr/lib/python3.11/multiprocessing/%s.py" % module, 122, function)]
    assert job_line([*begun, library("torch/multiprocessing/spawn.py", "_wrap"), JOB, library("torch/a.py")]) == JOB
    assert job_line([*begun, library("torch/multiprocessing/spawn.py", "_wrap"), library("torch/a.py")]) is None
    assert job_line([begun[0], library("torch/multiprocessing/spawn.py", "start_processes")]) == begun[0]


def failed(*frames):
    """Return a failure with these frames."""
    found = Failed(rank=0, when=0.0, at=LogLine("rank00000.jsonl", 3), type="KeyboardInterrupt", message="")
    found.frames, found.site = list(frames), JOB
    return found


def test_a_rank_stands_in_the_call_that_the_job_made():
    """Beside the job's line stands the function that it called, not what torch was at inside of it."""
    c10d = "torch/distributed/c10d_logger.py"
    wrapper = library(c10d, "_exception_logger.<locals>.wrapper")
    assert stood(failed(JOB, wrapper, library("torch/distributed/distributed_c10d.py", "barrier"))) == "at /work/train.py:31 in barrier"
    assert stood(failed(JOB, wrapper, library(c10d, "_get_msg_dict"))) == "at /work/train.py:31"
    assert stood(failed(JOB)) == "at /work/train.py:31"
