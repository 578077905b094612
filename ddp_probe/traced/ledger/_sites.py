"""Call sites for the ledger: the job's innermost line as the number of a text, looked up without building anything once it is known."""

import sys
from types import FrameType
from typing import Any, Callable, Dict, List, Optional

from ddp_probe.shared import ledger_schema
from ddp_probe.shared.masking.secrets import masked
from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, framework, starts_a_child
from ddp_probe.traced.facts.call_site import BETWEEN, PROBE, call_path, module_of
from ddp_probe.traced.record.ledger import LedgerFile

_FRAMES = 100
_CODES = 10_000  # code objects that are told apart; a program that compiles in a loop has no end of them
_WRAPPERS = (None,) * 6  # how many functions of torch's between the job and the call are passed without a call of ours
_NEVER_THE_JOBS = (*BETWEEN, *PROBE)


def finder(file: LedgerFile) -> Callable[[], int]:  # noqa: C901  # One closure costs less than the attributes of a class.
    """Return what finds the line that called its caller's caller; closures, as an attribute costs as much as the rest of a step."""
    codes: Dict[int, Optional[Dict[int, int]]] = {}  # by id(code): the numbers by instruction, None if the code is not the job's own
    kept: List[Any] = []  # the code objects, so that no other one gets their ids
    unknown: Any = {}  # of a code that has not been met
    known: Any = codes.get
    frame_of = sys._getframe

    def find() -> int:
        try:
            frame: Any = frame_of(3)
        except ours(ValueError):  # A thread has nothing but the call to run.
            return 0
        for _ in _WRAPPERS:
            lines = known(id(frame.f_code), unknown)
            if lines is not None:
                return lines.get(frame.f_lasti) or search(frame_of(3))
            frame = frame.f_back
            if frame is None:
                break
        return search(frame_of(3))

    def search(start: FrameType) -> int:
        walked = start
        for _ in range(_FRAMES):
            lines = codes.get(id(walked.f_code), unknown)
            if lines is unknown:
                lines = learn(walked)
            if lines is not None:
                number = lines.get(walked.f_lasti)
                if number is None:
                    number = lines[walked.f_lasti] = file.text(ledger_schema.SITE, _line(walked))
                return int(number)
            if walked.f_back is None:
                break
            walked = walked.f_back
        return of_installed(start)

    def learn(frame: FrameType) -> Optional[Dict[int, int]]:
        if len(kept) >= _CODES:
            codes.clear()
            kept.clear()
        code = frame.f_code
        top = module_of(frame).partition(".")[0]
        others = top in _NEVER_THE_JOBS or framework(top) or foreign(code.co_filename) or starts_a_child(code)
        found: Optional[Dict[int, int]] = None if others else {}
        kept.append(code)
        codes[id(code)] = found
        return found

    def of_installed(frame: FrameType) -> int:
        found, _ = call_path(frame)
        return 0 if found is None else file.text(ledger_schema.SITE, "%s\n%d\n%s" % (found.file, found.line, found.function))

    return find


def _line(frame: FrameType) -> str:
    code = frame.f_code
    # Masked before it is cut: half a secret would not be recognised.
    return "%s\n%d\n%s" % (masked(code.co_filename, 500), frame.f_lineno or 0, masked(getattr(code, "co_qualname", code.co_name), 500))
