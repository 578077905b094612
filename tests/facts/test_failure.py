"""Exceptions in words."""

import sys
import types

import pytest
import torch

from ddp_probe.traced.facts.failure import failure


def caught(f):
    """Return the exception that f raises."""
    try:
        f()
    except BaseException as exc:  # the exception is what the tests look at
        return exc
    raise AssertionError("nothing was raised")


def raising(exc):
    """Raise it."""
    raise exc


class OwnTextError(RuntimeError):
    """Its __str__ is the job's code."""

    def __str__(self):
        raise SystemExit("ran")


class OwnArgsError(RuntimeError):
    """Its args are the job's code."""

    args = property(lambda self: 1 / 0)


class Unprintable:
    """An argument that must not be printed."""

    def __repr__(self):
        raise RuntimeError

    __str__ = __repr__


def test_torch_error():
    """torch's own error is described with its message, its line and its frames."""
    exc = caught(lambda: torch.zeros(2) + torch.zeros(3))
    found = failure(exc)
    assert (found.type, found.message) == ("RuntimeError", str(exc))
    assert found.raised_at is not None
    assert found.raised_at.file == __file__
    assert [site.function.rsplit(".", 1)[-1] for site in found.frames] == ["caught", "<lambda>"]


@pytest.mark.parametrize(
    "exc", [KeyError("RANK"), FileNotFoundError(2, "No such file", "x.pth"), ValueError("a", 1), SystemExit(3), KeyboardInterrupt()]
)
def test_python_errors_say_what_they_say(exc):
    """Python's own exceptions are described by str()."""
    assert failure(exc).message == str(exc)


def test_own_str_does_not_run():
    """An exception that overrides __str__ is described by its arguments."""
    assert failure(OwnTextError("a", 3)).message == "('a', 3)"
    assert failure(OwnTextError("a")).message == "a"


def test_hostile_arguments():
    """Arguments are described, never printed, wherever they stand."""
    assert failure(RuntimeError(Unprintable())).message.startswith("(<")
    assert failure(KeyError(Unprintable())).message.startswith("(<")
    assert failure(OSError(Unprintable(), Unprintable(), Unprintable())).message.startswith("(<")
    assert failure(OwnArgsError("x")).message == "x"


def test_secrets_and_length():
    """A message is masked and cut at 2 000 characters."""
    assert failure(ValueError("cannot log in with password=planted")).message == "cannot log in with password=***"
    assert len(failure(ValueError("x y " * 5000)).message) == 2000


def test_long_lines_keep_both_ends():
    """Of two long lists of keys both beginnings and both ends stay, and nothing of a secret in the middle."""
    keys = ", ".join('"head.%d.weight"' % number for number in range(400))
    lists = "\n\tMissing key(s) in state_dict: %s. \n\tUnexpected key(s) in state_dict: %s. token=planted " % (keys, keys)
    text = "Error(s) in loading state_dict for Net:" + lists
    found = failure(RuntimeError(text)).message
    assert len(found) <= 2000
    assert found.count('key(s) in state_dict: "head.0.weight"') == 2
    assert found.count('"head.399.weight"') == 2
    assert "planted" not in found


def test_a_long_traceback_in_a_message_keeps_its_frames():
    """Of a worker's traceback, which a DataLoader sends as text, each frame stays; its source and carets make room for them."""
    frame = '  File "/env/site-packages/torch/module.py", line %d, in _call\n    return call(*args)\n           ^^^^^^^^^^^\n'
    frames = [frame % line for line in range(20)]
    frames.insert(12, '  File "/work/container.py", line 100, in forward\n    sample = transform(sample)\n')
    text = "Caught NotImplementedError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n%sNotImplementedError\n"
    said = failure(RuntimeError(text % "".join(frames))).message
    assert said.count('  File "') == 21
    assert '  File "/work/container.py", line 100, in forward\n  File' in said
    assert said.endswith("NotImplementedError\n")
    plain = "wrong keys:\n" + "    head.weight\n" * 200
    assert "    head.weight\n    head.weight" in failure(RuntimeError(plain)).message


def test_what_the_cause_says():
    """An exception that was raised from another one carries that one's words; one that was raised during another one does not."""

    def from_other():
        raise RuntimeError("worker exited unexpectedly") from RuntimeError("worker is killed by signal: Killed. token=planted")

    def during_other():
        try:
            raising(KeyError("a"))
        except KeyError:
            raise ValueError  # noqa: B904  # the context is what is tested

    assert failure(caught(from_other)).cause_message == "worker is killed by signal: Killed. token=***"
    assert failure(caught(during_other)).cause_message == ""


def test_cause():
    """The exception that it was raised from, or during, is named; not one that was silenced."""

    def from_other():
        raise ValueError from KeyError("a")

    def during_other():
        try:
            raising(TypeError())
        except TypeError:
            raise ValueError  # noqa: B904  # the context is what is tested

    def silenced():
        try:
            raising(TypeError())
        except TypeError:
            raise ValueError from None

    assert [failure(caught(f)).cause for f in (from_other, during_other, silenced)] == ["KeyError", "TypeError", ""]


def test_long_traceback():
    """Of a deep recursion the first ten and the last thirty frames are kept."""

    def down(count):
        return down(count - 1) if count else raising(RecursionError("deep"))

    found = failure(caught(lambda: down(300)))
    assert len(found.frames) == 40
    assert found.frames[0].function.endswith("caught")
    assert found.frames[-1] == found.raised_at


def test_frames_of_the_probe_are_left_out():
    """Frames of the probe and of wrapt are left out."""
    modules = []
    for name in ("ddp_probe.traced.patching.wrapper", "wrapt.wrappers"):
        module = types.ModuleType(name)
        exec("def call(f, *args):\n    return f(*args)\n", module.__dict__)
        modules.append(module)
    found = failure(caught(lambda: modules[0].call(modules[1].call, raising, ValueError("x"))))
    assert [site.function.rsplit(".", 1)[-1] for site in found.frames] == ["caught", "<lambda>", "raising"]


def test_no_traceback():
    """An exception that was never raised has no frames."""
    found = failure(ValueError("x"))
    assert found.frames == []
    assert found.raised_at is None


def test_traceback_is_left_as_it_was():
    """Describing an exception changes neither its traceback nor its arguments."""
    exc = caught(lambda: raising(ValueError("x")))
    before = (exc.__traceback__, exc.args, exc.__context__, sys.getrefcount(exc))
    failure(exc)
    assert (exc.__traceback__, exc.args, exc.__context__, sys.getrefcount(exc)) == before


def test_an_exception_of_ray_says_what_its_worker_raised():
    """It holds the traceback as text, and its own __str__ returns that; the arguments are the job's exception."""
    kind = type("RayTaskError(ValueError)", (OwnTextError,), {"__module__": "ray.exceptions", "__str__": lambda self: "ValueError: loss is nan"})
    assert failure(kind(OwnTextError())).message == "ValueError: loss is nan"


def test_the_end_of_what_a_cause_says_is_kept():
    """A pool of Python's passes a worker's traceback on as the text of the cause: its last line names the exception."""

    def fails():
        raise ValueError("x") from RuntimeError("Traceback\n" + "  a frame\n" * 500 + "ValueError: loss is nan")

    assert failure(caught(fails)).cause_message.endswith("ValueError: loss is nan")
