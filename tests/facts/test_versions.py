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


SKEWED = """
import os, sys
where, imports = sys.argv[1:]
sys.path.insert(0, where)
import torch
if imports == "yes":
    import torchvision
from ddp_probe.traced.facts.versions import versions
print(versions().get("torchvision"))
"""


def _told(tmp_path, imports):
    done = subprocess.run([sys.executable, "-c", SKEWED, str(tmp_path), imports], stdout=subprocess.PIPE, check=True, timeout=60)
    return done.stdout.decode().strip()


def test_one_source_for_an_installed_distribution(tmp_path):
    """Whether a rank has imported a package or not, it gives one version, although __version__ has a label that the wheel's name lacks."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("__version__ = '0.28.0+cu130'\n")
    (tmp_path / "torchvision-0.28.0.dist-info").mkdir()
    assert {_told(tmp_path, imports) for imports in ("yes", "no")} == {"0.28.0"}


def test_a_clone_before_the_installed_one(tmp_path):
    """Of a package that is imported from a clone, __version__ counts; as long as nobody has imported it, nothing is said of it."""
    installed_, clone = tmp_path / "installed", tmp_path / "clone"
    for folder, number in ((installed_, "0.28.0"), (clone, "0.29.0a0")):
        (folder / "torchvision").mkdir(parents=True)
        (folder / "torchvision" / "__init__.py").write_text("__version__ = %r\n" % number)
    (installed_ / "torchvision-0.28.0.dist-info").mkdir()
    both = "%s'); sys.path.insert(1, '%s" % (clone, installed_)
    code = SKEWED.replace("sys.path.insert(0, where)", "sys.path.insert(0, '%s')" % both)
    told = [
        subprocess.run([sys.executable, "-c", code, "-", imports], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode().strip()
        for imports in ("yes", "no")
    ]
    assert told == ["0.29.0a0", "None"]
