"""The job's own logs with the rank in them: ddp_probe.structlog, by structlog and by logging."""

import json

_JOB = """
import json, logging, os, sys
import structlog
import ddp_probe.structlog as of_the_rank
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

structlog.configure(
    processors=[of_the_rank.add_rank, structlog.processors.JSONRenderer()],
    logger_factory=structlog.PrintLoggerFactory(sys.stdout),
)
handler = logging.StreamHandler(sys.stdout)
handler.addFilter(of_the_rank.RankFilter())
handler.setFormatter(logging.Formatter('{"event": "%(message)s", "rank": "%(rank)s", "during": "%(during)s", "step": "%(step)s"}'))
logging.getLogger("job").addHandler(handler)
logging.getLogger("job").propagate = False

class Model(torch.nn.Linear):
    def forward(self, x):
        structlog.get_logger().info("inside")
        logging.getLogger("job").warning("inside too")
        return super().forward(x)

dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)
model = DDP(Model(2, 2))
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
del model
dist.destroy_process_group()
"""


def _lines(run_python, env, tmp_path):
    (tmp_path / "train.py").write_text(_JOB)
    done = run_python(["train.py"], env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_jobs_lines_say_which_rank_and_step(run_python, armed, tmp_path, repo):
    """Under the probe, structlog's lines and logging's have rank, run and step; the phase is the one in which the line is written."""
    env = armed(tmp_path / "runs", PYTHONPATH="%s:%s" % (repo / "sitecustomize_templates", repo), RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    lines = _lines(run_python, env, tmp_path)
    assert [line["event"] for line in lines] == ["inside", "inside too"] * 2
    assert [(line["rank"], line["during"]) for line in lines[::2]] == [(0, "forward")] * 2
    assert lines[2]["local_rank"] == 0
    assert lines[2]["run"]
    assert lines[2]["host"]
    assert int(lines[2]["step"]) == int(lines[3]["step"]) == 1
    assert lines[3]["during"] == "forward"


def test_nothing_is_added_while_the_probe_is_off(run_python, clean_env, tmp_path, repo):
    """Without DDP_PROBE the same lines hold what the job wrote, and the fields of logging's format are empty."""
    lines = _lines(run_python, clean_env(PYTHONPATH=str(repo), RANK="0", WORLD_SIZE="1"), tmp_path)
    assert lines == [{"event": "inside"}, {"event": "inside too", "rank": "", "during": "", "step": ""}] * 2
