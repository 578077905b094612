"""Promise 7: off means off. Without DDP_PROBE the interpreter starts as if nothing were installed."""

import json

import pytest

STATE = """
import atexit, gc, json, os, signal, sys, threading
if len(sys.argv) > 1:
    import torch, torch.distributed, mmengine.dist
    assert type(torch.load).__name__ == "function"
    from types import FunctionType
    assert type(vars(torch.nn.Module)["to"]) is FunctionType
    assert type(mmengine.dist.init_dist) is FunctionType
print(json.dumps({
    "modules": sorted(name for name in sys.modules if "sitecustomize" not in name),
    "ours": sorted(name for name in sys.modules if name.startswith("ddp_probe")),
    "meta_path": [str(getattr(each, "__name__", type(each).__name__)) for each in sys.meta_path],
    "path_hooks": len(sys.path_hooks),
    "excepthook": sys.excepthook is sys.__excepthook__,
    "exit": atexit._ncallbacks(),
    "threads": threading.active_count(),
    "gc": gc.get_threshold(),
    "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)],
    "trace": [sys.gettrace() is None, sys.getprofile() is None],
    "environment": sorted(name for name in os.environ if name.startswith("DDP_PROBE") and name != "DDP_PROBE_STRICT"),
}))
"""


def _state(run_python, env, tmp_path, *args):
    done = run_python(["-c", STATE, *args], env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("value", [None, "", "0", "off", "FALSE", " no "])
def test_an_interpreter_that_is_off_is_as_without(run_python, armed, clean_env, tmp_path, value):
    """Unset, 0, off, false or no: finders, hooks, handlers and modules are those of an interpreter without the activator on its path."""
    without = _state(run_python, clean_env(), tmp_path)
    found = _state(run_python, armed(None, DDP_PROBE=value, RANK="0", WORLD_SIZE="2"), tmp_path)
    assert set(found["ours"]) <= {"ddp_probe_activator"}
    extra = {"ddp_probe_activator"} if value else set()  # The templates' sitecustomize asks the file beside it what the word means.
    assert set(found["modules"]) - set(without["modules"]) <= extra
    found.update(modules=without["modules"], ours=without["ours"])
    assert found["environment"] == ([] if value is None else ["DDP_PROBE"])
    assert dict(found, environment=[]) == without
    assert list(tmp_path.iterdir()) == []


def test_torch_that_is_off_is_as_without(run_python, armed, clean_env, tmp_path):
    """With DDP_PROBE unset the same modules are there after import torch and mmengine, and every target is a plain function."""
    pytest.importorskip("torch")
    found = _state(run_python, armed(None, RANK="0"), tmp_path, "torch")
    assert found == _state(run_python, clean_env(RANK="0"), tmp_path, "torch")
