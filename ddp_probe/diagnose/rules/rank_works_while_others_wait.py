"""A rank evaluates, saves or loads while the others wait for it in a collective."""

from typing import Iterator

from ddp_probe.diagnose._split_words import absent, doubt, evidence, explained, of_kind, only_waits, waiting
from ddp_probe.diagnose._splits import WORKING
from ddp_probe.diagnose.rule import ERROR, WARNING, Example, Finding, Rule
from ddp_probe.diagnose.words import capital, named
from ddp_probe.read.model import Run

RULE = Rule(
    id="DDP637",
    slug="rank-works-while-others-wait",
    cause="rank0_long_work_timeout",
    title="A rank evaluates, saves or loads while the others wait for it.",
    symptom="The other ranks stand in a collective, and give up with a timeout if the work takes longer than that.",
    evidence="The ledgers: the missing rank is in a phase that is known to take long. While it runs this is a warning: it may come.",
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
    severity=WARNING,
    fix="timeout",
)

EXAMPLES = (
    Example(
        "Rank 0 validates, and the others wait in a barrier.",
        """
ledger 0-3 all_reduce 16 float32 at /train/t.py:12 x3
ledger 0 validate at /train/val.py:7 open
ledger 1-3 barrier at /train/t.py:20 open
""",
        ranks=(0,),
    ),
    Example(
        "Rank 0 has saved a checkpoint and is at the barrier with the others.",
        """
ledger 0 save at /train/t.py:18
ledger 0-3 barrier at /train/t.py:20
""",
        answer="clear",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Warn while it works; once the others have given up, it is what ended the job."""
    found = of_kind(run, WORKING)
    if found is None or not only_waits(run):
        return
    lost = explained(run)
    yield RULE.found(
        ranks=found.blame,
        verdict="%s; %s.%s" % (capital(absent(run, found)), waiting(run, found), doubt(found)),
        evidence=evidence(run, found),
        when=found.when,
        remedy="Share the work of %s among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2))."
        % named(found.there),
        explains=lost,
        severity=ERROR if lost else WARNING,
    )
