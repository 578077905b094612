"""What the tests of the report share: recorded jobs, and runs of many ranks made of them."""

import json
from pathlib import Path
from typing import Any, Callable, Collection, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.rule import Evidence, Finding
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.shared.schema import Site

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Diagnosis]:
    """Take the name of a recorded job and return its diagnosis."""
    return lambda job: judge(load([str(RECORDED / job)]))


@pytest.fixture(scope="session")
def told() -> Callable[[str], Diagnosis]:
    """Take a short log and return its diagnosis."""
    return lambda log: judge(from_lines(log))


@pytest.fixture
def made(recorded: Callable[[str], Diagnosis]) -> Diagnosis:
    """Return a recorded job's diagnosis with a finding of this test's own words, whatever the rules say by now."""
    diagnosis = recorded("03_submodule_left_behind")
    site = Site("/train/t.py", 24, "main")
    logs = [file for file in diagnosis.run.inventory.files if "rank" in file]
    evidence = [Evidence(log, 8, site, "parameters on cpu, gcu:%d" % rank) for rank, log in enumerate(logs)]
    verdict = "2 of 4 parameters are on cpu while the others are on gcu:0 when DDP wraps the model; the first is head.weight."
    remedy = "Move the whole model once, before the wrap:\n\n    model.to(device)"
    finding = Finding("DDP104", "submodule-left-behind", "mixed_cpu_cuda_params", "error", [0, 1], verdict, evidence, remedy, "move-model")
    return diagnosis._replace(findings=[finding])


def _events(job: str) -> List[Dict[str, Any]]:
    file = sorted((RECORDED / job).glob("rank00000*.jsonl"))[0]
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Take size, guilty and absent ranks; return a folder with the files of a healthy job's rank 0 for each rank, eight on a host.

    Each rank uses the card of its local rank. The guilty ones have the file of a rank whose model is partly on the CPU, the absent ones none.
    """

    def make(size: int, guilty: Collection[int] = (), absent: Collection[int] = ()) -> Path:
        folder = tmp_path_factory.mktemp("ranks%d" % size)
        healthy, failing = _events("00_healthy_cards"), _events("03_submodule_left_behind")
        for rank in set(range(size)) - set(absent):
            local, host = rank % 8, "node%d" % (rank // 8 + 1)
            lines = []
            for event in failing if rank in guilty else healthy:
                own = {**event, "rank": rank, "local_rank": local, "world_size": size, "host": host, "pid": 1000 + rank}
                text = json.dumps(own, separators=(",", ":"))
                for old, new in (('gcu:0"', 'gcu:%d"'), ('"current":0', '"current":%d'), ('"device":"0"', '"device":"%d"')):
                    text = text.replace(old, new % local)
                lines.append(text)
            (folder / ("rank%05d.%s.%d.jsonl" % (rank, host, 1000 + rank))).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    return make
