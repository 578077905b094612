"""What a report leaves open, for the forms that list each question by itself."""

from typing import List

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.open_questions import unseen
from ddp_probe.judging.rule import Undecided


def questions(diagnosis: Diagnosis) -> List[Undecided]:
    """Return each open question, and that ranks of other hosts were not seen if a finding has left that out."""
    asked = list(diagnosis.undecided)
    if diagnosis.run.elsewhere:
        beyond = unseen(diagnosis.run)
        asked += [beyond] if all(reason.slug != beyond.slug for reason in asked) else []
    return asked
