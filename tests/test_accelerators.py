"""The table of accelerators."""

import subprocess
import sys

import pytest

from ddp_probe.shared import accelerators
from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator


@pytest.fixture
def table():
    """Puts the table back as it was."""
    before = list(ACCELERATORS)
    yield ACCELERATORS
    ACCELERATORS[:] = before


def test_names_are_unique():
    """Each accelerator has one record."""
    names = [known.name for known in ACCELERATORS]
    assert len(names) == len(set(names))


def test_plugins_come_before_cuda():
    """Every accelerator with a plugin of its own stands before CUDA and ROCm, which a plugin can imitate."""
    names = [known.name for known in ACCELERATORS]
    first = min(names.index("cuda"), names.index("rocm"))
    assert [known.name for known in ACCELERATORS if known.modules and names.index(known.name) > first] == []


def test_enflame():
    """The record of Enflame holds what a T20 and its successors need."""
    gcu = accelerators.by_device_type("gcu")
    assert gcu is not None
    assert (gcu.modules, gcu.device_types, gcu.backends, gcu.smi) == (("torch_gcu",), ("gcu", "xla"), ("eccl",), "efsmi")
    assert "TOPS_VISIBLE_DEVICES" in gcu.visible
    assert not gcu.mmengine_knows


def test_what_mmengine_knows_is_what_it_can_answer():
    """The records that mmengine knows are those that its own checks are written for."""
    utils = pytest.importorskip("mmengine.device.utils")
    answers = {name[3:-10] for name in vars(utils) if name.startswith("is_") and name.endswith("_available")}
    assert {kind for known in ACCELERATORS if known.mmengine_knows for kind in known.device_types if kind != "xpu"} == answers


@pytest.mark.parametrize(
    ("device_type", "name"), [("npu", "npu"), ("cuda", "cuda"), ("xla", "xla"), ("gcu", "gcu"), ("privateuseone", "privateuseone")]
)
def test_by_device_type(device_type, name):
    """A device type is looked up by name first."""
    found = accelerators.by_device_type(device_type)
    assert found is not None
    assert found.name == name


def test_unknown_device_type():
    """A device type that nobody has registered has no record."""
    assert accelerators.by_device_type("abacus") is None


def test_register_puts_a_third_party_first(table):
    """A registered record stands before the others and is found by its device type."""
    accelerators.register(
        Accelerator(name="abacus", vendor="Roman", device_types=("abacus",), visible=("ABACUS_VISIBLE",), set_device=("abacus:set_device",))
    )
    assert table[0].name == "abacus"
    assert accelerators.by_device_type("abacus") is table[0]
    assert "ABACUS_VISIBLE" in accelerators.visible_variables()
    assert "abacus:set_device" in accelerators.set_device_targets()


def test_register_replaces_a_record_of_the_same_name(table):
    """Registering a name twice leaves one record."""
    count = len(table)
    accelerators.register(Accelerator(name="gcu", vendor="Other"))
    assert len(table) == count
    assert table[0].vendor == "Other"


def test_torch_names_its_own_set_device_as_the_table_does():
    """Each set_device of torch that exists is defined in the module that the table names."""
    torch = pytest.importorskip("torch")
    for target in accelerators.set_device_targets():
        module, name = target.split(":")
        held = sys.modules.get(module)
        if module.startswith("torch.") and held is not None and hasattr(held, name):
            assert getattr(held, name).__module__ == module, target
    assert torch.cuda.set_device.__module__ == "torch.cuda"


def test_import_is_cheap():
    """Importing the table loads the standard library's typing at most, and none of the modules it names."""
    code = "import sys; before = set(sys.modules); import ddp_probe.shared.accelerators; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
    for name in ("logging", "json", "dataclasses", "inspect", "torch", "msgspec"):
        assert "'%s'" % name not in loaded
