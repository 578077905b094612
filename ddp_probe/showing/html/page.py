"""Makes the page: one part for each section, each made of the diagnosis, and the template that puts them together."""

import os
from typing import Generator

import ddp_probe
from ddp_probe.judging.judge import CLEAR, FOUND, Diagnosis
from ddp_probe.showing import brief, inventory, remedies
from ddp_probe.showing.html import environment, findings, lanes, matrix, models, rendering, stacks, waits
from ddp_probe.showing.html.quotes import Quotes
from ddp_probe.showing.html.words import WORDS
from ddp_probe.showing.masker import Masker
from ddp_probe.showing.paths import Paths
from ddp_probe.showing.questions import questions
from ddp_probe.showing.rank_state import rank_states

_QUESTIONS = 12


def chunks(diagnosis: Diagnosis) -> Generator[str, None, str]:
    """Yield the page; there is nothing to note about it."""
    yield text(diagnosis)
    return ""


def text(diagnosis: Diagnosis) -> str:
    """Return the whole page, masked as a bundle is: both are given away."""
    masker = Masker(os.environ)
    run, states, quotes, paths = diagnosis.run, rank_states(diagnosis.run), Quotes(diagnosis.run, masker), Paths(diagnosis.run)
    asked = questions(diagnosis)
    values = {
        "w": WORDS,
        "verdict": diagnosis.verdict,
        "running": bool(run.running),
        "title": inventory.title(run, states),
        "made_by": ddp_probe.__version__,
        "findings": findings.parts(diagnosis, quotes),
        "explained": " ".join(inventory.near(folder) for folder in run.folders),
        "clear": brief.clear(diagnosis) if diagnosis.verdict == CLEAR else "",
        "found": diagnosis.verdict == FOUND,
        "open": [(paths(reason.because), paths(reason.next)) for reason in asked[:_QUESTIONS]],
        "open_more": max(0, len(asked) - _QUESTIONS),
        "remedies": [paths(sentence) for sentence in remedies.sentences(run)[:_QUESTIONS]],
        "matrix": matrix.matrix(diagnosis, states, quotes),
        "waits": waits.part(diagnosis),
        "lanes": lanes.part(diagnosis, quotes),
        "stacks": stacks.part(run),
        "models": models.tables(run, quotes),
        "environment": environment.part(run, quotes),
        "inventory": list(inventory.rows(run, states)),
    }
    return rendering.rendered({**values, "quoted": quotes.read()}, masker)
