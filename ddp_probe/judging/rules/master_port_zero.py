"""Ranks are told to meet at port 0, which stands for any free port."""

from typing import Iterator, List

from ddp_probe.judging.rule import Finding, Rule, shown
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, named

RULE = Rule(
    id="DDP431",
    slug="master-port-zero",
    cause="master_addr_unreachable",
    title="MASTER_PORT is 0, at which ranks cannot meet.",
    symptom="All ranks hang in init_process_group, or fail there after its timeout, though all were started.",
    evidence=(
        "init_process_group began with MASTER_PORT 0 on one of several ranks, and did not return. Rank 0 "
        "then listens at a free port that the system has chosen, and the others ask for port 0."
    ),
    remedy="Name one free port for all ranks: torchrun --master_port=29500; on one host --standalone.",
    restart="no",  # The port is in the command or in the environment.
    needs=("dist.init_process_group",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks whose init_process_group got port 0 and did not return."""
    stuck: List[LoggedCall[schema.InitProcessGroup]] = []
    ranks: List[int] = []
    for process in run.processes:
        calls = [call for call in process.calls(schema.InitProcessGroup) if _cannot_return(call)]
        stuck += calls
        if calls and process.rank is not None:
            ranks.append(process.rank)
    if not stuck or run.expected == 1:
        return
    yield RULE.found(
        ranks=ranks,
        verdict=say(
            "MASTER_PORT is 0 in init_process_group{place}, and {who} {who:does|do} not return from it: "
            "0 stands for any free port, so rank 0 listens at another port than the others ask for.",
            who=named(ranks),
            place=at(stuck[0].begin.site),
        ),
        evidence=[shown(call, say("init_process_group with MASTER_PORT 0 did not return")) for call in stuck],
        when=stuck[0].when,
    )


def _cannot_return(call: "LoggedCall[schema.InitProcessGroup]") -> bool:
    at_port_zero = call.begin.init_method == "env://" and call.begin.master_port == "0"
    return at_port_zero and (call.open or call.failure is not None)
