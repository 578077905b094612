"""What a load is with map-location and weights-only, and that it passes as it was where they have nothing to do; settled-load is on as well."""

import io
import os
import pickle
import sys
import warnings
import zipfile
from pathlib import Path

import numpy
import torch
from checked import Skipped, aged, applied, declined, failure, main, recorded, same_failure, saved_elsewhere
from mmengine.logging import HistoryBuffer

OLD_TORCH = torch.__version__.startswith("1.")
WHOLE = {"part%d" % part: torch.full((1000,), float(part)) for part in range(4)}


# map-location


def check_a_device_that_is_not_here():
    """A file from cuda:0 is loaded to the CPU, by name or Path, and that is recorded with before and after."""
    saved_elsewhere({"a": torch.arange(4.0)}, "a.pth")
    for path in ("a.pth", Path("a.pth")):
        assert torch.load(path)["a"].device.type == "cpu"
    events = recorded()
    assert [event["event"] for event in events] == ["remedy.applied"] * 2
    assert (events[0]["before"], events[0]["after"]) == ({"map_location": "None"}, {"map_location": "cpu"})
    assert events[0]["because"] == "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"


def check_a_device_that_torch_does_not_know():
    """A file from a vendor's card whose plugin is not imported is loaded to the CPU."""
    saved_elsewhere({"a": torch.arange(4.0)}, "a.pth", "abacus:3")
    assert torch.load("a.pth", None)["a"].tolist() == [0, 1, 2, 3]
    assert applied() == ["map-location"]


def check_a_place_that_the_job_chose():
    """A map_location of the job's own is not replaced, be it one that fails."""
    saved_elsewhere({"a": torch.arange(4.0)}, "a.pth")
    assert torch.load("a.pth", map_location="cpu")["a"].sum() == 6
    same_failure(torch.load, "a.pth", map_location="cuda:0")
    assert recorded() == []


def check_a_stream_from_another_device():
    """A stream has been read from when the load fails: it is left to the job, once with a word about it, and fails as ever."""
    saved_elsewhere({"a": torch.arange(4.0)}, "a.pth")
    data = Path("a.pth").read_bytes()
    for _ in range(2):
        assert failure(torch.load, io.BytesIO(data)) == failure(torch.load._self_original, io.BytesIO(data))
    assert declined() == ["the checkpoint comes from a stream, which cannot be read twice"]


# weights-only


def buffer(*values):
    """Return a HistoryBuffer of mmengine that has seen these values."""
    made = HistoryBuffer()
    for value in values:
        made.update(value)
    return made


def needs_weights_only():
    """Leave a check on a torch that loads everything."""
    if OLD_TORCH:
        raise Skipped("torch.load has no weights_only before torch 1.13.")


def check_a_history_buffer():
    """A checkpoint of mmengine loads with its buffers whole; afterwards torch's allow-list is what it was."""
    needs_weights_only()
    torch.save({"buffer": buffer(1.0, 2.5), "empty": buffer(), "score": numpy.float64(0.5), "count": numpy.int64(3), "a": torch.arange(3)}, "a.pth")
    before = set(torch.serialization.get_safe_globals())
    found = torch.load("a.pth", map_location="cpu")
    assert found["buffer"].statistics("mean") == 1.75
    assert found["buffer"].data[0].tolist() == [1.0, 2.5]
    assert (found["score"], found["count"], found["a"].tolist()) == (0.5, 3, [0, 1, 2])
    assert set(torch.serialization.get_safe_globals()) == before
    assert applied() == ["weights-only"]
    assert failure(torch.load._self_original, "a.pth")[0] is pickle.UnpicklingError


def check_a_history_buffer_of_an_older_numpy():
    """A checkpoint that was written with numpy 1 loads where numpy 2 is installed."""
    needs_weights_only()
    torch.save({"buffer": buffer(1.0, 2.5)}, "new.pth")
    with zipfile.ZipFile("new.pth") as file:
        code = file.read("new/data.pkl")
    assert b"numpy._core" in code
    crafted(code.replace(b"numpy._core", b"numpy.core"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.load("a.pth")["buffer"].data[0].tolist() == [1.0, 2.5]
    assert applied() == ["weights-only"]


def check_weights_only_stays_on():
    """The second load runs with weights_only as the first one did."""
    needs_weights_only()
    torch.save({"buffer": buffer(1.0), "a": torch.zeros(3)}, "a.pth")
    seen = []

    def place(storage, location):
        frame = sys._getframe(1)
        while frame.f_code.co_name != "load" or not frame.f_code.co_filename.endswith("serialization.py"):
            frame = frame.f_back
        seen.append(frame.f_locals["weights_only"])
        return storage

    torch.load("a.pth", map_location=place)
    assert seen == [True]
    (event,) = recorded()
    assert set(event["after"]) == {"allowed too"}
    assert "mmengine.logging.history_buffer.HistoryBuffer" in event["after"]["allowed too"]


def check_what_the_job_allows_stays_allowed():
    """Classes that the job has allowed itself are allowed afterwards as well."""
    needs_weights_only()
    kind = type(numpy.dtype("float64"))
    torch.serialization.add_safe_globals([kind, HistoryBuffer])
    try:
        torch.save({"buffer": buffer(1.0)}, "a.pth")
        torch.load("a.pth")
        assert {kind, HistoryBuffer} <= set(torch.serialization.get_safe_globals())
    finally:
        torch.serialization.clear_safe_globals()


class Foreign:
    """A class that nobody but its author can vouch for."""


def check_a_foreign_class():
    """A file that asks for one more class is not loaded: the failure is torch's own, and the class is named."""
    needs_weights_only()
    torch.save({"buffer": buffer(1.0), "other": Foreign()}, "a.pth")
    same_failure(torch.load, "a.pth")
    assert declined() == ["the file also asks for __main__.Foreign, which only its author can vouch for"]
    assert not torch.serialization.get_safe_globals()


def check_weights_only_of_a_stream():
    """A stream is left to the job."""
    needs_weights_only()
    stream = io.BytesIO()
    torch.save({"buffer": buffer(1.0)}, stream)
    data = stream.getvalue()
    assert failure(torch.load, io.BytesIO(data)) == failure(torch.load._self_original, io.BytesIO(data))
    assert "stream" in declined()[0]


def check_a_file_of_the_old_format():
    """A file of the format before torch 1.6 does not say which classes it asks for: nothing is allowed."""
    needs_weights_only()
    torch.save({"buffer": buffer(1.0)}, "a.pth", _use_new_zipfile_serialization=False)
    same_failure(torch.load, "a.pth")
    assert declined() == ["this torch does not say which classes the file asks for"]


def check_a_job_that_asks_for_everything():
    """With weights_only=False the load is the job's own affair."""
    needs_weights_only()
    torch.save({"other": Foreign()}, "a.pth")
    assert type(torch.load("a.pth", weights_only=False)["other"]) is Foreign
    assert recorded() == []


def asking(*path, owner="mmengine.logging.history_buffer HistoryBuffer"):
    """Return a pickle that asks getattr for a name of the owner, for a name of that, and so on."""
    code = b"\x80\x02" + b"c__builtin__\ngetattr\n" * len(path) + b"c%s\n" % owner.replace(" ", "\n").encode()
    for name in path:
        code += b"X" + len(name).to_bytes(4, "little") + name.encode() + b"\x86R"
    return code + b"."


def crafted(code, path="a.pth"):
    """Write a checkpoint whose pickle is this code."""
    torch.save({}, "whole.pth")
    with zipfile.ZipFile("whole.pth") as whole, zipfile.ZipFile(path, "w") as made:
        for name in whole.namelist():
            made.writestr(name, code if name.endswith("data.pkl") else whole.read(name))
    aged(path)


def check_getattr_reaches_the_four_statistics():
    """The stand-in for getattr answers the four methods that a HistoryBuffer registers."""
    needs_weights_only()
    for name in ("min", "max", "current", "mean"):
        crafted(asking(name))
        assert torch.load("a.pth") is getattr(HistoryBuffer, name)


def check_getattr_reaches_nothing_else():
    """No other name, no other owner, and nothing that a statistic could lead to: the load fails as a refused one does."""
    needs_weights_only()
    tries = [asking(name) for name in ("__init__", "register_statistics", "__dict__", "__class__", "statistics", "__reduce__", "min.__globals__")]
    tries += [asking("min", name) for name in ("__globals__", "__code__", "__call__", "__class__")]
    tries += [asking("__init__", "__globals__"), asking("tofile", owner="numpy ndarray"), asking("min", owner="numpy ndarray")]
    tries += [asking("fromkeys", owner="collections OrderedDict"), asking("min", owner="numpy dtype"), asking("mean", owner="torch FloatStorage")]
    for code in tries:
        crafted(code)
        told = failure(torch.load, "a.pth")
        assert told[0] is pickle.UnpicklingError, (code, told)
        assert "A checkpoint may ask HistoryBuffer for min, max, current, mean, and for nothing else." in told[1]
        assert not torch.serialization.get_safe_globals()


def check_getattr_of_foreign_modules():
    """A pickle that names os.system, or the module os itself, is not loaded at all."""
    needs_weights_only()
    for owner in ("os system", "posix system", "builtins eval", "os path"):
        crafted(asking("min", owner=owner))
        same_failure(torch.load, "a.pth")
        assert "only its author can vouch for" in declined()[0]


def check_the_statistics_cannot_be_called():
    """A file may name a statistic and not call it."""
    needs_weights_only()
    code = asking("min")[:-1] + b"\x8c\x01a\x85R."
    crafted(code)
    assert failure(torch.load, "a.pth")[0] is pickle.UnpicklingError


def check_without_mmengine():
    """If mmengine cannot be imported, the file stays unloaded, and a line says so."""
    needs_weights_only()
    torch.save({"buffer": buffer(1.0)}, "a.pth")
    name = "mmengine.logging.history_buffer"
    kept, sys.modules[name] = sys.modules[name], None
    try:
        same_failure(torch.load, "a.pth")
    finally:
        sys.modules[name] = kept
    assert declined() == ["%s cannot be imported here" % name]


# The promises


def check_a_load_is_made_once():
    """A load that goes well is made once: objects are rebuilt once."""
    torch.save(WHOLE, "a.pth")
    seen = []
    torch.load("a.pth", map_location=lambda storage, location: seen.append(1) or storage)
    assert len(seen) == 4


def check_failures_pass_unchanged():
    """A file that is no checkpoint, a bad argument and an exception of the job's own class arrive as without the remedies."""
    Path("page.pth").write_text("<html>not found</html>")
    aged("page.pth")
    torch.save(WHOLE, "a.pth")
    aged("a.pth")

    class OwnError(Exception):
        pass

    def place(storage, location):
        raise OwnError("mine")

    same_failure(torch.load, "page.pth")
    same_failure(torch.load, "a.pth", no_such_argument=1)
    same_failure(torch.load, "a.pth", map_location=place)
    same_failure(torch.load)
    assert recorded() == []


def check_warnings_point_at_the_jobs_line():
    """A warning that the load raises names this file, as without the remedies."""

    def warned(load):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load("noisy.pth", **({} if OLD_TORCH else {"weights_only": False}))
        return {(os.path.basename(entry.filename), str(entry.message)) for entry in caught if "noisy" in str(entry.message)}

    torch.save(Noisy(), "noisy.pth")
    aged("noisy.pth")
    assert warned(torch.load) == warned(torch.load._self_original) == {(os.path.basename(__file__), "noisy")}


class Noisy:
    """An object that warns whoever has called torch.load, when it is rebuilt."""

    def __setstate__(self, state):
        depth = 0
        while sys._getframe(depth).f_code.co_name != "load" or not sys._getframe(depth).f_code.co_filename.endswith("serialization.py"):
            depth += 1
        warnings.warn("noisy", stacklevel=depth + 2)

    def __getstate__(self):
        return {"a": 1}


if __name__ == "__main__":
    main(globals())
