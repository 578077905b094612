"""A log says the same in whatever form it was pasted, and a healthy one says nothing in any."""

import zlib
from functools import lru_cache
from typing import Dict, List, Optional

import pytest
from forms import FORMS, Said, Text, fault, said, texts

from ddp_probe.reading.load_run import from_lines

# Shares of the texts that say something else, as their sentences were broken apart or cut off: what all texts show, and a little more.
_LEFT = {
    "panel": 0.15,
    "chat-60": 0.2,
    "chat-90": 0.15,
    "cut-80": 0.07,
    "cut-100": 0.05,
    "two-at-once": 0.1,
    "half-lines": 0.1,
    "no-head": 0.33,
    "no-tail": 0.5,
}
_OTHERS = 0.04


@lru_cache(maxsize=None)
def _known() -> List[Text]:
    return texts()


@lru_cache(maxsize=None)
def _plain(text: Text) -> Optional[Said]:
    return said([(number, line) for number, line in enumerate(text.lines, 1)])


def _faults(name: str, chosen: List[Text]) -> Dict[str, str]:
    found = {text.name if text.shown else "unseen": fault(_plain(text), text, (name,), 1) for text in chosen}
    return {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_changes_nothing(name: str, whole: bool) -> None:
    """In a form of pasting, nearly all known logs keep their cause, ranks, sentence and line."""
    chosen = [text for text in _known() if (whole or zlib.crc32(text.name.encode()) % 36 == 0) and _plain(text) is not None]
    wrong = _faults(name, chosen)
    mean = _LEFT.get(name, _OTHERS) * len(chosen)
    assert len(wrong) <= 1 + mean + (0.0 if whole else 2 * mean**0.5), wrong  # Few are drawn.


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_form_finds_nothing_in_a_healthy_log(name: str, whole: bool) -> None:
    """In a form of pasting, logs without a finding stay without one."""
    healthy = [text for text in _known() if text.healthy]
    assert _faults(name, [text for text in healthy[:: 1 if whole else 8] if _plain(text) is None]) == {}


def test_powershell_explains_itself_and_not_the_job() -> None:
    """What PowerShell's error record says of itself is taken out, and the name of the program before its first line."""
    record = ["At line:1 char:1", "+ python train.py", "+ ~~~~~~", "    + CategoryInfo : NotSpecified: (Traceback (most recent call last)::String)"]
    lines = ["python : Traceback (most recent call last):", *record, "    + FullyQualifiedErrorId : NativeCommandError", " "]
    lines += ['  File "train.py", line 3, in <module>', "    main()", "RuntimeError: Distributed package doesn't have NCCL built in"]
    failures = from_lines("\n".join(lines)).failures
    assert [(one.type, [frame.line for frame in one.frames]) for one in failures] == [("RuntimeError", [3])]
