"""Each card computes what the CPU computes."""

from typing import List, Sequence, Tuple

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.children import ChildAnswer
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.live_ranks import LivePlan, asked_and_absent, plan, without
from ddp_probe.wording.words import counted

CHECK = Check(
    id="DOC601",
    slug="card-computes",
    title="Each card multiplies two matrices with the same result as the CPU; without a card, the CPU is tried alone.",
    looks_at="One child per card, side by side: it chooses the card, computes on it, copies the result back and compares it.",
    remedy="Look at the card with the tool of its vendor, and restart its driver or the host.",
    needs=("torch-imports", "vendor-module"),
    live=True,
)


def check(host: Host) -> Answer:
    """Ask each card."""
    absent = asked_and_absent(host)
    if absent:
        return CHECK.blocked("It needs a %s card, but torch counts none." % absent)
    made = plan(host)
    answers = host.ask_together("cards", [("card", _arguments(made, index), host.environ) for index in range(made.cards or 1)])
    bad = [(index, problem) for index, each in enumerate(answers) for problem in [_problem(_subject(made, index, each), each)] if problem]
    if bad:
        first = answers[bad[0][0]]
        return CHECK.fail(" ".join(problem for _, problem in bad), _remedy(host, [index for index, _ in bad]), first.last_lines)
    if not made.cards:
        return CHECK.ok("The CPU computes correctly. No card was tried: %s." % _why(made))
    names = ", ".join(_name(made, index, each) for index, each in enumerate(answers))
    return CHECK.ok("%s computed the same as the CPU: %s." % (counted(made.cards, "card"), names), *_identities(answers))


def _arguments(made: LivePlan, index: int) -> Sequence[str]:
    return (made.types, str(index), made.attribute, made.module)


def _why(made: LivePlan) -> str:
    return "torch counts no %s card" % made.known.name if made.known else "nothing on this host shows an accelerator"


def _name(made: LivePlan, index: int, answer: ChildAnswer) -> str:
    """Return what torch calls the card, also if the child ended before it could say."""
    said = next((str(each["card"]) for each in answer.answers if "card" in each), "%s:%d" % (made.device, index))
    return said if made.cards else "The CPU"


def _subject(made: LivePlan, index: int, answer: ChildAnswer) -> str:
    name = _name(made, index, answer)
    return "Card " + name if made.cards else name


def _problem(name: str, answer: ChildAnswer) -> str:
    """Return what is wrong with a card as a sentence; empty if nothing is."""
    at = next((str(each["stage"]) for each in reversed(answer.answers) if "stage" in each), "import")
    if answer.last.get("error"):
        return "%s failed in %s: %s." % (name, at, str(answer.last["error"]).rstrip("."))
    if answer.code != 0:
        return "%s %s; it was in %s." % (name, answer.how(), at)
    wrong = str(answer.last.get("wrong", "the child said nothing"))
    return "%s computes wrong results: %s." % (name, wrong) if wrong else ""


def _remedy(host: Host, bad: List[int]) -> str:
    """Say how to go on without the card, as a restart may need somebody else."""
    made = plan(host)
    if not made.cards:
        return "Run 'python -c \"import torch; print(torch.ones(8, 8) @ torch.ones(8, 8))\"'. If it fails as well, install torch again."
    tool = "Look at it with %s, and restart its driver or the host. " % made.known.smi if made.known and made.known.smi else ""
    hidden = without(host, tuple(bad))
    if not hidden:
        return tool or CHECK.remedy
    count = made.cards - len(bad)
    return "%sTo train without it, set %s and start %s." % (tool, hidden, counted(count, "rank"))


def _identities(answers: Sequence[ChildAnswer]) -> Tuple[str, ...]:
    return tuple("%s: %s" % (each.last["card"], each.last["identity"]) for each in answers if each.last.get("identity"))
