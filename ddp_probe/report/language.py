"""The language that a person reads: DDP_PROBE_LANG, else the locale. What programs read, and what a traced process writes, is in English."""

import os
import re
from typing import Any, Dict, Mapping, NamedTuple, Optional, TextIO

from ddp_probe import settings
from ddp_probe.report.labels_zh import LABELS

LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables of the locale, in the order in which they decide; an empty one counts as unset."""
_MORE = re.compile(r" and (\d+) more groups?$")  # What diagnose.words.spans leaves out.


class Language(NamedTuple):
    """One language: its labels by the English ones, and which texts of a rule or a check it takes."""

    name: str
    labels: Dict[str, str]

    def __call__(self, label: str) -> str:
        """Return a label of a page, or a form with places for names and numbers; without a translation it is the English one."""
        return self.labels.get(label, label)

    def who(self, ranks: str) -> str:
        """Return ranks as a page names them: rank 3, ranks 0-2, a process."""
        if self is ENGLISH or ranks in self.labels:
            return self(ranks)
        return "rank " + _MORE.sub(lambda found: self(" and %d more groups") % int(found.group(1)), ranks.partition(" ")[2])

    def state(self, text: str) -> str:
        """Return a phase or an end; what follows its first word, such as the type of an exception, stays."""
        word, gap, rest = text.partition(" ")
        return self(text) if text in self.labels else self(word) + gap + rest

    def of(self, page: Any, field: str) -> str:
        """Return a text of a rule or a check; one that is not translated yet is English."""
        own = getattr(page.zh, field) if self.name == "zh" else ""
        return str(own or getattr(page, field))

    def counted(self, number: int, noun: str) -> str:
        """Return a number with its noun."""
        form = "%d " + noun
        return self(form if form in self.labels or number == 1 else form + "s") % number


ENGLISH = Language("en", {})
CHINESE = Language("zh", LABELS)


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
