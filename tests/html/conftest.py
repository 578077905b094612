"""What the tests of the page share: recorded runs and their pages, made once."""

from functools import lru_cache
from pathlib import Path
from typing import Callable

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.showing.html import html_page

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Diagnosis]:
    """Take the stack and the name of a recorded job and return its diagnosis."""
    return lru_cache(maxsize=None)(lambda job: judge(load([str(RECORDED / job)])))


@pytest.fixture(scope="session")
def made(recorded: Callable[[str], Diagnosis]) -> Callable[[str], str]:
    """Take the stack and the name of a recorded job and return its page."""
    return lru_cache(maxsize=None)(lambda job: html_page.text(recorded(job)))


@pytest.fixture(scope="session")
def told() -> Callable[[str], Diagnosis]:
    """Take a short log and return its diagnosis."""
    return lambda log: judge(from_lines(log))
