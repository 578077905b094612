"""Where a call came from."""

import sys
import types

from ddp_probe.facts.call_site import call_site, caller_site

SOURCE = "def call(f, *args):\n    return f(*args)\n"


def through(*modules):
    """Return a function that calls call_site or caller_site through one frame of each module."""

    def run(f):
        calls = [made(name) for name in modules]
        return calls[0](*calls[1:], f) if calls else f()

    return run


def made(name):
    """Return a function that lives in a module of this name."""
    module = types.ModuleType(name)
    exec(compile(SOURCE, name + ".py", "exec"), module.__dict__)
    return module.call


def test_own_line():
    """Called from the job, the site is the job's own line."""
    line = sys._getframe().f_lineno + 1
    found = call_site()
    assert found is not None
    assert (found.file, found.line) == (__file__, line)
    assert found.function.endswith("test_own_line")


def test_libraries_are_passed_over():
    """Frames of torch, mmengine, wrapt and the probe are passed over, also inside one another."""
    found = through("mmengine.runner.runner", "torch.nn.modules.module", "wrapt.wrappers", "ddp_probe.patching.wrapper")(call_site)
    assert found is not None
    assert found.file == __file__


def test_names_that_only_begin_alike_are_the_jobs():
    """torchvision is not torch."""
    found = through("torchvision.models")(call_site)
    assert found is not None
    assert found.file == "torchvision.models.py"


def test_caller_may_be_a_library():
    """caller_site names the frame inside mmengine that made the call."""
    found = through("mmengine.runner.runner", "wrapt", "ddp_probe.x")(caller_site)
    assert found is not None
    assert (found.file, found.line) == ("mmengine.runner.runner.py", 2)


def test_without_a_frame_of_the_job():
    """Where every frame is a library's, the innermost of those is the site."""
    frame = None

    def keep():
        nonlocal frame
        frame = sys._getframe(1)
        runner = ("pytest", "_pytest", "pluggy", "xdist", "execnet", "threading", "__main__", "__channelexec__", "runpy")
        return call_site(("torch", "mmengine", __name__.split(".", maxsplit=1)[0], *runner), frame)

    found = through("mmengine.a", "torch.b")(keep)
    assert found is not None
    assert found.file == "torch.b.py"


def test_deep_stacks_are_walked_for_a_while_only():
    """A library's recursion of more than 100 frames ends the search at its innermost frame."""

    def deep(count):
        call = made("torch.deep")
        return call(deep, count - 1) if count else call(call_site, ("torch", __name__.split(".", maxsplit=1)[0]))

    found = deep(80)
    assert found is not None
    assert found.file == "torch.deep.py"


def test_odd_module_name():
    """A frame whose __name__ is no string is the job's."""
    namespace = {"__name__": 3, "call_site": call_site}
    exec(compile("found = call_site()", "odd.py", "exec"), namespace)
    assert namespace["found"].file == "odd.py"
