"""The port that rank 0 or the launcher must listen on is in use."""

import re
from typing import Iterator, List, Optional

from ddp_probe.judging.printed import by_text, matches
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import NO_WARNING, ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import cut, named

_TAKEN = r"EADDRINUSE|[Aa]ddress already in use"
# The port as torch 2 writes it, and as torch 1 does.
_PORT = Expression(r"port: ?(\d+)|:(\d+) \(errno")

RULE = Rule(
    id="DDP409",
    slug="master-port-in-use",
    cause="master_port_in_use",
    title="Another process already uses the rendezvous port.",
    symptom="'Address already in use' (EADDRINUSE, errno 98) before training begins; the other ranks time out.",
    evidence=(
        "The server socket of init_process_group, or of torchrun's agent, could not be bound; the message names the port. If it is not MASTER_PORT, "
        "the program sets its own."
    ),
    remedy=(
        "Choose a free port: torchrun --master_port=<free port>, or --rdzv_endpoint=localhost:0 --rdzv_backend=c10d (--standalone), which "
        "picks one; or end the process that uses it: ss -ltnp | grep <port>."
    ),
    restart="yes",  # Who held the port lets it go, or another port is drawn.
    needs=("dist.init_process_group", "launcher.agent"),
    printed=(
        Printed(
            NO_WARNING + r"(?:port: ?|\]?:)(?P<port>\d{1,3})\b[^\n]*(?:%s|errno: 98|errno: 13|EACCES)" % _TAKEN,
            unless=r"[Nn]etty|java\.net|\.java:\d",
            says="Port {port} is reserved for the system: it came from another variable (PORT) or was mistyped.",
        ),
        Printed(NO_WARNING + r"port: ?(?P<port>\d+)[^\n]*(?:%s)" % _TAKEN, says="Another process uses port {port}."),
        Printed(NO_WARNING + r":(?P<port>\d+) \(errno: 98", says="Another process uses port {port}."),
        Printed(
            NO_WARNING + r"server socket has failed to listen on any",
            beside=r":(?P<port>\d+) \(errno: 98|" + _TAKEN,
            says="Another process uses the port.",
        ),
        Printed(
            r"launch distributed communication on port `?(?P<port>\d+)`?, but another process is utilizing it",
            says="Another process uses port {port}.",
        ),
        Printed(
            r"listen on ip ?\[[^\]\n]+\] and (?:specific )?port ?\[(?P<port>\d+)\] fail\b[^\n]*us\w+ by other",
            says="Another process uses port {port} of the cards' network.",
        ),
        Printed(
            NO_WARNING + r"(?:%s|errno: 98\b|WinError 10048)" % _TAKEN,
            unless=r"tensorboard|uvicorn|gradio|visdom|jupyter|Error: listen EADDRINUSE|[Nn]etty|java\.net|\.java:\d",
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the failure in the ranks, then in the launchers."""
    failures = [match.failure for match in matches(RULE, run) if match.failure.process is not None]
    if failures:
        yield _of_rank(failures)
        return
    for launcher in run.launchers:
        for call in launcher.calls(schema.LauncherAgent):
            message = _told(launcher, call)
            if message and re.search(_TAKEN, message):
                yield _of_launcher(launcher, call, message)
                return
    yield from by_text(RULE, run)


def _port(text: str) -> str:
    match = _PORT.search(text)
    return next((group for group in match.groups() if group), "") if match else ""


def _called(port: str) -> Text:
    return say("port {port}", port=port) if port else say("the port of the rendezvous")


def _of_rank(failures: List[Failed]) -> Finding:
    first = failures[0]
    call = next((call for call in first.calls if isinstance(call.begin, schema.InitProcessGroup)), None)
    master = call.begin.master_port if call is not None else ""
    port = _port(first.text) or master
    taken = say(
        "{who:capital} cannot listen on {port}: another process uses it.",
        who=named([first.rank or 0]),
        port=_called(port),
    )
    own = say("MASTER_PORT is {port}: the program sets a different one.", port=master) if master and port != master else ""
    remedy = say(
        "Choose a free port (MASTER_PORT, or torchrun --master_port), or end the process that uses {port}: ss -ltnp | grep {port}.",
        port=port,
    )
    if not port:
        remedy = say("Choose a free port (MASTER_PORT, or torchrun --master_port), or end the process that uses it: ss -ltnp | grep <port>.")
    return RULE.found(
        ranks=ranks_of(failures),
        verdict=joined([taken, own]),
        evidence=first_of([failed(failure) for failure in failures]),
        when=first.when,
        remedy=remedy,
        explains=failures,
    )


def _told(launcher: LoggedProcess, call: "LoggedCall[schema.LauncherAgent]") -> str:
    end = launcher.end
    parts = [failure.message for failure in (call.failure, end.failure if end is not None else None) if failure is not None]
    return "\n".join(parts)


def _of_launcher(launcher: LoggedProcess, call: "LoggedCall[schema.LauncherAgent]", message: str) -> Finding:
    endpoint = call.begin.rendezvous.get("endpoint", "")
    port = _port(message) or endpoint.rpartition(":")[2]
    kind: Optional[str] = launcher.start.launcher if isinstance(launcher.start, schema.LauncherStart) else None
    at = call.ended_at or call.at
    asked = call.begin.nproc_per_node
    taken = say(
        "{launcher} cannot listen on {port}{host}: another process uses it.",
        launcher=kind or say("The launcher"),
        port=_called(port),
        host=say(" of {host}", host=launcher.host) if launcher.host else "",
    )
    started = say("No rank was started, of {asked}.", asked=asked) if asked else say("No rank was started.")
    remedy = say(
        "Choose a free port: --master_port=<free port>, or --standalone, which finds one on a single host; "
        "or end the process that uses {port}: ss -ltnp | grep {port}.",
        port=port,
    )
    if not port:
        remedy = say(
            "Choose a free port: --master_port=<free port>, or --standalone, which finds one on a single host; "
            "or end the process that uses it: ss -ltnp | grep <port>."
        )
    return RULE.found(
        ranks=[],
        verdict=joined([taken, started]),
        evidence=[Evidence(at.file, at.line, call.site, cut(message, 300))],
        when=call.until or call.when,
        remedy=remedy,
    )
