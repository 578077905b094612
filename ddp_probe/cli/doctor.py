"""Check this host before a job starts, from its packages to ranks that compute.

Without an argument it checks what a launch over all cards of this host needs;
without a card, what a launch on the CPU needs. What follows -- is a launch
command, which is read but not run:
  doctor -- torchrun --nproc_per_node=8 train.py

The live checks run in child processes, each with a time limit, so that a crash
or a hang of a driver is a finding. --static leaves them out: no card is used.

Over several hosts, start it as a job of one rank per host; rank 0 prints one
table: torchrun --nnodes=2 --nproc_per_node=1 ... -m ddp_probe doctor

--json prints one object:
  verdict   found, undecided or clear
  checks    a list of id, slug, title, looks_at, status (ok, warn, fail,
            unknown, skipped), saw, remedy, details, seconds
  hosts     over several hosts: what each host answered; else absent

'python -m ddp_probe explain DOC301' says what a check looks at.

exit codes (below torchrun 0 after a page, unless --exit-code is given):
  0  no check fails (some may warn)
  1  a check fails
  2  usage: the command line is wrong
  3  no check fails, but at least one could not be done
"""

import argparse
import json
import sys
from typing import Any, Callable, Dict, Iterable, List

from ddp_probe.cli import _launched
from ddp_probe.cli._commands import FILES, Command
from ddp_probe.wording.text import say

CODES = {"clear": 0, "found": 1, "undecided": 3}

COMMAND = Command(
    "doctor",
    order=30,
    summary="Check this host before a job starts, up to ranks that compute.",
    paints=True,
    takes_command=True,
    offers={"code_file": FILES},
    usage="python -m ddp_probe doctor [OPTIONS] [-- COMMAND ...]",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--nproc", type=int, metavar="N", help="ranks on this host (default: the number of cards, or 2)")
    parser.add_argument(
        "--backend", default="", metavar="B", help="backend of the process group (default: the vendor's if it is registered, else gloo)"
    )
    parser.add_argument(
        "--device", default="", metavar="D", help="device type, such as gcu, npu, cuda or cpu (default: the accelerator that is detected)"
    )
    parser.add_argument("--static", action="store_true", help="use no card and start no rank")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds that a child may take (default: 60)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _launched.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Check, print."""
    from ddp_probe.doctor.host import Host
    from ddp_probe.shared import meeting

    _refuse(args)
    host = Host(_request(args))
    alone = not meeting.is_launch(host.environ)
    code = _of_one(host, args) if alone else _of_hosts(host, args)
    return _launched.ended(args, code, leads=alone or meeting.leads_launch(host.environ))


def _of_one(host: Any, args: argparse.Namespace) -> int:
    """Check this host alone."""
    from ddp_probe.doctor.check import verdict
    from ddp_probe.showing import doctor_page

    results = _examined(host, lambda check: not (args.static and check.live) and not check.of_hosts)
    _print(args, verdict(results), results, {}, lambda width, say: doctor_page.lines(results, width, say))
    return CODES[verdict(results)]


def _of_hosts(host: Any, args: argparse.Namespace) -> int:
    """Check this host as part of a launch; rank 0 prints what all hosts say."""
    from ddp_probe.doctor import host_meeting
    from ddp_probe.shared import meeting
    from ddp_probe.showing import doctor_page

    own = _examined(host, lambda check: not check.live and not check.of_hosts) if meeting.leads_host(host.environ) else []
    met = host_meeting.meet(host, own)
    together = _examined(host, lambda check: check.of_hosts)
    verdict = host_meeting.verdict_of_all(met, together)
    if met.rank == 0:
        _print(
            args,
            verdict,
            together,
            {"hosts": met.as_json()},
            lambda width, say: doctor_page.of_hosts(met, together, width, say),
        )
    elif met.error:
        from ddp_probe.showing.remark import remark

        first = next(result.answer.saw for result in together)
        remark(say("doctor of rank {rank}: {what}", rank=met.rank, what=first))
    return CODES[verdict]


def _print(args: argparse.Namespace, verdict: str, results: List[Any], more: Dict[str, Any], page: Callable[[int, Any], Iterable[Any]]) -> None:
    from ddp_probe.showing import language, paint

    if args.json:
        print(json.dumps({"verdict": verdict, "checks": [result.as_json() for result in results], **more}, indent=1))
    else:
        paint.write(page(max(40, min(paint.width(), 110)), language.chosen(sys.stdout)))


def _refuse(args: argparse.Namespace) -> None:
    from ddp_probe.shared.errors import UsageError

    if args.nproc is not None and args.nproc < 1:
        raise UsageError(
            say("--nproc {number} is not a valid number of ranks.", number=args.nproc),
            "Give a number from 1 up, or leave it out.",
        )
    if not args.time_limit > 0:
        raise UsageError(
            say("--time-limit {seconds:g} is not a valid time.", seconds=args.time_limit),
            "Give a number of seconds, such as 60.",
        )


def _request(args: argparse.Namespace) -> Any:
    from ddp_probe.doctor import launch_command
    from ddp_probe.doctor.host import Request

    nproc = args.nproc
    if nproc is None and args.command:
        nproc = launch_command.read(args.command).number("nproc_per_node")
    return Request(nproc, args.backend, args.device, tuple(args.command), args.time_limit)


def _examined(host: Any, wanted: Callable[[Any], bool]) -> List[Any]:
    from ddp_probe.doctor.checks import modules
    from ddp_probe.doctor.examine import examine
    from ddp_probe.showing.progress import Steps

    every, steps = [module for module in modules() if wanted(module.CHECK)], Steps(at_once=True)
    begun: List[str] = []

    def begin(check: Any) -> None:
        begun.append(check.slug)
        steps(len(begun), len(every), check.slug)

    try:
        return sorted(examine(host, every, begin=begin), key=lambda result: str(result.check.id))
    finally:
        steps.clear()
