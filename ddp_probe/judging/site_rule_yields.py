"""Which rules of ours name a cause for the lines of a site's own rule, which yields to them."""

from typing import List

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import ERROR
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.judging.site_rule_file import SiteRule
from ddp_probe.reading.load_run import from_text


def yields_to(site_rule: SiteRule) -> List[str]:
    """Return the ids of our rules that answer what the rule must match."""
    certain = [module for module in modules() if not rule_of(module).last_resort]
    ids: List[str] = []
    for lines in site_rule.must_match:
        findings = judge(from_text(lines), certain).findings
        ids += [finding.id for finding in findings if finding.severity == ERROR]
    return list(dict.fromkeys(ids))
