"""Rank 0 works alone for longer than the others wait for it."""

from typing import Iterator

from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, place, quoted

_TIMEOUT = r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (?:recv|send) operation|[Cc]ollective operation timeout"
_GAVE_UP = _TIMEOUT + r"|Error: Socket Timeout|Timeout waiting for key|[Ww]ait timeout after \d+ ?ms"
_GAVE_UP += r"|waitForInput: (?:poll|socket)[^\n]*time(?:d out|out)|ncclUniqueId from \[0\][^\n]*got error(?!: (?:Connection|Broken|Failed))"
# What one rank prints while it evaluates, saves or prepares data, without a training line after it.
_ALONE = (
    r"(?:Evaluating \w+|Running per image evaluation|Evaluate annotation type|Accumulating evaluation results|Loading and preparing results"
    r"|Epoch\(val\)|Preparing results for|Inference done \d+/\d+|Start inference on"
    r"|[Vv]alidating|[Rr]unning (?:evaluation|validation)|\*+ Running [Ee]valuation|Saving (?:the )?(?:model )?checkpoint|[Tt]okenizing"
    r"|[Pp]reprocessing|[Dd]ownloading|[Rr]unning \w+ requests: +\d+%|Generating \w+ split|Map(?: \(num_proc=\d+\))?:\s+\d+%"
    r"|(?:Evaluat\w+|Prepar\w+|Validat\w+|[Ee]val|Test\w*|Predict\w*|Infer\w*|Generat\w+|Sampling|Saving|Tokeniz\w+|Pre-?process\w+|Caching|Filter)\b[^\n"
    r"|%]{0,40}: +\d+%\|"
    r"|Running tokenizer on|Evaluating the results|Results writes to|Formating bboxes|Converting format of dataset|Grouping texts in chunks"
    r"|(?:train|val): (?:Scanning|Caching) |\d+%\|[^\n|]{0,120}\| ?\d+/\d+ \[[\d:]+<[\d:?]+, +[\d.]+ ?[kM]? ?examples/s)"
)
# The calls in which the others wait until rank 0 is done.
_FOR_RANK_0 = (
    r"\b(?:local_)?main_process_first\b|torch_distributed_zero_first|\bin (?:rank_?(?:0|zero)_first|zero_first|master_first)\b"
    r"|\bin broadcast_object_list\b|broadcast_object_list\([^\n]*, (?:src=)?0\)"
)
# The root itself stands there and nobody comes: it sends, and the others would receive.
_ROOT_WAITS = r"\bin broadcast_object_list\b(?:(?!Traceback).){0,1500}?for send operation"
# Ranks in different operations are on different paths.
_TWO_KINDS = r"\((?:SeqNum=\d+, )?OpType=(?P<kind>\w+),.{1,3000}?\((?:SeqNum=\d+, )?OpType=(?!(?P=kind),)\w+"
_TRAINING = r"Epoch\(train\)|Iter\(train\)|\bloss[:=]|'loss':"

RULE = Rule(
    id="DDP607",
    slug="rank0-long-work",
    cause="rank0_long_work_timeout",
    title="Rank 0 works alone for longer than the others wait for it.",
    symptom="The other ranks end with a timeout in a barrier or broadcast while rank 0 evaluates, saves or prepares data.",
    evidence=(
        "In a plain log: the last lines before the timeout come from an evaluation or a save. The probe's events do not show what a rank computes."
    ),
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)); "
    "in mmengine: env_cfg=dict(dist_cfg=dict(backend='nccl', timeout=7200)).",
    restart="no",  # The work takes as long again.
    needs=("process.end",),
    fix="timeout",
    printed=(
        Printed(
            _GAVE_UP,
            beside=_ALONE + r"(?:(?!" + _TRAINING + r").){0,1500}?(?:" + _GAVE_UP + r")",
            nowhere=_TWO_KINDS,
            says="The other ranks stopped waiting while one was still evaluating, saving or preparing data.",
            ranks=False,
        ),
        Printed(
            _GAVE_UP,
            beside=_FOR_RANK_0,
            nowhere=r"\[Rank 0\][^\n]*[Ww]atchdog caught|" + _ROOT_WAITS,
            says="The other ranks timed out in a call in which they wait for work that rank 0 does alone.",
            ranks=False,
        ),
        # A bar moves on after the others have given up, and it is not the training's, which no rank can go on with alone.
        Printed(
            _GAVE_UP,
            beside=r"\| (?P<at>\d+)/(?P<all>\d+) \[[\d:]+<[^\n]{1,3000}\n.{0,3000}?(?:"
            + _GAVE_UP
            + r").{1,3000}?\| (?!(?P=at)/)\d+/(?P=all) \[[\d:]+<",
            nowhere=_TWO_KINDS,
            says="The other ranks stopped waiting while one went on with work of its own, as its progress bar shows.",
            ranks=False,
        ),
        # Rank 0 goes on after the others have given up.
        Printed(
            r"successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0\b",
            beside=r"received errors while waiting for send/recv from rank 0\b.{1,3000}?" + _ALONE,
            says="The other ranks stopped waiting in a barrier while rank 0 was still preparing data.",
            ranks=False,
        ),
        # A listing that ends before its timeout, beside a bar that stands where a usual timeout ends.
        Printed(
            r"in (?:\w+\.)?(?:main_process_first|local_main_process_first|zero_first|rank_?0_first)\b",
            beside=r"\d+%\|[^\n|]{0,120}\|[^\n\[]{1,40}\[(?:9:5|10:0|29:5|30:0|59:5|1:00:0)\d<",
            says="The other ranks stopped waiting for rank 0, which was still preparing data.",
            ranks=False,
        ),
        Printed(
            r"retr(?:ie|ei)ving ncclUniqueId from \[(?P<rank>0)\][^\n]*got error: (?:Socket Timeout|[Ww]ait timeout|Timeout waiting for key)",
            says="Rank {rank} did not reach the first collective in time, although its store was running.",
        ),
        Printed(
            r"Desync detected for barrier (?P<name>[^\n(]*?) exit\b",
            says="The ranks went out of step at the end of '{name}', which one of them does alone.",
            ranks=False,
        ),
    ),
    yields_to=("wrong-network-interface",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find exceptions that say so; the events do not show which rank works alone."""
    desyncs = [match for match in told(RULE, run) if "name" in match.found.groupdict()]
    if not desyncs:
        return
    failure = desyncs[0].failure
    yield RULE.found(
        ranks=[],
        verdict=say(
            "{who:capital} went out of step at {where}, at the end of '{barrier}', which one rank does alone.",
            who=named(ranks(match.failure.process for match in desyncs)),
            where=place(failure.site),
            barrier=quoted(desyncs[0].found.group("name")),
        ),
        evidence=first_of([failed(match.failure) for match in desyncs]),
        when=failure.when,
        explains=[match.failure for match in desyncs],
    )
