"""From one Run to findings: rules, one file each, and the judge that asks them all."""

from ddp_probe.diagnose.judge import Diagnosis, judge
from ddp_probe.diagnose.rule import Evidence, Finding, Printed, Rule, Undecided

__all__ = ["Diagnosis", "Evidence", "Finding", "Printed", "Rule", "Undecided", "judge"]
