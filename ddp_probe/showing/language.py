"""The language that a person reads: DDP_PROBE_LANG, else the locale. What programs read, and what a traced process writes, is in English.

Each language but English, which is in the code, is one file in languages/.
"""

import json
import os
import re
from functools import lru_cache
from typing import Any, Dict, Mapping, NamedTuple, Optional, TextIO

from ddp_probe.shared import settings
from ddp_probe.shared.regular_files import open_text

LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables of the locale, in the order in which they decide; an empty one counts as unset."""
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "languages")
_MORE = re.compile(r" and (\d+) more groups?$")  # What diagnose.words.spans leaves out.


class Translated(NamedTuple):
    """A text of a rule or of a check in another language, with the digest of the English text that it translates."""

    digest: str
    text: str


class Translations(NamedTuple):
    """The content of a language's file: the labels of the pages by the English ones, and the texts of rules and checks by ID.FIELD."""

    labels: Dict[str, str]
    texts: Dict[str, Translated]


class Language(NamedTuple):
    """One language: its labels, and the texts of a rule or a check."""

    name: str

    @property
    def translations(self) -> Translations:
        """Return what the file of this language holds; it is read when it is first needed."""
        return _translations(self.name)

    def __call__(self, label: str) -> str:
        """Return a label of a page, or a form with places for names and numbers; without a translation it is the English one."""
        return self.translations.labels.get(label, label)

    def who(self, ranks: str) -> str:
        """Return ranks as a page names them: rank 3, ranks 0-2, a process."""
        if self is ENGLISH or ranks in self.translations.labels:
            return self(ranks)
        return "rank " + _MORE.sub(lambda match: self(" and %d more groups") % int(match.group(1)), ranks.partition(" ")[2])

    def state(self, text: str) -> str:
        """Return a phase or an end; what follows its first word, such as the type of an exception, stays."""
        word, gap, rest = text.partition(" ")
        return self(text) if text in self.translations.labels else self(word) + gap + rest

    def of(self, page: Any, field: str) -> str:
        """Return a text of a rule or a check; a text without a translation, or that has changed since it was translated, is English."""
        english = str(getattr(page, field))
        translated = self.translations.texts.get(key(page, field))
        return translated.text if translated is not None and translated.text and translated.digest == digest(english) else english

    def counted(self, number: int, noun: str) -> str:
        """Return a number with its noun."""
        form = "%d " + noun
        return self(form if form in self.translations.labels or number == 1 else form + "s") % number


ENGLISH = Language("en")
CHINESE = Language("zh")


def chosen(stream: Optional[TextIO] = None, environ: Optional[Mapping[str, str]] = None) -> Language:
    """Return the language of this reader; a stream that cannot show Chinese gets English, not escapes."""
    env = os.environ if environ is None else environ
    word = settings.get(settings.LANG, env) or next((env[name] for name in LOCALE if env.get(name)), "")
    return CHINESE if word.lower().startswith("zh") and _shows_chinese(stream) else ENGLISH


def _shows_chinese(stream: Optional[TextIO]) -> bool:
    try:
        "中".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def key(page: Any, field: str) -> str:
    """Return the name of a text in the file of a language."""
    return "%s.%s" % (page.id, field)


def digest(english: str) -> str:
    """Return the digest by which a translation shows whether its English text has changed."""
    import hashlib

    return hashlib.sha256(english.encode("utf-8")).hexdigest()[:8]


def path(name: str) -> str:
    """Return the file of a language."""
    return os.path.join(FOLDER, name + ".txt")


@lru_cache(maxsize=None)
def _translations(name: str) -> Translations:
    translations = Translations({}, {})
    if name == "en":
        return translations
    with open_text(path(name)) as lines:
        for line in lines:
            if line.startswith('"'):
                translations.labels.update(json.loads("{%s}" % line))
            elif not line.startswith("#") and line.strip():
                text, was, chinese = [*line.rstrip("\n").split(" ", 2), "", ""][:3]
                translations.texts[text] = Translated(was, chinese)
    return translations
