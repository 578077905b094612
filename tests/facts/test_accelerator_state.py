"""Which accelerators there are, found without waking one."""

import sys
import types

import pytest
import torch

from ddp_probe.shared import accelerators as table
from ddp_probe.traced.facts.accelerator_state import accelerators, init_dist_branch, mmengine_device

TOUCHED = []


def refuse(*args):
    """Stands for every function that would wake a card; the facts swallow what it raises, so it takes a note as well."""
    TOUCHED.append(args)
    raise AssertionError("a card was touched")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without cards, and without variables that limit them; its /dev is a folder."""
    for name in table.visible_variables():
        monkeypatch.delenv(name, raising=False)
    TOUCHED.clear()
    yield tmp_path
    assert TOUCHED == []


def cards(machine):
    """Return the cards by name."""
    return {card.name: card for card in accelerators(str(machine))}


def plugin(monkeypatch, name, **attributes):
    """Import a vendor's plugin."""
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_nothing_there(machine):
    """On a machine without accelerators there are none, though torch.cuda is imported."""
    assert cards(machine) == {}


def test_device_files(machine):
    """Cards are counted by their device files; other files are not counted."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "gcu0", "gcu10", "gcu2", "gcuctl", "null"):
        (machine / name).write_text("")
    found = cards(machine)
    assert list(found) == ["gcu", "cuda"]
    assert (found["cuda"].count, found["gcu"].count) == (2, 3)
    assert [path.rsplit("/", 1)[1] for path in found["gcu"].device_files] == ["gcu0", "gcu2", "gcu10"]
    assert found["gcu"].device_type == "gcu"


def test_device_files_in_a_folder(machine):
    """Device files may lie in a folder of /dev."""
    (machine / "accel").mkdir()
    (machine / "accel" / "accel0").write_text("")
    assert cards(machine)["hpu"].count == 1


def test_one_file_for_all_cards(machine):
    """If one device file represents all cards, the number of cards is unknown."""
    (machine / "kfd").write_text("")
    assert cards(machine)["rocm"].count is None


def test_many_device_files(machine):
    """At most 16 device files are listed; all are counted."""
    for number in range(20):
        (machine / ("davinci%d" % number)).write_text("")
    assert (len(cards(machine)["npu"].device_files), cards(machine)["npu"].count) == (16, 20)


def test_visible_variable(machine, monkeypatch):
    """A visible-device variable is a sign of its accelerator, also when it is empty."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert cards(machine)["cuda"].visible == {"CUDA_VISIBLE_DEVICES": ""}


def test_installed_plugin_is_not_imported(machine, tmp_path, monkeypatch):
    """A plugin on disk is importable, has a version, and is not imported by looking."""
    (tmp_path / "lib" / "torch_npu").mkdir(parents=True)
    (tmp_path / "lib" / "torch_npu" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "lib" / "torch_npu-2.1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    found = cards(machine)["npu"]
    assert (found.importable, found.module, found.module_version, found.initialised) == (True, "", "2.1.0", None)
    assert "torch_npu" not in sys.modules


def test_module_that_is_not_initialised_is_not_asked(machine, monkeypatch):
    """Neither the current card nor the count is asked of a plugin that says it is not initialised, or says nothing."""
    plugin(monkeypatch, "torch_npu", __version__="2.1.0")
    monkeypatch.setattr(
        torch,
        "npu",
        plugin(monkeypatch, "torch_npu.npu", _initialized=False, current_device=refuse, device_count=refuse, is_available=refuse),
        raising=False,
    )
    plugin(monkeypatch, "torch_gcu", current_device=refuse, device_count=refuse, is_available=refuse)
    found = cards(machine)
    assert (found["npu"].initialised, found["npu"].current, found["npu"].count) == (False, None, None)
    assert (found["gcu"].initialised, found["gcu"].current, found["gcu"].count) == (None, None, None)
    assert found["npu"].module_version == "2.1.0"


def test_initialised_module_is_asked(machine, monkeypatch):
    """If the program has initialised a plugin itself, current card and count are recorded."""
    plugin(monkeypatch, "torch_gcu")
    runtime = plugin(monkeypatch, "torch.gcu", is_initialized=lambda: True, current_device=lambda: 3, device_count=lambda: 8, is_available=refuse)
    monkeypatch.setattr(torch, "gcu", runtime, raising=False)
    found = cards(machine)["gcu"]
    assert (found.initialised, found.current, found.count, found.device_type) == (True, 3, 8, "gcu")


def test_runtime_that_raises(machine, monkeypatch):
    """If a plugin fails, the rest of its record is still valid."""
    plugin(monkeypatch, "torch_mlu", _initialized=True, current_device=lambda: 1 / 0)
    found = cards(machine)["mlu"]
    assert (found.initialised, found.current, found.module) == (True, None, "torch_mlu")


def test_old_enflame_plugin_shows_xla(machine, monkeypatch):
    """If torch_gcu is imported and torch has no gcu, its devices are called xla."""
    plugin(monkeypatch, "torch_gcu")
    assert cards(machine)["gcu"].device_type == "xla"


def test_shim_module(machine, monkeypatch):
    """A module that makes torch.cuda stand for another accelerator is named at that accelerator."""
    plugin(monkeypatch, "torch_gcu")
    plugin(monkeypatch, "torch_gcu.transfer_to_gcu")
    assert cards(machine)["gcu"].shim == "torch_gcu.transfer_to_gcu"


def test_shim_by_function(machine, monkeypatch):
    """A torch.cuda whose functions a plugin has replaced is known by where they come from, and they are not called."""
    module = plugin(monkeypatch, "torch_mlu.compat")
    plugin(monkeypatch, "torch_mlu")
    exec("def is_available():\n    raise AssertionError", module.__dict__)
    monkeypatch.setattr(torch.cuda, "is_available", module.is_available)
    assert cards(machine)["mlu"].shim == "torch_mlu.compat"


def test_cuda_as_torch_tells_it(machine, monkeypatch):
    """The state of torch.cuda is the one that torch reports, and on a CPU machine it is not initialised."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    found = cards(machine)["cuda"]
    assert found.initialised is False
    assert found.initialised == torch.cuda.is_initialized()
    assert (found.current, found.count) == (None, None)


@pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch 1.12 cannot rename privateuseone")
def test_renamed_private_device(run_python):
    """A plugin's own name for privateuseone is found."""
    code = (
        "import torch; torch.utils.rename_privateuse1_backend('abacus')\n"
        "from ddp_probe.traced.facts.accelerator_state import accelerators\n"
        "import types; torch._register_device_module('abacus', types.ModuleType('torch.abacus'))\n"
        "print([(card.name, card.device_type) for card in accelerators('/nowhere')])"
    )
    done = run_python(code)
    assert ("('abacus', 'abacus')") in done.stdout, done.stderr


def test_cpu_host_of_mmengine(machine):
    """On a machine without accelerators mmengine answers cpu, and the reason names what it knows."""
    pytest.importorskip("mmengine.device")
    answer, because = mmengine_device()
    assert answer == "cpu"
    assert because == "mmengine 0.10.7 knows npu, cuda, mlu, mps, dipu, musa. None of those it knows was available when it was imported."


def test_mmengine_does_not_know_gcu(machine, monkeypatch):
    """An accelerator that is there and that mmengine does not know is named."""
    pytest.importorskip("mmengine.device")
    monkeypatch.setenv("TOPS_VISIBLE_DEVICES", "0")
    assert mmengine_device()[1].startswith("mmengine 0.10.7 knows npu, cuda, mlu, mps, dipu, musa; gcu is not among them.")


def test_mmengine_device_set_by_somebody(machine, monkeypatch):
    """A DEVICE that mmengine's own checks cannot have answered was set by somebody."""
    utils = pytest.importorskip("mmengine.device.utils")
    monkeypatch.setattr(utils, "DEVICE", "gcu")
    answer, because = mmengine_device()
    assert answer == utils.get_device() == "gcu"
    assert because.endswith("mmengine.device.utils.DEVICE was later set to gcu.")


@pytest.mark.parametrize(("flag", "device"), [("IS_NPU_AVAILABLE", "npu"), ("IS_MUSA_AVAILABLE", "musa")])
def test_mmengine_flags(machine, monkeypatch, flag, device):
    """What mmengine noted of a vendor decides get_device and init_dist alike."""
    utils = pytest.importorskip("mmengine.device.utils")
    monkeypatch.setattr(utils, "DEVICE", device)
    monkeypatch.setattr(utils, flag, True)
    assert mmengine_device() == (device, flag + " is True.")
    assert init_dist_branch() == (device, flag + " is True.")
    assert init_dist_branch("slurm")[0] == "cuda"


def test_mmengine_get_device_replaced(monkeypatch):
    """A get_device that somebody has replaced is not called."""
    utils = pytest.importorskip("mmengine.device.utils")
    monkeypatch.setattr(utils, "get_device", refuse)
    assert mmengine_device() == ("", "get_device has been replaced by %s.refuse." % __name__)


def test_init_dist_branch(machine):
    """Without a vendor that mmengine knows, init_dist calls torch.cuda.set_device, whatever the backend."""
    pytest.importorskip("mmengine.device")
    for launcher in ("pytorch", "slurm", "mpi"):
        branch, because = init_dist_branch(launcher)
        assert branch == "cuda"
        assert because.endswith("so init_dist calls torch.cuda.set_device before init_process_group, whatever the backend.")
    assert init_dist_branch("other") == ("none", "init_dist does not know the launcher other.")


def test_init_dist_branch_is_what_mmengine_does(machine, monkeypatch):
    """mmengine's own init_dist takes the branch that was foretold."""
    utils = pytest.importorskip("mmengine.device.utils")
    from mmengine.dist import utils as dist

    class AskedError(Exception):
        pass

    def set_device(*args):
        raise AskedError

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("LOCAL_RANK", "0")
    for name, flag in (("mlu", "IS_MLU_AVAILABLE"), ("npu", "IS_NPU_AVAILABLE"), ("musa", "IS_MUSA_AVAILABLE"), ("cuda", None)):
        with monkeypatch.context() as patch:
            if flag:
                patch.setattr(utils, flag, True)
                plugin(patch, "torch_" + name)
            patch.setattr(torch, name, types.SimpleNamespace(set_device=set_device), raising=False)
            assert init_dist_branch()[0] == name
            with pytest.raises(AskedError):
                dist._init_dist_pytorch("gloo")


def test_without_mmengine(run_python):
    """If mmengine is not imported, the result is empty, and the query does not import it."""
    code = (
        "import sys; from ddp_probe.traced.facts.accelerator_state import init_dist_branch, mmengine_device\n"
        "print(mmengine_device(), init_dist_branch(), 'mmengine' in sys.modules, 'torch' in sys.modules)"
    )
    done = run_python(code)
    assert done.stdout.split("\n")[0] == "('', 'mmengine.device is not imported.') ('', 'mmengine.device is not imported.') False False", done.stderr
