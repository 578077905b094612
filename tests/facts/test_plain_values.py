"""The plain values of the job's frames: what is read, what never is, and that no variable changes."""

import enum
import gc
import sys
import threading
import time
import weakref
from typing import Any, Dict, List

import pytest
import torch

from ddp_probe.traced.facts import plain_values
from ddp_probe.traced.facts.plain_values import values_of_main_thread, values_of_traceback

_LOOKS = 100  # None is had of a thread that moves meanwhile.


@pytest.fixture(autouse=True)
def all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the frames of functions that run, too."""
    monkeypatch.setenv("DDP_PROBE_VALUES", "all")


class Mode(enum.Enum):
    """Members are told by name."""

    TRAIN = "a text"


class Evil(type):
    """A metaclass that counts who asks it."""

    ran = 0

    def _asked(cls, *_: Any) -> Any:
        Evil.ran += 1
        return cls

    __eq__ = __instancecheck__ = __subclasscheck__ = __getattr__ = _asked  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Lying(metaclass=Evil):
    """Whoever asks an instance runs this."""

    __class__ = property(Evil._asked)  # type: ignore[assignment]
    __dict__ = property(Evil._asked)  # type: ignore[assignment]

    def __len__(self) -> int:
        Evil.ran += 1
        raise SystemExit("ran")

    __repr__ = __bool__ = __index__ = __float__ = __getattr__ = __len__  # type: ignore[assignment]


class OwnInt(int):
    """A number whose text is the job's code."""

    def __repr__(self) -> str:
        Evil.ran += 1
        return "evil"


class OwnList(list):  # type: ignore[type-arg]
    """A list whose length is the job's code."""

    def __len__(self) -> int:
        Evil.ran += 1
        return 7


def _read_beside() -> Any:
    """Read the main thread's values from another thread, as the watcher does; again while this one is still on its way to join()."""
    answers: List[Any] = []

    def read() -> None:
        while len(answers) < _LOOKS and not (answers and answers[-1]):
            answers.append(values_of_main_thread())
            time.sleep(0.01)

    reader = threading.Thread(target=read)
    reader.start()
    reader.join()
    return answers[-1]


def _of(function: str, answer: Any) -> Dict[str, str]:
    (values,) = [each.values for each in answer if each.site.function.split(".")[-1] == function]
    return dict(values)


def job_of_plain_values() -> Any:
    """Stand in frames that hold each kind of value."""
    best, step, done, nothing, mode = 7.5, 3, False, None, Mode.TRAIN
    huge, nan, items, pair = 1 << 4000, float("nan"), {"a": 1}, (1, 2)
    weights, text, api_key = torch.zeros(2, 3), "a text", 123456
    answer = _read_beside()
    del best, step, done, nothing, mode, huge, nan, items, pair, weights, text, api_key
    return answer


def test_plain_values_are_told_and_nothing_else() -> None:
    """Numbers, flags, members, lengths and shapes are told; texts are not, and the value of a secret's name is masked."""
    assert _of("job_of_plain_values", job_of_plain_values()) == {
        "best": "7.5",
        "step": "3",
        "done": "False",
        "nothing": "None",
        "mode": "Mode.TRAIN",
        "huge": "int of 4001 bits",
        "nan": "nan",
        "items": "len 1",
        "pair": "len 2",
        "weights": "shape [2, 3]",
        "api_key": "***",
    }


def job_of_hostile_values() -> Any:
    """Hold objects that run code whenever they are asked."""
    lying, own_int, own_list, kind, plain = Lying(), OwnInt(3), OwnList([1]), Lying, 4
    answer = _read_beside()
    del lying, own_int, own_list, kind, plain
    return answer


def test_no_code_of_a_hostile_object_runs() -> None:
    """Objects whose class, length, text or namespace is the job's code are neither asked nor told."""
    Evil.ran = 0
    assert _of("job_of_hostile_values", job_of_hostile_values()) == {"plain": "4"}
    assert Evil.ran == 0


class Trainer:
    """Keeps its numbers in attributes."""

    def __init__(self) -> None:
        self.best, self._hooks, self.password, self.model = 2.5, [1], 5, Lying()

    def job_of_a_method(self) -> Any:
        """Stand in a method."""
        return _read_beside()


def test_attributes_of_self_are_told_one_level_deep() -> None:
    """An instance's own numbers are told under the name that the source uses; a secret's name is masked here too."""
    assert _of("job_of_a_method", Trainer().job_of_a_method()) == {"self.best": "2.5", "self.password": "***"}


def job_of_many_names(depth: int) -> Any:
    """Stand in many frames of many names."""
    a = b = c = d = e = f = g = h = i = j = k = l = m = n = o = p = q = r = s = t = u = v = depth  # noqa: E741
    answer = job_of_many_names(depth - 1) if depth else _read_beside()
    del a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v
    return answer


def test_names_and_frames_are_bounded() -> None:
    """Of more than eight frames the innermost eight are told, with twenty names each."""
    answer = job_of_many_names(12)
    assert len(answer) == 8
    assert {len(each.values) for each in answer if each.site.function == "job_of_many_names"} == {20}
    assert max(len(each.values) for each in answer) == 20


def test_off_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """With DDP_PROBE_VALUES=off, no frame is read, neither of a thread nor of an exception."""
    monkeypatch.setenv("DDP_PROBE_VALUES", "off")
    assert job_of_plain_values() == []
    assert values_of_traceback(_failing()) == []


def test_by_default_no_running_function_is_read_where_it_has_no_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a setting, a function that runs is read from Python 3.13 on alone, and the frames that an exception has left always."""
    monkeypatch.delenv("DDP_PROBE_VALUES")
    assert bool(job_of_plain_values()) == (sys.version_info >= (3, 13))
    assert values_of_traceback(_failing()) != []


def _failing() -> Any:
    try:
        _raise_with(8.0, 7.0)
    except ValueError as exc:
        return exc.__traceback__


def _raise_with(value: float, best: float) -> None:
    if value > best:
        raise ValueError("worse")


def test_values_of_an_exception_are_those_of_the_line_that_raised() -> None:
    """The frames that an exception has left are told with the line in which each of them was."""
    answer = values_of_traceback(_failing())
    assert answer[-1].values == {"value": "8.0", "best": "7.0"}
    assert answer[-1].site.line == _raise_with.__code__.co_firstlineno + 2


def test_a_tensor_is_not_kept_by_the_look() -> None:
    """What the job lets go after a look is gone: the frame keeps no copy of its variables."""
    tensor = torch.zeros(3)
    gone = weakref.ref(tensor)
    _read_beside()
    del tensor
    assert gone() is None


def job_that_keeps_its_namespace() -> Any:
    """Hold the dict of locals(), in which the job has changed a value."""
    value = 1
    held = locals()
    held["value"] = 2
    _read_beside()
    return held["value"], value


def test_a_namespace_that_the_job_holds_is_not_refreshed() -> None:
    """The dict of locals() that a job holds stays as the job has made it, whoever looks."""
    assert job_that_keeps_its_namespace() == (2, 1)


class Cycle:
    """Is collected at any time, and lets other threads run then."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0)


def job_that_checks_itself(rounds: int) -> int:
    """Count in local variables, and check each of them, while others look; each round waits for a moment."""
    total, best, items = 0, 3.5, [1, 2]
    for number in range(rounds):
        Cycle()
        before = total
        total += abs(-number)
        held = torch.zeros(4)
        time.sleep(0)
        assert (total, best, items, held.shape[0]) == (before + number, 3.5, [1, 2], 4)
        del held
    return total


def _profiles(job: Any, what: Any, whatever: Any) -> Any:
    """Do what a profiler in Python does; the names of its arguments tell nothing, and others run meanwhile."""
    time.sleep(0)
    return _profiles


@pytest.mark.parametrize("hook", [None, sys.setprofile, sys.settrace])
def test_no_variable_changes_under_many_looks(hook: Any) -> None:
    """Looks from another thread as fast as it can change no variable of a running function, also if a profiler or a tracer in Python runs."""
    stop = threading.Event()
    looks = [0]

    def look() -> None:
        while not stop.is_set():
            looks[0] += any(each.values.get("best") == "3.5" for each in values_of_main_thread())

    reader = threading.Thread(target=look)
    interval, thresholds, tracer = sys.getswitchinterval(), gc.get_threshold(), sys.gettrace()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(20, 2, 2)
    reader.start()
    try:
        if hook is not None:
            hook(_profiles)
        end = time.monotonic() + 2
        while time.monotonic() < end or not looks[0]:
            assert job_that_checks_itself(100) == 100 * 99 // 2
    finally:
        if hook is not None:
            hook(tracer if hook is sys.settrace else None)
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
        stop.set()
        reader.join()
    assert gc.isenabled()


def test_the_module_reads_no_frame_of_a_library() -> None:
    """Frames of pytest, of the standard library and of the probe are not the job's."""
    files = {each.site.file for each in job_of_plain_values()}
    assert not any("site-packages" in file or plain_values.__file__ == file for file in files)
