"""Values in words."""

import collections
import datetime
import enum
import functools
import pathlib
import sys

import pytest
import torch

from ddp_probe.traced.facts.describe import class_name, describe, describe_mapping


class Hostile:
    """Raises at every look that Python lets it notice."""

    def __getattribute__(self, name):
        raise RuntimeError("looked at " + name)

    __repr__ = __str__ = __len__ = __iter__ = __bool__ = __hash__ = __eq__ = lambda self, *args: 1 / 0


def of_hostile_meta():
    """Return a class whose metaclass raises when the class is looked at, hashed or compared; pytest must not meet it in the module."""

    def refuse(cls, *args):
        raise RuntimeError("looked at")

    meta = type("HostileMeta", (type,), {"__getattribute__": refuse, "__repr__": refuse, "__hash__": refuse, "__eq__": refuse})
    return meta("OfHostileMeta", (), {})


def of_hostile_value():
    """Return a value of that class."""
    return of_hostile_meta()()


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1


class OwnString(str):
    """A string whose own methods raise."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError


def named():
    """Has a name."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (3, "3"),
        (0.5, "0.5"),
        ("nccl", "nccl"),
        (b"abc", "bytes(3)"),
        ([1, "a", None], "[1, 'a', None]"),
        ((1, 2), "(1, 2)"),
        ({"a": [1]}, "{'a': [1]}"),
        ({2, 1}, "{1, 2}"),
        (frozenset([1]), "frozenset({1})"),
        (range(3), "range(0, 3)"),
        (datetime.timedelta(seconds=1800), "0:30:00"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (collections.OrderedDict(a=1), "{'a': 1}"),
        (torch.device("cuda:1"), "cuda:1"),
        (torch.float16, "torch.float16"),
        (torch.Size([3, 4]), "[3, 4]"),
        (torch.zeros(3, 4), "Tensor(float32, [3, 4], cpu)"),
        (torch.nn.Parameter(torch.zeros(2)), "Parameter(float32, [2], cpu)"),
        (torch.nn.Linear, "torch.nn.modules.linear.Linear"),
        (torch.nn.Linear(1, 1), "<torch.nn.modules.linear.Linear>"),
        (functools.partial(named), "functools.partial(%s.named)" % __name__),
        (named, __name__ + ".named"),
        (len, "builtins.len"),
        (sys, "module sys"),
        (Colour.RED, "Colour.RED"),
    ],
)
def test_known_values(value, text):
    """A value of a known type is shown."""
    assert describe(value) == text


def test_methods_are_told_by_their_function():
    """A bound method is described by the qualified name of its function."""
    assert describe(torch.nn.Linear(1, 1).forward) == "torch.nn.modules.linear.Linear.forward"


@pytest.mark.parametrize("make", [Hostile, of_hostile_value, lambda: OwnString("x"), lambda: type("Sub", (int,), {})(3)])
def test_other_values_are_told_by_their_class(make):
    """None of the value's own code runs."""
    value = make()
    assert describe(value) == "<%s>" % class_name(value)
    assert describe([value]) == "[<%s>]" % class_name(value)
    assert describe({"a": value}) == "{'a': <%s>}" % class_name(value)


def test_hostile_class():
    """The name of a class is read past its metaclass."""
    cls = of_hostile_meta()
    assert class_name(cls).endswith("OfHostileMeta")
    assert describe(cls).endswith("OfHostileMeta")


def test_odd_module_names():
    """A class whose __module__ is not a string is described by its name alone."""
    assert class_name(type("Odd", (), {"__module__": 3})) == "Odd"
    assert class_name(type("Odd", (), {"__module__": property(lambda self: 1 / 0)})) == "Odd"


def test_limits():
    """Depth, items and characters are bounded, also for a list that holds itself."""
    loop: list = []
    loop.append(loop)
    assert describe(loop) == "[[[[...]]]]"
    assert describe(list(range(1000))).endswith(", ...]")
    assert len(describe("x y" * 10_000)) == 200
    assert len(describe(["x" * 500] * 5, limit=50)) == 50
    assert describe(1 << 100_000) == "int of 100001 bits"


def test_secrets_are_masked():
    """A secret is masked in a string, under its name in a dict, and in a path."""
    assert describe("token=planted") == "token=***"
    assert describe({"password": "planted"}) == "{'password': ***}"
    assert describe_mapping({"api_key": "planted", "lr": 1}) == {"api_key": "***", "lr": "1"}
    assert "planted" not in describe(pathlib.PurePosixPath("/a?token=planted"))


def test_mapping():
    """A dict is described item by item, a subclass by dict's own code, anything else not at all."""

    class Own(dict):
        def items(self):
            raise RuntimeError

    assert describe_mapping(Own(a=1)) == {"a": "1"}
    assert describe_mapping(Hostile()) == {}
    assert len(describe_mapping(dict.fromkeys(range(500), 1))) == 100


def test_mmengine_config():
    """mmengine's ConfigDict is shown like a dict."""
    config = pytest.importorskip("mmengine.config").ConfigDict(type="MMDistributedDataParallel", device_ids=None)
    assert describe(config) == "{'type': 'MMDistributedDataParallel', 'device_ids': None}"
    assert describe_mapping(config) == {"type": "MMDistributedDataParallel", "device_ids": "None"}


def test_tensor_subclass_runs_no_torch_function():
    """A subclass's __torch_function__ is not called."""

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("called")

    assert describe(torch.zeros(2).as_subclass(Own)) == "%s(float32, [2], cpu)" % Own.__qualname__
