"""Each rule says whether a restart helps, and why; a finding may know more than its rule."""

import re
from pathlib import Path
from typing import Any

import pytest

from ddp_probe.judging.causes import group_of
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import ELSEWHERE, NO, RESTARTS, UNKNOWN, YES, Printed
from ddp_probe.judging.rules import checked, modules, rule_of
from ddp_probe.reading.load_run import from_lines

_WORD = re.compile(r'^    restart="(\w+)",  # (\S[^\n]{15,}[.])$', re.MULTILINE)
_IN_CODE = (
    "rank_to_device_mapping",
    "module_device_wrong_at_wrap",
    "sharded_parameters",
    "unused_parameters",
    "forward_twice_with_buffers",
    "work_never_waited_for",
)


@pytest.mark.parametrize("module", modules(), ids=lambda module: rule_of(module).slug)
def test_each_rule_argues_its_word(module: Any) -> None:
    """Each rule's file has its word, and a sentence beside it that says why."""
    argued = _WORD.findall(Path(module.__file__).read_text(encoding="utf-8"))
    assert [word for word, _ in argued] == [rule_of(module).restart]


def test_a_rule_without_a_word_does_not_load() -> None:
    """A rule that says nothing about a restart, or another word, is refused when rules are loaded."""
    fields = rule_of(modules()[0])._asdict()
    with pytest.raises(ValueError, match="restart='perhaps'"):
        checked(rule_of(modules()[0])._replace(restart="perhaps"))
    with pytest.raises(ValueError, match="restart='perhaps'"):
        checked(rule_of(modules()[0])._replace(printed=(Printed("x", restart="perhaps"),)))
    del fields["restart"]
    with pytest.raises(TypeError, match="restart"):
        type(rule_of(modules()[0]))(**fields)


def test_what_is_in_the_code_is_never_chance() -> None:
    """No rule about the job's own code says that a restart helps."""
    rules = [rule_of(module) for module in modules()]
    of_code = [rule for rule in rules if group_of(rule.cause) in _IN_CODE]
    assert len(of_code) > 20
    assert {rule.restart for rule in of_code} == {NO}
    assert [rule.slug for rule in rules if rule.restart == YES] == ["master-port-in-use"]
    assert {rule.restart for rule in rules} == set(RESTARTS)


def _restart(log: str) -> str:
    return judge(from_lines(log)).findings[0].restart


def test_words_may_know_more_than_their_rule() -> None:
    """A node that SLURM lost is chance, and so is a preemption; a time limit and a signal may hide a hang."""
    stopped = "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2026-01-01T00:00:00 DUE TO %s ***\n"
    assert _restart(stopped % "NODE FAILURE") == YES
    assert _restart(stopped % "PREEMPTION") == YES
    assert _restart(stopped % "TIME LIMIT") == UNKNOWN
    launcher = "torch.distributed.elastic.multiprocessing.errors."
    assert _restart(launcher + "SignalException: Process 7 got signal: 15\n") == UNKNOWN


@pytest.mark.parametrize(
    ("error", "word"),
    [
        ("ValueError: loss is nan", NO),
        ("OSError: [Errno 5] Input/output error", UNKNOWN),
    ],
)
def test_an_own_exception_says_what_kind_it_is(error: str, word: str) -> None:
    """An exception of the job's own code comes again, unless a file or a network raised it."""
    log = "[rank1]: Traceback (most recent call last):\n"
    log += '[rank1]:   File "/train/train.py", line 31, in main\n[rank1]:     step(batch)\n'
    log += "[rank1]: %s\n" % error
    assert _restart(log) == word


def _versions(hosts: "tuple[str, str]") -> str:
    start = '{"event":"process.start","rank":%d,"world_size":2,"host":"%s","versions":{"torch":"%s"}}\n'
    return start % (0, hosts[0], "2.1.0") + start % (1, hosts[1], "2.2.0")


def test_hosts_that_differ_can_be_left_out() -> None:
    """Different versions on different hosts end with other hosts; on one host they do not."""
    assert _restart(_versions(("node1", "node2"))) == ELSEWHERE
    assert _restart(_versions(("node1", "node1"))) == NO
