"""Runs the checks in the order of their needs; a check whose need is not met is skipped, and says which."""

import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check, Result
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted


def examine(host: Host, modules: Sequence[Any], *, begin: Optional[Callable[[Check], None]] = None) -> Iterator[Result]:
    """Yield each check with its answer, after the checks that it needs."""
    answers: Dict[str, Answer] = {}
    slugs = {module.CHECK.slug for module in modules}
    try:
        for module in _in_order(modules):
            check: Check = module.CHECK
            if begin is not None:
                begin(check)
            started = time.monotonic()
            if {"torch-imports", "mmengine-device"} <= slugs and not answers:
                cards.begin(host)
            answers[check.slug] = answer = _answer(host, module, check, answers)
            yield Result(check, answer, time.monotonic() - started)
    finally:
        host.end()


def _in_order(modules: Sequence[Any]) -> List[Any]:
    """Return the modules so that each comes after those that it needs, and otherwise in their order."""
    named = {module.CHECK.slug: module for module in modules}
    ordered: Dict[str, Any] = {}

    def add(module: Any) -> None:
        for slug in module.CHECK.needs:
            if slug in named and slug not in ordered:
                add(named[slug])
        ordered.setdefault(module.CHECK.slug, module)

    for module in modules:
        add(module)
    return list(ordered.values())


def _answer(host: Host, module: Any, check: Check, answers: Dict[str, Answer]) -> Answer:
    unmet = _unmet(check, answers)
    if unmet:
        return check.blocked(say("It needs {checks}.", checks=listed(unmet, by=" and ")))
    try:
        answer: Answer = module.check(host)
    except Exception as exc:  # a check that cannot look must not stop the others
        error = quoted("%s: %s" % (type(exc).__name__, exc))
        return check.unknown(
            say("The check itself failed: {error}", error=error),
            say("Please report this: it is a bug in ddp_probe."),
        )
    return answer


def _unmet(check: Check, answers: Dict[str, Answer]) -> List[str]:
    """Return the needs that failed, or were skipped because of a failure themselves."""
    return [slug for slug in check.needs if slug in answers and answers[slug].blocks]
