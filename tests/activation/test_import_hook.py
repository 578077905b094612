"""The import watcher: tells once a module has been executed, leaves no trace, and breaks nothing."""

import importlib
import sys

import pytest

from ddp_probe.activation.hooks import ImportHook


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a module, an alias made while importing, and a module that fails."""
    root = tmp_path / "watched_pkg"
    root.mkdir()
    (root / "__init__.py").write_text("from .inner import value as alias\n")
    (root / "inner.py").write_text("value = 1\n")
    (root / "broken.py").write_text("raise ValueError('its own')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "watched_pkg"
    for name in [name for name in sys.modules if name.startswith("watched_pkg")]:
        del sys.modules[name]


@pytest.fixture
def watch():
    """Start a watcher that is cancelled in the end."""
    started = []

    def start(names, fire):
        started.append(ImportHook(names, fire))
        started[-1].start()
        return started[-1]

    yield start
    for watcher in started:
        watcher.cancel()


def test_fires_before_aliases_are_made(package, watch):
    """What is changed in the defining module is what every later alias gets."""
    watch([package + ".inner"], lambda name, module: setattr(module, "value", 2))
    assert importlib.import_module(package).alias == 2


def test_leaves_no_trace_on_the_module(package, watch):
    """Loader, spec and source of a watched module are what they are without a watcher."""
    fired = []
    watch([package + ".inner"], lambda name, module: fired.append(name))
    module = importlib.import_module(package + ".inner")
    assert fired == [package + ".inner"]
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__.loader is module.__loader__
    assert module.__loader__.get_source(module.__name__) == "value = 1\n"


def test_an_error_of_the_module_passes(package, watch):
    """A module that fails to import fails as it would, and nothing fires."""
    fired = []
    watch([package + ".broken"], lambda name, module: fired.append(name))
    with pytest.raises(ValueError, match="its own"):
        importlib.import_module(package + ".broken")
    assert fired == []


def test_reload_fires_again(package, watch):
    """A reloaded module has new functions, so it is told of again."""
    fired = []
    watch([package + ".inner"], lambda name, module: fired.append(name))
    module = importlib.import_module(package + ".inner")
    importlib.reload(module)
    assert fired == [package + ".inner"] * 2


def test_cancelled_is_gone(package, watch):
    """A cancelled watcher is off sys.meta_path and fires no more."""
    fired = []
    watcher = watch([package + ".inner"], lambda name, module: fired.append(name))
    watcher.cancel()
    importlib.import_module(package + ".inner")
    assert fired == []
    assert watcher not in sys.meta_path


def test_a_missing_module_is_missing(watch):
    """A watched module that is not installed raises the usual error."""
    watch(["no_such_module_here"], lambda name, module: None)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_here"):
        importlib.import_module("no_such_module_here")


def test_a_module_that_replaces_itself(tmp_path, monkeypatch, watch):
    """Where a module puts another object into sys.modules, that object is told of."""
    (tmp_path / "replacing_mod.py").write_text("import sys, types\nsys.modules[__name__] = types.SimpleNamespace(me=1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    watch(["replacing_mod"], lambda name, module: seen.append(module))
    module = importlib.import_module("replacing_mod")
    del sys.modules["replacing_mod"]
    assert seen == [module]


def test_two_watchers_both_hear(package, watch):
    """A second watcher, as another tool's would be, does not silence the first."""
    fired = []
    watch([package + ".inner"], lambda name, module: fired.append(1))
    watch([package + ".inner"], lambda name, module: fired.append(2))
    importlib.import_module(package + ".inner")
    assert sorted(fired) == [1, 2]


def test_runpy_still_works(package, watch, capsys):
    """A watched module can be run as __main__: runpy asks its loader for code."""
    import runpy

    watch([package + ".inner"], lambda name, module: None)
    assert runpy.run_module(package + ".inner")["value"] == 1
