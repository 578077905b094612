"""Versions, of what is imported and of what is only installed."""

import subprocess
import sys

import msgspec
import torch
import wrapt

from ddp_probe.traced.facts import versions as module
from ddp_probe.traced.facts.versions import at_least, importable, installed, version_of, versions


def test_imported_modules_say_their_version():
    """The versions of torch, wrapt, msgspec and python are those that they report themselves."""
    found = versions()
    assert found["torch"] == str(torch.__version__)
    assert found["wrapt"] == wrapt.__version__
    assert found["msgspec"] == msgspec.__version__
    assert found["python"] == "%d.%d.%d" % sys.version_info[:3]


def test_torch_build():
    """torch's git commit is recorded, and its CUDA version if it was built with CUDA."""
    found = versions()
    assert found["torch.git"] == torch.version.git_version
    assert found.get("torch.cuda") == torch.version.cuda


def test_what_is_not_imported_is_told_by_its_folder():
    """Without importing anything the versions of installed packages are known."""
    code = (
        "import sys; from ddp_probe.traced.facts.versions import versions; found = versions();"
        "assert 'torch' not in sys.modules and 'mmengine' not in sys.modules and 'importlib.metadata' not in sys.modules;"
        "print(found['torch'], found['mmengine'])"
    )
    shown = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode().split()
    assert shown == [torch.__version__.split("+")[0] if "+cu" in torch.__version__ else str(torch.__version__), "0.10.7"]


def test_plugins_are_found_on_disk(tmp_path, monkeypatch):
    """A vendor's plugin that nobody imports is found, with its version, under either spelling of its name."""
    (tmp_path / "torch_gcu").mkdir()
    (tmp_path / "torch-gcu-1.2.3.dist-info").mkdir()
    (tmp_path / "torch_npu-2.1.0.post3-py3.8.egg-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions()["torch_gcu"] == "1.2.3"
    assert versions()["torch_npu"] == "2.1.0.post3"
    assert importable("torch_gcu")
    assert "torch_gcu" not in sys.modules


def test_unreadable_folders_are_passed_over(tmp_path, monkeypatch):
    """Entries of sys.path that are missing, files or no strings do no harm."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path / "file"), 3])
    assert installed().versions == {}


def test_version_that_is_no_string(monkeypatch):
    """A __version__ of another type, or one made by a module's __getattr__, is not believed."""

    class Odd:
        __version__ = property(lambda self: 1 / 0)

    monkeypatch.setitem(sys.modules, "torch_dipu", Odd())
    assert version_of("torch_dipu") == ""


def test_at_least():
    """Versions compare by number, whatever follows the numbers."""
    assert at_least("torch", 1, 12)
    assert not at_least("torch", 99)
    assert not at_least("no_such_module", 0)


def test_packages_are_spelt_as_imported():
    """The table's keys are names that an import statement takes."""
    assert all(name.isidentifier() for name in module.PACKAGES)
