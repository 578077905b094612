"""A rank is in the kernel's D state, in each look: a file system does not answer."""

from typing import Iterator

from ddp_probe.judging.looks import DISK, found, stances, waiting
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

RULE = Rule(
    id="DDP683",
    slug="seen-in-file-system",
    cause="rank_stopped_participating",
    title="A rank waits for a file system or a device that does not answer.",
    symptom="The job hangs; ps shows a rank in state D, and no signal ends it.",
    evidence="The kernel's state D in each look, and open files at the same position in each. On a slow disk that still answers, they move.",
    remedy="Look at the file system of the open file: df -h, mount, dmesg -T, the server of NFS or Lustre. The rank goes on when it answers.",
    restart="after",  # The file system has to answer first.
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks in state D, and the files that they have open."""
    on_disk = [stance for stance in stances(run) if len(stance.states) > 1 and set(stance.states) == {DISK}]
    guilty = [stance for stance in on_disk if not stance.moved()]
    if not guilty:
        return
    last = guilty[0].last
    files = [say("{path} at byte {position} of {size}", path=quoted(file.path), position=file.position, size=file.size) for file in last.files]
    where = quoted(last.wchan) if last.wchan else say("the kernel")
    how = say(" (state D, in {where})", where=where)
    if files:
        how = say(" (state D, in {where}; open: {files})", where=where, files=listed(files, 3))
    yield found(RULE, guilty, waiting(run), how, confidence=MEDIUM)
