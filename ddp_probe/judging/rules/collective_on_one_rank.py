"""One rank calls a collective that the others never call."""

from typing import Iterator

from ddp_probe.judging.printed import verdict_of
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import told
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import place

RULE = Rule(
    id="DDP609",
    slug="collective-on-one-rank",
    cause="rank0_only_collective",
    title="Rank 0 calls a collective that the others never call.",
    symptom="The job hangs: rank 0 is in a collective under 'if rank == 0' (logging, saving, evaluating), the others are elsewhere.",
    evidence=(
        "NCCL's desync report (TORCH_NCCL_DESYNC_DEBUG=1) names the ranks that joined; or a gather times out while a sharded model is saved. A "
        "timeout alone does not prove it: it names only the ranks that wait."
    ),
    remedy="Move the collective out of the branch: all ranks call it, and only rank 0 prints or writes the result. "
    "state_dict() of sharded models, reduce_mean in a logging hook, barrier() and SyncBatchNorm in evaluation are collectives too.",
    restart="no",  # The branch stands in the code.
    needs=("process.end",),
    printed=(
        Printed(
            r"\[(?P<rank>0)\] joined but didn't finish collective #(?P<number>\d+)[^\n]*\s+\[1\b[^\]]*\] finished collective #\d+, but didn't join",
            says="Rank {rank} alone is in collective number {number}; the others never joined it.",
        ),
        Printed(
            r"\[1\b[^\]]*\] finished collective #\d+, but didn't join collective #(?P<number>\d+)[^\n]*\s+\[(?P<rank>0)\] joined but didn't finish",
            says="Rank {rank} alone is in collective number {number}; the others never joined it.",
        ),
        # The program is shown beside the timeout.
        Printed(
            r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (?:recv|send) operation",
            beside=r"if [^\n]{0,40}(?:is_global_zero|\brank == 0|get_rank\(\) == 0|is_rank_zero)[^\n]{0,30}:\s+[^\n]{0,60}"
            r"\b(?:trainer|accelerator|engine|model_engine|fabric)\.(?:save_checkpoint|save_state|save|barrier)\(",
            nowhere=r"NCCL WARN|out of memory",
            says="Only rank 0 saves, through a call that contains a collective, which all ranks must make.",
            ranks=False,
        ),
        Printed(
            r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (?:recv|send) operation",
            beside=r"if [^\n]{0,40}(?:\brank == 0|get_rank\(\) == 0|is_main_process\b)[^\n]{0,30}:\s+[^\n]{0,60}"
            r"\bdist(?:ributed)?\.(?:broadcast|barrier|reduce|gather|all_\w+)\(",
            nowhere=r"NCCL WARN|out of memory",
            says="Rank 0 alone calls a collective, which all must call.",
            ranks=False,
        ),
        # The parameters of a sharded model are gathered while a model is saved.
        Printed(
            r"[Ww]atchdog caught collective operation timeout: Work\w{0,9}\(SeqNum=(?P<number>\d+), OpType=_?ALLGATHER",
            beside=r"Saving FSDP model|FSDP\.state_dict_type|\bin (?:save_state|save_pretrained|save_model|_save|get_state_dict|state_dict)\b"
            r"|if [^\n]{0,40}is_(?:local_)?main_process\b[^\n]{0,40}:",
            nowhere=r"\bin (?:forward|backward)\b|NCCL WARN|out of memory",
            says="While the model is saved, only one rank gathers its parts: that is a collective (number {number}), which all ranks must call.",
            ranks=False,
        ),
        # The same, if the others did not wait in another collective but went on to their end.
        Printed(
            r"DistBackendError: NCCL error [^\n]*(?:remote process exited or there was a network error|unhandled system error)",
            beside=r"\bin (?:_all_gather_flat_param|_?unshard\w*|full_tensor|_zero3_consolidated\w*)\b",
            nowhere=r"\bin (?:forward|backward)\b|out of memory|OutOfMemory|SIGKILL|exitcode: ?-|Segmentation|[Kk]illed",
            says=(
                "While the model is saved, only one rank gathers its parts, and the others have left: that is a collective, which all ranks "
                "must call."
            ),
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find exceptions that carry the report."""
    matches = list(told(RULE, run))
    if not matches:
        return
    failure = matches[0].failure
    yield RULE.found(
        ranks=[0],
        verdict=joined([verdict_of(RULE, matches[0]), say("It was at {where}.", where=place(failure.site))]),
        evidence=first_of([failed(match.failure) for match in matches]),
        when=failure.when,
        explains=[match.failure for match in matches],
    )
