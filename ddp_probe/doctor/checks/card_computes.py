"""Each card computes what the CPU computes."""

from typing import List, Sequence

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import LivePlan, asked_and_absent, plan, without
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import counted, listed, quoted

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
        return CHECK.blocked(say("It needs a {kind} card, but torch counts none.", kind=absent))
    made = plan(host)
    programs = [("card", _arguments(made, index), host.environ) for index in range(made.cards or 1)]
    answers = host.ask_together("cards", programs)
    bad, problems = [], []
    for index, answer in enumerate(answers):
        problem = _problem(_subject(made, index, answer), answer)
        if problem:
            bad.append(index)
            problems.append(problem)
    if bad:
        lines = [quoted(line) for line in answers[bad[0]].last_lines]
        return CHECK.fail(joined(problems), _remedy(host, bad), lines)
    if not made.cards:
        return CHECK.ok(say("The CPU computes correctly. No card was tried: {why}.", why=_why(made)))
    saw = say(
        "{cards} computed the same as the CPU: {names}.",
        cards=counted(made.cards, "card"),
        names=listed([_name(made, index, answer) for index, answer in enumerate(answers)]),
    )
    return CHECK.ok(saw, *_identities(answers))


def _arguments(made: LivePlan, index: int) -> Sequence[str]:
    return (made.types, str(index), made.attribute, made.module)


def _why(made: LivePlan) -> Text:
    if made.known:
        return say("torch counts no {kind} card", kind=made.known.name)
    return say("nothing on this host shows an accelerator")


def _name(made: LivePlan, index: int, answer: ChildAnswer) -> str:
    """Return what torch calls the card, also if the child ended before it could say."""
    named = [str(said["card"]) for said in answer.answers if "card" in said]
    return named[0] if named else "%s:%d" % (made.device, index)


def _subject(made: LivePlan, index: int, answer: ChildAnswer) -> Text:
    return say("Card {card}", card=_name(made, index, answer)) if made.cards else say("The CPU")


def _problem(name: Text, answer: ChildAnswer) -> str:
    """Return what is wrong with a card as a sentence; empty if nothing is."""
    stage = next((str(said["stage"]) for said in reversed(answer.answers) if "stage" in said), "import")
    if answer.last.get("error"):
        error = quoted(str(answer.last["error"]).rstrip("."))
        return say("{card} failed in {stage}: {error}.", card=name, stage=stage, error=error)
    if answer.code != 0:
        return say("{card} {how}; it was in {stage}.", card=name, how=answer.how(), stage=stage)
    if "wrong" not in answer.last:
        return say("{card} computes wrong results: {wrong}.", card=name, wrong=say("the child said nothing"))
    wrong = str(answer.last["wrong"])
    return say("{card} computes wrong results: {wrong}.", card=name, wrong=quoted(wrong)) if wrong else ""


def _remedy(host: Host, bad: List[int]) -> str:
    """Say how to go on without the card, as a restart may need somebody else."""
    made = plan(host)
    if not made.cards:
        return say(
            "Run 'python -c \"import torch; print(torch.ones(8, 8) @ torch.ones(8, 8))\"'. If it fails as well, install torch again.",
        )
    steps = []
    if made.known and made.known.smi:
        steps.append(say("Look at it with {tool}, and restart its driver or the host.", tool=made.known.smi))
    hidden = without(host, tuple(bad))
    if hidden:
        ranks = counted(made.cards - len(bad), "rank")
        setting = quoted(hidden)
        steps.append(say("To train without it, set {setting} and start {ranks}.", setting=setting, ranks=ranks))
    return joined(steps) or CHECK.remedy


def _identities(answers: Sequence[ChildAnswer]) -> List[Text]:
    said = [answer.last for answer in answers if answer.last.get("identity")]
    return [quoted("%s: %s" % (each["card"], each["identity"])) for each in said]
