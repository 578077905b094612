"""A launch whose MASTER_PORT is 0 does not come together; with the change that the report names, it does."""

import json
import shlex
from pathlib import Path
from typing import Any, Callable, Dict

_JOB = """
import datetime
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
dist.barrier()
print("together, of %d" % dist.get_world_size())
dist.destroy_process_group()
"""


def test_the_change_brings_the_ranks_together(
    tmp_path: Path,
    run_python: Callable[..., Any],
    armed: Callable[..., Dict[str, str]],
) -> None:
    """The report names both ranks and the line, and the job is well with the option that its change names."""
    (tmp_path / "job.py").write_text(_JOB, encoding="utf-8")
    launch = ["-m", "torch.distributed.run", "--nproc_per_node=2"]
    at_port_zero = [*launch, "--master_addr=127.0.0.1", "--master_port=0", "job.py"]
    done = run_python(at_port_zero, env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=240)
    assert done.returncode == 1, done.stderr
    said = run_python(["-m", "ddp_probe", "report", "--json", tmp_path / "runs"], cwd=tmp_path)
    (finding,) = json.loads(said.stdout)["findings"]
    assert (finding["id"], finding["ranks"]) == ("DDP431", [0, 1])
    assert "job.py:5" in finding["verdict"]
    words = [word.rstrip(".") for word in shlex.split(finding["remedy"])]
    (option,) = [word for word in words if word == "--standalone"]
    done = run_python([*launch, option, "job.py"], env=armed(tmp_path / "well"), cwd=tmp_path, timeout=240)
    assert (done.returncode, done.stdout.count("together, of 2")) == (0, 2), done.stderr
