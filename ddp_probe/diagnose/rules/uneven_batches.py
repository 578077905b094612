"""Some ranks have fewer batches than others: the last ones wait for gradients that nobody sends."""

from typing import Iterator

from ddp_probe.diagnose._who import place, told
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule, failed, first_of
from ddp_probe.read.model import Run

_TIMEOUT = r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (?:recv|send) operation|[Cc]ollective operation timeout"

RULE = Rule(
    id="DDP611",
    slug="uneven-batches",
    cause="uneven_batches",
    title="Some ranks have fewer batches than others.",
    symptom="The job hangs or times out in the last steps of an epoch; or DDP's join says that a rank exhausted its inputs.",
    evidence="In a plain log: a timeout, and progress lines with different totals of one epoch. The probe's events do not count batches.",
    remedy="Give all ranks the same number of batches: DistributedSampler (which pads), drop_last=True, or 'with Join([model]):' of torch.distributed.algorithms.join around the loop.",
    needs=("process.end",),
    printed=(
        Printed(r"Detected at least one rank that exhausted inputs", says="One rank has run out of batches before the others."),
        Printed(
            _TIMEOUT,
            beside=r"Epoch(?:\(train\))?\s+\[(?P<epoch>\d+)\]\[\s*\d+/(?P<total>\d+)\].{0,300}?Epoch(?:\(train\))?\s+\[(?P=epoch)\]\[\s*\d+/(?!(?P=total)\])\d+\]",
            says="The ranks count different numbers of batches in one epoch, and some gave up waiting for the others.",
            ranks=False,
        ),
    ),
)

EXAMPLES = (
    Example(
        "DDP's join is told to raise where a rank has run out.",
        """
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Detected at least one rank that exhausted inputs. Throwing across all ranks.","frames":[{"file":"/train/t.py","line":30,"function":"main"}]}}
""",
    ),
    Example(
        "A timeout in an epoch whose totals differ between ranks.",
        """11/20 10:00:01 - mmengine - INFO - Epoch(train) [1][3/4]  loss: 0.5511
11/20 10:00:01 - mmengine - INFO - Epoch(train) [1][3/3]  loss: 0.5532
RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete
""",
    ),
    Example(
        "A timeout in an epoch of one length.",
        """11/20 10:00:01 - mmengine - INFO - Epoch(train) [1][3/4]  loss: 0.5511
11/20 10:00:01 - mmengine - INFO - Epoch(train) [1][4/4]  loss: 0.5532
RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete
""",
        answer="clear",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Take exceptions that say it themselves; batches are not in the events."""
    found = [match for match in told(RULE, run) if match.printed is RULE.printed[0]]
    if not found:
        return
    failure = found[0].failure
    yield RULE.found(
        ranks=[],
        verdict="One rank has run out of batches before the others, which stood at %s; each of them was told so." % place(failure.site),
        evidence=first_of([failed(match.failure) for match in found]),
        when=failure.when,
        explains=[match.failure for match in found],
    )
