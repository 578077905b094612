"""What to do about a file that is broken: is it still being written, and would torch.load see it."""

from ddp_probe.reading.checkpoints.model import BROKEN, Judged

_RECENT = 60.0  # Seconds.
_AGAIN = "Copy it again, or take an earlier checkpoint."


def add(judged: Judged) -> None:
    """Fill what to do, unless the format has said it."""
    if judged.verdict == BROKEN and not judged.what_to_do:
        judged.what_to_do = _what_to_do(judged)


def _what_to_do(judged: Judged) -> str:
    if judged.writers:
        writer = judged.writers[0]
        name = " (%s)" % writer.command if writer.command else ""
        return "Process %d%s has it open for writing. Run this again once it has finished." % (writer.pid, name)
    if not any("has not finished" in fault.text for fault in judged.faults):
        return _AGAIN
    nobody = "No process of this host that this user may see has it open for writing."
    if judged.age is not None and judged.age < _RECENT:
        return "%s It was changed %.0f s ago: if another host writes it, run this again. Else: %s" % (nobody, max(judged.age, 0), _AGAIN)
    return "%s %s" % (nobody, _AGAIN)
