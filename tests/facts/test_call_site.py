"""The line of the job that made a call."""

import contextlib
import os
import sys
import types

import pytest

from ddp_probe.traced.facts.call_site import call_path, caller_package

SOURCE = "def call(f, *args):\n    return f(*args)\n"


def through(*modules):
    """Return a function that calls call_path through one frame of each module."""

    def run(f):
        calls = [made(name) for name in modules]
        return calls[0](*calls[1:], f) if calls else f()

    return run


def made(name, file=None):
    """Return a function that lives in a module of this name."""
    module = types.ModuleType(name)
    exec(compile(SOURCE, file or name + ".py", "exec"), module.__dict__)
    return module.call


def alone(*calls):
    """Return the path of a call from a thread of frames in which only these functions are: nothing of this test is below them."""
    found = []

    def note():
        frame, chain = sys._getframe(1), []
        while frame is not None and frame.f_code.co_filename != __file__:
            chain.append(frame)
            frame = frame.f_back
        found.append(_path_of(chain))

    calls[0](*calls[1:], note)
    return found[0]


class _Frame:
    """As much of a frame as call_path reads, with another one below it."""

    def __init__(self, frame, below):
        self.f_code, self.f_globals, self.f_lineno, self.f_back = frame.f_code, frame.f_globals, frame.f_lineno, below


def _path_of(chain):
    below = None
    for frame in reversed(chain):
        below = _Frame(frame, below)
    return call_path(below)


def test_own_line():
    """Called from the job, the site is the job's own line, and no library is between."""
    line = sys._getframe().f_lineno + 1
    found, between = call_path()
    assert found is not None
    assert (found.file, found.line, between) == (__file__, line, [])
    assert found.function.endswith("test_own_line")


def test_libraries_are_passed_over():
    """Frames of torch, mmengine, wrapt and the probe are passed over, also inside one another; the libraries' are what the call went through."""
    found, between = through("mmengine.runner.runner", "torch.nn.modules.module", "wrapt.wrappers", "ddp_probe.traced.patching.wrapper")(call_path)
    assert found is not None
    assert found.file == __file__
    assert [each.file for each in between] == ["mmengine.runner.runner.py", "torch.nn.modules.module.py"]


@pytest.mark.parametrize("module", ["accelerate.accelerator", "transformers.trainer", "lightning.pytorch", "deepspeed", "hydra.main"])
def test_frameworks_are_passed_over_wherever_they_lie(module):
    """A framework is not part of the job, even if it runs from a clone."""
    found, between = through(module, "torch.nn.parallel.distributed")(call_path)
    assert found is not None
    assert found.file == __file__
    assert [each.file for each in between] == [module + ".py", "torch.nn.parallel.distributed.py"]


@pytest.mark.parametrize("folder", ["/env/lib/python3.9/site-packages/", "/usr/lib/python3/dist-packages/", r"C:\env\Lib\site-packages" + "\\"])
def test_what_is_installed_is_passed_over(folder):
    """Any installed package is passed over, whatever its name."""
    found, between = made("somebodys.trainer", folder + "somebodys/trainer.py")(call_path)
    assert found is not None
    assert found.file == __file__
    assert [each.file for each in between] == [folder + "somebodys/trainer.py"]


def test_the_standard_library_is_passed_over():
    """A context manager, runpy and multiprocessing stand between a library and the job, and are told of by nobody."""

    @contextlib.contextmanager
    def entered(f):
        yield f()

    standard = os.path.dirname(os.__file__)
    for call in (made("x", os.path.join(standard, "multiprocessing", "process.py")), made("x", "<frozen runpy>"), made("contextlib", "odd.py")):
        found, between = call(call_path)
        assert found is not None
        assert (found.file, between) == (__file__, [])
    with entered(call_path) as (found, _):
        assert found is not None
        assert found.file == __file__


def test_the_command_that_pip_wrote_is_passed_over():
    """The few lines in bin/ that start an installed program are not the job's."""
    found, _ = made("__main__", "/env/bin/accelerate")(call_path)
    assert found is not None
    assert found.file == __file__


def test_an_installed_program_is_the_job():
    """If only installed code runs, the innermost line of the started package is the job's."""
    packages = "/env/lib/python3.9/site-packages/"
    started = made("__main__", packages + "trainer/__main__.py")
    inner = made("trainer.loop", packages + "trainer/loop.py")
    libraries = [made("accelerate.a", packages + "accelerate/a.py"), made("torch.b", packages + "torch/b.py")]
    found, between = alone(made("runpy", "<frozen runpy>"), started, inner, *libraries)
    assert found is not None
    assert found.file == packages + "trainer/loop.py"
    assert [each.file for each in between] == [packages + "accelerate/a.py", packages + "torch/b.py"]


def test_a_script_of_a_framework_is_the_job():
    """Of a script that a framework brings, its own line is the job's, or that of a module below it; the framework's other modules are libraries."""
    packages = "/run/env/lib/python3.9/site-packages/accelerate/"
    script = made("__main__", packages + "test_utils/scripts/test_script.py")
    libraries = [made("accelerate.accelerator", packages + "accelerator.py"), made("torch.b", "/run/env/lib/python3.9/site-packages/torch/b.py")]
    found, between = alone(made("runpy", "<frozen runpy>"), script, *libraries)
    assert found is not None
    assert found.file == packages + "test_utils/scripts/test_script.py"
    assert [os.path.basename(each.file) for each in between] == ["accelerator.py", "b.py"]
    below = made("accelerate.test_utils.scripts.external_deps.part", packages + "test_utils/scripts/external_deps/part.py")
    found, _ = alone(made("runpy", "<frozen runpy>"), script, below, *libraries)
    assert found is not None
    assert found.file.endswith("external_deps/part.py")


@pytest.mark.parametrize("file", ["ray/_private/workers/default_worker.py", "torch/distributed/run.py", "accelerate/commands/launch.py"])
def test_what_starts_programs_is_not_the_job(file):
    """The main module of a launcher or a worker of a framework is not a program of the job."""
    packages = "/env/lib/python3.9/site-packages/"
    found, _ = alone(made("__main__", packages + file), made("torch.b", packages + "torch/b.py"))
    assert found is None


def test_a_program_among_the_files_of_a_python():
    """A program in a Python's own folder that is of no package, and a child of multiprocessing that runs it, are the job's."""
    for name in ("__main__", "__mp_main__"):
        found, _ = alone(made(name, "/opt/app/lib/python3.9/train.py"), made("torch.b", "/env/lib/python3.9/site-packages/torch/b.py"))
        assert found is not None
        assert found.file == "/opt/app/lib/python3.9/train.py"


def test_a_command_of_the_jobs_own_is_the_job():
    """A script in bin/ without an ending, which calls torch itself, is the job's line for want of another."""
    found, _ = alone(made("__main__", "/work/bin/train"), made("torch.b", "/env/lib/python3.9/site-packages/torch/b.py"))
    assert found is not None
    assert found.file == "/work/bin/train"


def test_a_launcher_is_no_program():
    """If only launchers and frameworks run, no line is the job's."""
    packages = "/env/lib/python3.9/site-packages/"
    found, between = alone(made("__main__", "/env/bin/torchrun"), made("torch.distributed.run", packages + "torch/distributed/run.py"))
    assert found is None
    assert [each.file for each in between] == [packages + "torch/distributed/run.py"]


def test_names_that_only_begin_alike_are_the_jobs():
    """torchvision is not torch."""
    found, _ = through("torchvision.models")(call_path)
    assert found is not None
    assert found.file == "torchvision.models.py"


def test_caller_may_be_a_library():
    """caller_package names the package that made the call, past wrapt and the probe."""
    assert through("mmengine.runner.runner", "wrapt", "ddp_probe.x")(caller_package) == "mmengine"


def test_deep_stacks_are_walked_for_a_while_only():
    """A library's recursion of more than 200 frames ends the search, and no line is the job's."""

    def deep(count):
        call = made("torch.deep")
        return call(_deep, call, count)

    found, between = deep(250)
    assert found is None
    assert [each.file for each in between] == ["torch.deep.py"] * 8


def _deep(call, count):
    return call(call, *([call] * count), call_path)


def test_odd_module_name():
    """A frame whose __name__ is not a string is the job's."""
    namespace = {"__name__": 3, "call_path": call_path}
    exec(compile("found, between = call_path()", "odd.py", "exec"), namespace)
    assert namespace["found"].file == "odd.py"
