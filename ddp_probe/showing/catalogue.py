"""The catalogues of a language: files in gettext's .po form, as translators' tools write them. A text is found by its English one."""

import json
import os
import sys
from functools import lru_cache
from typing import Dict, List

from ddp_probe.shared.regular_files import open_text

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "languages")


@lru_cache(maxsize=None)
def translations(language: str) -> Dict[str, str]:
    """Return the translations of a language by their English texts, out of all its files."""
    # It is not imported for the labels of a page that has no rule.
    site_rules = sys.modules.get("ddp_probe.judging.site_rules")
    by_english: Dict[str, str] = {}
    if site_rules is not None and language == "zh":
        by_english.update(site_rules.chinese())
    for path in files(language):
        with open_text(path) as lines:
            by_english.update(read_po(list(lines)))
    return by_english


def files(language: str) -> List[str]:
    """Return the files of a language; English, which is in the code, has none."""
    folder = os.path.join(FOLDER, language)
    if language == "en":
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".po")]


def read_po(lines: List[str]) -> Dict[str, str]:
    """Return the translations of one file; those that are empty, or marked as fuzzy, are left out."""
    by_english: Dict[str, str] = {}
    for entry in "".join(lines).split("\n\n"):
        texts = {"msgid": "", "msgstr": ""}
        of, is_fuzzy = "", False
        for line in entry.splitlines():
            keyword, _, rest = line.partition(" ")
            if keyword in texts:
                of = keyword
                texts[of] = json.loads(rest)
            elif line.startswith('"'):
                texts[of] += json.loads(line)
            is_fuzzy |= keyword == "#," and "fuzzy" in rest
        if texts["msgid"] and texts["msgstr"] and not is_fuzzy:
            by_english[texts["msgid"]] = texts["msgstr"]
    return by_english
