"""Says what to do about a broken file: is it still being written, and would torch.load see it?"""

from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, Judged
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import quoted

_RECENT = 60.0  # Seconds.
_AGAIN = say("Copy it again, or take an earlier checkpoint.")


def add_advice(judged: Judged) -> None:
    """Fill what to do, unless the format has said it."""
    if judged.verdict == BROKEN and not judged.what_to_do:
        judged.what_to_do = _what_to_do(judged)
    if judged.verdict == BROKEN and judged.writers:  # What is not whole yet is not broken.
        judged.verdict, judged.because = UNKNOWN, say("It is being written.")


def _what_to_do(judged: Judged) -> str:
    if judged.writers:
        writer = judged.writers[0]
        return say(
            "Process {pid}{command} has it open for writing. Run this again once it has finished.",
            pid=writer.pid,
            command=say(" ({command})", command=quoted(writer.command)) if writer.command else "",
        )
    if not any("has not finished" in fault.text for fault in judged.faults):
        return _AGAIN
    if judged.age is not None and judged.age < _RECENT:
        return say(
            "No process of this host that this user may see has it open for writing. It was changed {age:.0f} s ago: "
            "if another host writes it, run this again. Else: Copy it again, or take an earlier checkpoint.",
            age=max(judged.age, 0),
        )
    return joined([say("No process of this host that this user may see has it open for writing."), _AGAIN])
