"""A run in which every text that a log can hold is the same word: a hostile one, or a harmless one to compare with."""

import json
from pathlib import Path
from typing import Any, Dict, List

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.rule import Evidence, Finding, Undecided
from ddp_probe.reading.load_run import load
from ddp_probe.shared.schema import Site

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)> <!-- ]]> </title></style></pre></dialog>"
    " {{ 7*7 }} {% raw %} javascript:alert(4) &lt;b&gt; \u202eevil\u2066 \x1b[2J\x00\u200b\ufeff\u2028 模型 \U0001f3d6"
)
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"  # of no account


def _events(rank: int, word: str) -> List[Dict[str, Any]]:
    who = {"rank": rank, "local_rank": rank, "world_size": 2, "host": word, "pid": 10 + rank, "run": word}
    site = {"file": "/train/%s.py" % word, "line": 3, "function": word}
    placement = {"model": word, "parameters": 1, "digest": "d%d" % rank, "devices": {word: {"count": 1}, "cpu": {"count": 2}}}
    placement["first"] = [{"name": word + str(rank), "shape": [1], "dtype": word, "device": "cpu"}]
    wrap = {"wrapper": "torch.DistributedDataParallel", "device_ids": [word], "placement": placement, "site": site, "span": 1, "group": "default"}
    frames = [{"file": "/train/%s.py" % word, "line": 9, "function": word + str(rank)}]
    failure = {"type": word, "message": "%s token=%s" % (word, TOKEN), "frames": frames}
    environment = {"NCCL_ALGO": word + str(rank), word: word, "SOMETOKEN": TOKEN}
    told = [
        {"event": "process.start", "phase": "point", "ts": "2026-11-22T10:00:00Z", "environment": environment, "versions": {"torch": word}},
        {"event": "ddp.init", "phase": "begin", "ts": "2026-11-22T10:00:01Z", **wrap},
        {"event": "ddp.init", "phase": "error", "ts": "2026-11-22T10:00:02Z", **wrap, "failure": failure},
        {"event": "hang.suspected", "phase": "point", "ts": "2026-11-22T10:00:03Z", "since": 1.0, "threads": [{"main": True, "frames": frames}]},
        {"event": word, "phase": "point", "ts": "2026-11-22T10:00:03Z"},
        {"event": "process.end", "phase": "point", "ts": "2026-11-22T10:00:04Z", "uncaught": True, "exit_code": 1, "failure": failure},
    ]
    return [{**who, **event} for event in told]


def diagnosis_of(folder: Path, word: str) -> Diagnosis:
    """Return the diagnosis of a run in which every text is this word, with a finding and a question of the same."""
    folder.mkdir()
    for rank in range(2):
        log = folder / ("rank%05d.<i>node.%d.jsonl" % (rank, 10 + rank))
        log.write_text("".join(json.dumps(event) + "\n" for event in _events(rank, word)), encoding="utf-8")
    diagnosis = judge(load([str(folder)]))
    site = Site("/train/%s.py" % word, 3, word)
    evidence = [Evidence(process.file, 2, site, word) for process in diagnosis.run.processes]
    remedy = "%s\n    %s" % (word, word)
    finding = Finding("DDP104", word, "x", word, [0], word, evidence, remedy, word, "low", [word])
    return diagnosis._replace(findings=[finding, *diagnosis.findings], undecided=[Undecided(word, word, (), word)])
