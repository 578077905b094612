"""Which language a person reads: DDP_PROBE_LANG first, then the locale."""

from types import SimpleNamespace
from typing import Dict

import pytest

from ddp_probe.doctor.check import FAIL
from ddp_probe.doctor.checks import variable_names
from ddp_probe.shared import settings
from ddp_probe.showing.language import CHINESE, ENGLISH, Language, chosen


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, ENGLISH),
        ({"LANG": "zh_CN.UTF-8"}, CHINESE),
        ({"LANG": "zh"}, CHINESE),
        ({"LANG": "zh_TW.UTF-8", "LC_CTYPE": "en_US.UTF-8"}, CHINESE),
        ({"LANG": "de_DE.UTF-8"}, ENGLISH),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, ENGLISH),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, CHINESE),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, CHINESE),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, ENGLISH),
        ({"LC_ALL": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, CHINESE),
        ({"DDP_PROBE_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, ENGLISH),
        ({"DDP_PROBE_LANG": "ZH", "LC_ALL": "C"}, CHINESE),
        ({"DDP_PROBE_LANG": " ", "LANG": "zh_CN.UTF-8"}, CHINESE),
        ({"DDP_PROBE_LANG": "fr", "LANG": "zh_CN.UTF-8"}, CHINESE),
    ],
)
def test_the_variable_comes_before_the_locale(environ: Dict[str, str], language: Language) -> None:
    """DDP_PROBE_LANG decides; without it, or with a value that is not a language, the first variable of the locale that is set does."""
    assert chosen(environ=environ).name == language.name


def test_an_unknown_language_is_told() -> None:
    """A value that is not a language is a mistake, which doctor's check of variables and `status` report."""
    environ = {"DDP_PROBE_LANG": "fr"}
    assert settings.mistakes(environ) == {"DDP_PROBE_LANG": "The value must be one of en, zh."}
    host = SimpleNamespace(environ=environ)
    answer = variable_names.check(host)  # type: ignore[arg-type]
    assert (answer.status, answer.remedy) == (FAIL, "unset DDP_PROBE_LANG")


@pytest.mark.parametrize("word", ["en", "zh", "", " "])
def test_a_language_is_not_a_mistake(word: str) -> None:
    """Both languages and an empty value are accepted."""
    assert settings.mistakes({"DDP_PROBE_LANG": word}) == {}
