"""The exit codes of a report: of its verdict, or of whether a restart helps, for what starts a job again."""

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.restart import advice
from ddp_probe.judging.rule import AFTER, ELSEWHERE, NO, UNKNOWN, YES

OF_RESTART = {UNKNOWN: 3, YES: 10, ELSEWHERE: 11, AFTER: 12, NO: 13}
"""1 is left to Python, which ends with it if the package is not installed; 2 to a wrong command line."""


def of(diagnosis: Diagnosis, by: str, strict: bool = False) -> int:
    """Return the exit code of a command that has printed this."""
    if by == "verdict":
        return diagnosis.exit_code(strict)
    answer = advice(diagnosis)
    return 0 if answer is None else OF_RESTART[answer.helps]
