"""The language that a person reads: DDP_PROBE_LANG, else the locale. The zone of the times: DDP_PROBE_TZ, else the host's.

What programs read, and what a traced process writes, is in English and in UTC.
"""

import os
import re
from dataclasses import dataclass, replace
from datetime import timezone, tzinfo
from typing import Any, Dict, Mapping, Optional, TextIO

from ddp_probe.shared import settings
from ddp_probe.showing import catalogue
from ddp_probe.wording.text import Text, templates, write
from ddp_probe.wording.values import Show, as_it_is

LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables of the locale, in the order in which they decide; an empty one counts as unset."""
_PLACE, _WORD = re.compile(r"\{\w*[^{}]*\}"), re.compile("[a-z]{2}")


@dataclass(frozen=True)
class Language:
    """One language: it gives each text of a page, of a rule and of a run in its own words; what it lacks is English."""

    name: str
    zone: Optional[tzinfo] = timezone.utc
    """That of the times; None is the host's."""

    @property
    def translations(self) -> Dict[str, str]:
        """Return what the files of this language hold, by the English texts; they are read when they are first needed."""
        return catalogue.translations(self.name)

    def __call__(self, label: str) -> str:
        """Return a label of a page, a form with places for names and numbers, or a template."""
        return self.translations.get(label, label)

    def text(self, text: str, show: Show = as_it_is) -> str:
        """Return what a run, a rule or a check says; `show` gives the words of each value as a page has them."""
        return self(write(text, self, show))

    @property
    def is_english(self) -> bool:
        """Return whether texts need no translation."""
        return self.name == ENGLISH.name

    def has(self, text: str) -> bool:
        """Tell whether a text can be written in this language: it and all that it names, but for what has no words."""
        translations = self.translations
        return all(template in translations or not _WORD.search(_PLACE.sub("", template)) for template in templates(text)) and (
            isinstance(text, Text) or text in translations
        )

    def state(self, text: str) -> str:
        """Return a phase or an end; what follows its first word, such as the type of an exception, stays."""
        word, gap, rest = text.partition(" ")
        return self(text) if text in self.translations else self(word) + gap + rest

    def of(self, page: Any, field: str) -> str:
        """Return a text of a rule or a check."""
        return self(str(getattr(page, field)))

    def counted(self, number: int, noun: str) -> str:
        """Return a number with its noun."""
        form = "%d " + noun
        return self(form if form in self.translations or number == 1 else form + "s") % number


ENGLISH = Language("en")
CHINESE = Language("zh")


def chosen(stream: Optional[TextIO] = None, environ: Optional[Mapping[str, str]] = None) -> Language:
    """Return the language and the zone of this reader; a stream that cannot show Chinese gets English."""
    env = os.environ if environ is None else environ
    word = settings.get(settings.LANG, env) or next((env[name] for name in LOCALE if env.get(name)), "")
    language = CHINESE if word.lower().startswith("zh") and _shows_chinese(stream) else ENGLISH
    return replace(language, zone=settings.get(settings.TZ, env))


def english() -> Language:
    """Return English with the times of this reader, for lines that a person reads beside those of the job."""
    return replace(ENGLISH, zone=settings.get(settings.TZ))


def _shows_chinese(stream: Optional[TextIO]) -> bool:
    try:
        "中".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
