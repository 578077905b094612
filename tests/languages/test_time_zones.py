"""Times for a person are in the zone of the reader, with its offset; those for programs are in UTC."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest

from ddp_probe.shared import settings
from ddp_probe.showing.language import CHINESE, ENGLISH
from ddp_probe.wording.values import time_of
from ddp_probe.wording.words import clock, moment

_NOON = 1_764_417_600.25  # 2025-11-29 12:00:00.25 UTC.
_SHANGHAI = {"TZ": "CST-8"}  # A form that needs no files of zones.
_IN_UTC, _IN_SHANGHAI = re.compile(r"\d\d:\d\d:\d\d UTC"), re.compile(r"\d\d:\d\d:\d\d\+08:00")
_FORMS_FOR_PEOPLE = (["report"], ["report", "--brief"], ["stacks"], ["explain", "DDP629"])
_FORMS_FOR_PROGRAMS = ("json", "github", "junit")


def _zone(text: str) -> Any:
    return settings.get(settings.TZ, {"DDP_PROBE_TZ": text})


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "12:00:00 UTC"),
        ("+08:00", "20:00:00+08:00"),
        ("-03:30", "08:30:00-03:30"),
        ("+9", "21:00:00+09:00"),
        ("+00:00", "12:00:00 UTC"),
    ],
)
def test_a_time_has_the_offset_of_its_zone(zone: str, expected: str) -> None:
    """The offset follows without a space, at which a line could be broken; an offset of zero is UTC."""
    assert time_of(_NOON, _zone(zone), "%H:%M:%S") == expected


@pytest.mark.skipif(sys.version_info < (3, 9), reason="zoneinfo is new in Python 3.9")
def test_a_zone_has_a_name_from_python_3_9_on() -> None:
    """A name of the host's zones has its offset at that time."""
    assert time_of(_NOON, _zone("Asia/Shanghai"), "%H:%M:%S") == "20:00:00+08:00"


@pytest.mark.parametrize("text", ["+99:00", "Middle/Earth", "8", "+a", "../../etc/passwd"])
def test_what_is_not_a_zone_is_a_mistake(text: str) -> None:
    """It is reported as such, and the host's zone is used."""
    mistakes = settings.mistakes({"DDP_PROBE_TZ": text})
    assert mistakes["DDP_PROBE_TZ"].startswith("The value must be UTC, an offset such as +08:00")
    assert _zone(text) is None


def test_a_text_has_utc_for_programs_and_the_zone_of_a_language_for_a_person() -> None:
    """The text itself, which JSON has, is in UTC; a language writes it in its zone."""
    for language in (ENGLISH, CHINESE):
        person = replace(language, zone=_zone("+08:00"))
        assert (str(clock(_NOON)), person.text(clock(_NOON))) == ("12:00:00 UTC", "20:00:00+08:00")
        assert person.text(moment(_NOON + 5 * 3600)) == "2025-11-30 01:00:00+08:00"


Run = Callable[..., Any]


@pytest.fixture
def printed(run_python: Run, clean_env: Callable[..., Dict[str, str]], repo: Path) -> Callable[..., str]:
    """What a command prints on a recorded run, with variables of its own."""

    def run(words: Any, place: Optional[str] = None, **variables: str) -> str:
        where = place or str(repo / "tests/recorded/new/08_uneven_batches")
        return str(run_python(["-m", "ddp_probe", *words, where], env=clean_env(**variables)).stdout)

    return run


@pytest.mark.parametrize("words", _FORMS_FOR_PEOPLE)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_has_no_time_in_utc(printed: Callable[..., str], words: Any, language: str) -> None:
    """In a zone of its own, each time has the offset of that zone, in both languages."""
    page = printed(words, DDP_PROBE_LANG=language, **_SHANGHAI)
    assert _IN_SHANGHAI.search(page)
    assert not _IN_UTC.search(page)


@pytest.mark.parametrize("form", _FORMS_FOR_PROGRAMS)
def test_a_form_for_programs_is_in_utc_in_each_zone(printed: Callable[..., str], form: str) -> None:
    """JSON, JUnit and workflow commands are the same whatever the zone of the host is."""
    words = ["report", "--format", form]
    assert printed(words, TZ="UTC") == printed(words, **_SHANGHAI)


def test_the_setting_comes_before_the_zone_of_the_host(printed: Callable[..., str]) -> None:
    """DDP_PROBE_TZ decides."""
    assert "16:19:44+08:00" in printed(["report"], DDP_PROBE_TZ="+08:00", TZ="EST5")
    assert "03:19:44-05:00" in printed(["report"], TZ="EST5")


def test_logs_prints_the_zone_and_takes_it_back(printed: Callable[..., str]) -> None:
    """--since takes a printed time, and one without a zone is in that of the printed ones; --raw has UTC."""
    lines = printed(["logs"], **_SHANGHAI).splitlines()
    assert lines[0].startswith("16:19:44.815+08:00 ")
    since = lines[20].split(" ", 1)[0]
    for time in (since, since[:-6]):
        assert printed(["logs", "--since", time], **_SHANGHAI).splitlines() == lines[20:]
    raw = printed(["logs", "--raw"], **_SHANGHAI).splitlines()
    assert json.loads(raw[0])["ts"].startswith("2026-11-22T08:19:44")


@pytest.mark.parametrize("option", ["--html", "--trace"])
def test_a_file_has_the_zone_of_its_writer(printed: Callable[..., str], tmp_path: Path, option: str) -> None:
    """Its texts have the offset, so that another reader can tell."""
    page = tmp_path / "page"
    printed(["report", option, str(page)], **_SHANGHAI)
    text = page.read_text(encoding="utf-8")
    assert _IN_SHANGHAI.search(text)
    assert not _IN_UTC.search(text)
