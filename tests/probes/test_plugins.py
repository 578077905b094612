"""Third parties add a probe or an accelerator by an entry point."""

PROBE = '''
from ddp_probe.shared import schema
from ddp_probe.traced.probes import Probe

class Seen(Probe):
    """Watches two functions that have nothing to do with torch."""

    name = "abacus"
    targets = ("json.decoder:JSONDecoder.decode", "abacus_lib:count")
    events = (schema.SetDevice,)

    def begin(self, call):
        return schema.SetDevice(target=str(call.target), device="abacus")

PROBE = Seen
'''

RECORD = """
from ddp_probe.shared.accelerators import Accelerator

RECORD = Accelerator(name="abacus", vendor="Roman", visible=("ABACUS_VISIBLE",), set_device=("abacus_lib:set_device",))
"""


def _install(tmp_path, points):
    info = tmp_path / "abacus-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "abacus_probe.py").write_text(PROBE)
    (tmp_path / "abacus_record.py").write_text(RECORD)
    (tmp_path / "abacus_lib.py").write_text("def count(): return 3\ndef set_device(index): return index\n")


def _run(run_python, clean_env, tmp_path, read_events, code, repo):
    env = clean_env(PYTHONPATH="%s:%s" % (tmp_path, repo), DDP_PROBE_DIR=str(tmp_path / "runs"), ABACUS_VISIBLE="0,1")
    done = run_python("import json, ddp_probe; ddp_probe.activate(); import torch.serialization\n" + code, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return read_events(tmp_path / "runs" / "latest")


def test_a_probe_from_outside(run_python, clean_env, tmp_path, read_events, repo):
    """A probe that another package declares watches modules imported before it and after it."""
    _install(tmp_path, "[ddp_probe.probes]\nabacus = abacus_probe\n")
    code = "json.loads('1'); import abacus_lib; assert abacus_lib.count() == 3"
    events = _run(run_python, clean_env, tmp_path, read_events, code, repo)
    assert [event["target"] for event in events if event["event"] == "device.set" and event["phase"] == "begin"] == [
        "json.decoder.JSONDecoder.decode",
        "abacus_lib.count",
    ]


def test_an_accelerator_from_outside(run_python, clean_env, tmp_path, read_events, repo):
    """A record that another package declares brings its set_device and its visible-device variable."""
    _install(tmp_path, "[ddp_probe.accelerators]\nabacus = abacus_record:RECORD\n")
    events = _run(run_python, clean_env, tmp_path, read_events, "import abacus_lib; abacus_lib.set_device(1)", repo)
    assert [(event["target"], event["device"]) for event in events if event["event"] == "device.set" and event["phase"] == "begin"] == [
        ("abacus_lib.set_device", "1")
    ]
    assert events[0]["environment"]["ABACUS_VISIBLE"] == "0,1"


def test_one_that_fails_to_load_is_a_fault(run_python, clean_env, tmp_path, read_events, repo):
    """A declared probe whose module is broken is recorded as a fault, and the job and the other probes go on."""
    _install(tmp_path, "[ddp_probe.probes]\nabacus = no_such_module_at_all\n")
    env = clean_env(PYTHONPATH="%s:%s" % (tmp_path, repo), DDP_PROBE_DIR=str(tmp_path / "runs"), DDP_PROBE_STRICT=None)
    code = "import ddp_probe; ddp_probe.activate(); import torch; torch.save({}, 'x.pt'); print('done')"
    done = run_python(code, env=env, cwd=tmp_path)
    assert done.stdout == "done\n", done.stderr
    events = read_events(tmp_path / "runs" / "latest")
    assert "checkpoint.save" in [event["event"] for event in events]
    ends = [event for event in events if event["event"] == "process.end"]
    assert ends[0]["faults"] == {"plugins": 1}
