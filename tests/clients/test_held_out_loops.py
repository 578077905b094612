"""Mistakes in the loops of frameworks, from tests/heldout/clients: who left and what decided, afterwards."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from client_table import Client

HELDOUT = Path(__file__).resolve().parent.parent / "heldout" / "clients"
_LINES = (HELDOUT / "truths.jsonl").read_text(encoding="utf-8").splitlines()
_TRUTHS = {truth["job"]: truth for truth in map(json.loads, _LINES)}
# A flag that the loop of transformers asks for, an evaluation with FSDP2, and ten methods below an `if`.
_JOBS = ("08_trainer_should_stop", "14_fsdp2_evaluates_on_zero", "18_ten_methods_flush")
_PATIENCE = 40  # Seconds that a rank waits for the others: more than a busy machine needs to meet.
_TORCHRUN = "torchrun --master_addr=127.0.0.1 --master_port={port} --nproc_per_node=%d "


def _client(truth: Dict[str, Any]) -> Client:
    job = truth["job"] + ".py"
    program = shlex.quote(str(HELDOUT / "jobs" / job))
    line = "PATIENCE=%d %s%s" % (_PATIENCE, _TORCHRUN % truth["ranks"], program)
    return Client(truth["job"], job, line)


@pytest.mark.sample(1)
@pytest.mark.parametrize("job", _JOBS)
def test_the_rank_and_the_statement_that_decided_are_named(job: str, launch: Callable[..., Any]) -> None:
    """The first finding has the guilty rank, and its verdict the statement that decided."""
    truth = _TRUTHS[job]
    done = launch(_client(truth))
    assert done.code != 0, done.err
    finding = done.report["findings"][0]
    named = re.findall(r"%s\.py:(\d+)|\bline (\d+)" % job, finding["verdict"])
    lines = {int(line or other) for line, other in named}
    assert finding["ranks"] in truth["guilty"], (finding, done.err)
    assert lines & {line for line, _ in truth["decided"]}, finding
