"""What rendezvous has put into the environment does not outlive restore()."""

_JOB = """
import os
import ddp_probe
import torch.distributed as dist

dist.init_process_group("gloo")
assert os.environ["WORLD_SIZE"] == "1", dict(os.environ)
os.environ["MASTER_PORT"] = "mine"
dist.destroy_process_group()
ddp_probe.restore()
left = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
assert left == {"RANK": None, "WORLD_SIZE": None, "LOCAL_RANK": None, "MASTER_ADDR": None, "MASTER_PORT": "mine"}, left
"""


def test_variables_are_taken_back(run_python, armed, tmp_path):
    """restore() unsets the variables that the remedy has set, and leaves the one that the job has changed since."""
    script = tmp_path / "job.py"
    script.write_text(_JOB)
    done = run_python([script], env=armed(tmp_path / "runs", DDP_PROBE_FIX="rendezvous"), cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
