"""The description of a model's placement."""

import warnings

import pytest
import torch
from placement_cost import measure

from ddp_probe.traced.facts.placement import devices_only, snapshot

NEW = tuple(int(part) for part in torch.__version__.split("+", maxsplit=1)[0].split(".")[:2]) >= (2, 0)


class OnCard(torch.nn.Parameter):
    """A parameter of a vendor's plugin, which says it is on gcu:0."""

    __module__ = "torch_gcu"

    @property
    def device(self):
        """What DDP and mmengine see."""
        return "gcu:0"


class Broken(torch.nn.Parameter):
    """A parameter of which one attribute raises."""

    broken = ""

    def __getattribute__(self, name):
        if name == type(self).broken:
            raise RuntimeError("cannot tell " + name)
        return super().__getattribute__(name)


def two_layers():
    """Return a model of four parameters and three buffers."""
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))


def test_counts():
    """Parameters, elements, bytes and buffers are counted per device and dtype."""
    model = two_layers().double()
    model[0].bias.requires_grad_(False)
    found, rows = snapshot(model)
    assert (found.model, found.parameters, found.elements, found.trainable) == ("torch.nn.modules.container.Sequential", 4, 24, 3)
    assert (found.devices["cpu"].count, found.devices["cpu"].elements, found.devices["cpu"].bytes) == (4, 24, 192)
    assert list(found.dtypes) == ["float64"]
    assert (found.buffers, found.buffer_devices["cpu"].count, found.majority) == (3, 3, "cpu")
    assert found.off_majority == found.buffers_off_majority == []
    assert rows[1] == ["0.bias", [4], "float64", False, "cpu"]


def test_order_and_names_are_those_of_named_parameters():
    """The list is what named_parameters gives, shared tensors and shared modules included."""
    shared = torch.nn.Linear(2, 2)
    model = torch.nn.ModuleDict(
        {"b": torch.nn.Sequential(shared, torch.nn.TransformerDecoderLayer(4, 1, 8)), "a": shared, "c": torch.nn.Linear(2, 2)}
    )
    model["c"].weight = shared.weight
    found, rows = snapshot(model)
    assert [row[0] for row in rows] == [name for name, _ in model.named_parameters()]
    assert found.shared == 3
    assert found.parameters == len(list(model.parameters()))
    assert found.buffers == len(list(model.buffers()))


def test_module_that_holds_itself():
    """A module that is its own descendant is walked once."""
    model = torch.nn.Linear(2, 2)
    inner = torch.nn.Module()
    model.inner = inner
    inner._modules["outer"] = model
    found, _ = snapshot(model)
    assert found.parameters == 2


def test_first_five():
    """The first five parameters are listed with name, device, shape and dtype."""
    found, _ = snapshot(torch.nn.Sequential(*[torch.nn.Linear(2, 3) for _ in range(4)]))
    assert [leaf.name for leaf in found.first] == ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight"]
    assert (found.first[0].device, found.first[0].shape, found.first[0].dtype) == ("cpu", [3, 2], "float32")


def test_no_parameters():
    """A model without parameters has no majority."""
    found, rows = snapshot(torch.nn.ReLU())
    assert (found.parameters, found.majority, found.devices, rows) == (0, "", {}, [])
    assert found.digest


def test_lazy_parameters_are_counted_and_not_read():
    """A parameter without a shape yet is counted as lazy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.Linear(3, 3))
    found, rows = snapshot(model)
    assert (found.parameters, found.lazy, found.devices["cpu"].count, found.unreadable) == (4, 2, 2, 0)
    assert rows[0] == ["0.weight", [], "lazy", False, ""]


def test_meta_parameters():
    """A parameter on the meta device is counted there."""
    found, _ = snapshot(torch.nn.Sequential(torch.nn.Linear(3, 3, device="meta"), torch.nn.Linear(3, 1)))
    assert (found.meta, found.devices["meta"].count, found.devices["cpu"].count) == (2, 2, 2)


def test_off_majority():
    """The first ten names on another device than most are told, parameters and buffers alike."""
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(20)], torch.nn.BatchNorm1d(2))
    for layer in model[:6]:
        layer.to("meta")
        layer.weight = torch.nn.Parameter(layer.weight.to("meta"))
        layer.bias = torch.nn.Parameter(layer.bias.to("meta"))
    model[20].running_mean = model[20].running_mean.to("meta")
    found, _ = snapshot(model)
    assert found.majority == "cpu"
    assert len(found.off_majority) == 10
    assert (found.off_majority[0].name, found.off_majority[0].device) == ("0.weight", "meta")
    assert [leaf.name for leaf in found.buffers_off_majority] == ["20.running_mean"]


def test_property_of_a_subclass_is_believed():
    """A parameter whose `device` property says gcu:0 is on gcu:0, as DDP sees it, if a vendor or a library defines the property."""
    model = torch.nn.Linear(2, 2)
    model.weight = OnCard(model.weight.data)
    found, rows = snapshot(model)
    assert rows[0][4] == "gcu:0"
    assert {device: tally.count for device, tally in found.devices.items()} == {"gcu:0": 1, "cpu": 1}
    assert devices_only(model) == {"gcu:0": 1, "cpu": 1}


@pytest.mark.parametrize("attribute", ["device", "shape", "dtype", "requires_grad"])
def test_parameters_that_raise(attribute, monkeypatch):
    """A parameter whose class raises on one attribute is read by torch's own descriptors."""
    model = torch.nn.Linear(2, 2)
    model.weight = Broken(model.weight.data)
    monkeypatch.setattr(Broken, "broken", attribute)
    found, rows = snapshot(model)
    assert (found.parameters, len(rows)) == (2, 2)
    assert (found.unreadable, found.devices["cpu"].count) == (0, 2)


def test_no_torch_function_runs():
    """A subclass's __torch_function__ is not called."""
    called = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            called.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    model = torch.nn.Module()
    model.register_buffer("own", torch.zeros(2).as_subclass(Own))
    model._parameters["weight"] = torch.zeros(3).as_subclass(Own)
    called.clear()
    found, _ = snapshot(model)
    devices_only(model)
    assert called == []
    assert (found.parameters, found.buffers, found.elements) == (1, 1, 3)


@pytest.mark.skipif(not NEW, reason="torch.set_default_device is new in torch 2.0")
def test_no_torch_function_mode_runs():
    """A mode that watches every call does not see the snapshot."""
    from torch.overrides import TorchFunctionMode

    seen = []

    class Observer(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    model = two_layers()
    with Observer():
        snapshot(model)
    assert seen == []


def test_no_method_of_the_model_runs():
    """A model that raises in named_parameters, in __getattr__, in __eq__ and in its device property is still read."""

    class Hostile(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def named_parameters(self, *args, **kwargs):
            raise RuntimeError

        parameters = named_modules = named_buffers = children = state_dict = named_parameters

        def __getattr__(self, name):
            raise RuntimeError(name)

        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

        @property
        def device(self):
            raise RuntimeError

    found, rows = snapshot(Hostile())
    assert [row[0] for row in rows] == ["layer.weight", "layer.bias"]
    assert found.model_device == ""


def test_device_attribute():
    """The model's own `device` is recorded if it is stored in the model, or read by torch's or mmengine's property."""
    model = torch.nn.Linear(1, 1)
    model.device = torch.device("cpu")
    assert snapshot(model)[0].model_device == "cpu"
    preprocessor = pytest.importorskip("mmengine.model").BaseDataPreprocessor()
    assert snapshot(preprocessor)[0].model_device == "cpu"
    assert snapshot(two_layers())[0].model_device == ""


def test_device_property_of_the_job_does_not_run():
    """A property that the job defines is not read, for it may do anything."""
    ran = []

    class Own(torch.nn.Module):
        @property
        def device(self):
            ran.append(1)
            return "cpu"

    assert snapshot(Own())[0].model_device == ""
    assert ran == []


def test_digest():
    """The digest changes with a name, a shape, a dtype, requires_grad and the order, and with nothing else."""

    def digest(change=lambda model: None):
        model = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 3), "b": torch.nn.Linear(2, 3)})
        other = change(model)
        return snapshot(other if isinstance(other, torch.nn.Module) else model)[0].digest

    plain = digest()
    assert len(plain) == 16
    assert int(plain, 16) >= 0
    assert digest() == plain
    assert digest(lambda model: model.to("meta")) == plain
    assert digest(lambda model: model["a"].weight.data.zero_() is None) == plain
    changed = {
        digest(lambda model: model.double()),
        digest(lambda model: model["a"].requires_grad_(False) is None),
        digest(lambda model: torch.nn.ModuleDict({"b": model["b"], "a": model["a"]})),
        digest(lambda model: torch.nn.ModuleDict({"a": model["a"], "c": model["b"]})),
        digest(lambda model: torch.nn.ModuleDict({"a": model["a"], "b": torch.nn.Linear(3, 3)})),
    }
    assert len(changed | {plain}) == 6


def test_quantised_module():
    """A quantised layer, whose weights are packed away, is a model without parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(4, 4)), dtype=torch.qint8)
    found, _ = snapshot(model)
    assert (found.parameters, found.unreadable) == (0, 0)


def test_script_module():
    """A scripted module's parameters and buffers are read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.script(two_layers())
    found, rows = snapshot(model)
    assert (found.parameters, found.buffers) == (4, 3)
    assert [row[0] for row in rows] == ["0.weight", "0.bias", "1.weight", "1.bias"]


@pytest.mark.skipif(not NEW, reason="torch.compile is new in torch 2.0")
def test_compiled_module():
    """A compiled module is read without compiling it."""
    found, rows = snapshot(torch.compile(two_layers(), backend="eager"))
    assert found.parameters == 4
    assert rows[0][0] == "_orig_mod.0.weight"


def test_what_is_no_module():
    """Something that is not a module has no parameters."""
    for value in (None, 3, object(), print, torch.zeros(2)):
        assert snapshot(value)[0].parameters == 0
        assert devices_only(value) == {}


def test_module_without_init():
    """A module whose constructor never ran has no parameters."""
    assert snapshot(torch.nn.Linear.__new__(torch.nn.Linear))[0].parameters == 0


def test_hundred_thousand_parameters():
    """A model of 100 000 parameters is read in full."""
    model = torch.nn.Module()
    one = torch.zeros(1)
    for number in range(100_000):
        model._parameters["p%d" % number] = one.detach()
    found, rows = snapshot(model)
    assert (found.parameters, found.elements, len(rows), found.truncated) == (100_000, 100_000, 100_000, False)


def test_too_many_parameters(monkeypatch):
    """Beyond a bound the pass ends and says so."""
    monkeypatch.setattr("ddp_probe.traced.facts.placement._PARAMETERS", 10)
    found, _ = snapshot(torch.nn.Sequential(*[torch.nn.Linear(1, 1) for _ in range(10)]))
    assert (found.parameters, found.truncated) == (10, True)


def test_tensors_are_not_held():
    """After a snapshot nobody holds the model's tensors."""
    import gc
    import weakref

    model = two_layers()
    snapshot(model)
    gone = weakref.ref(model[0].weight)
    del model
    gc.collect()
    assert gone() is None


def test_devices_only():
    """Parameters are counted per device."""
    assert devices_only(two_layers()) == {"cpu": 4}


def test_cost():
    """A snapshot of 10 000 parameters takes less than four times the bare loop; the goal is two, a busy machine may double it."""
    assert measure(10_000, 7)["snapshot"] < 4
