"""Prints docs/contributing/glossary.md: the words that are this project's own, with their docstrings.

The definition of a word is the first paragraph of the docstring behind its dotted name; `NAME#WORD` is the paragraph of that
docstring which begins with "WORD: ". To change a definition, change the docstring.
"""

import importlib
import inspect
import re
from typing import Dict, Iterator

from docs_parts.markdown import NOTE, prose

GLOSSARY: Dict[str, str] = {
    "probe": "ddp_probe.traced.probes.Probe",
    "observer": "ddp_probe.traced.patching.call.Observer",
    "patch": "ddp_probe.traced.patching.patch.Patch",
    "patch site": "ddp_probe.traced.patching.patch.PatchSite",
    "slot": "ddp_probe.traced.patching.slot.Slot",
    "override": "ddp_probe.traced.patching.changes.Override",
    "remedy": "ddp_probe.traced.remedies.Remedy",
    "fact": "ddp_probe.traced.facts",
    "event": "ddp_probe.shared.schema.Event",
    "envelope": "ddp_probe.shared.schema.Event#envelope",
    "phase": "ddp_probe.shared.schema.Event#phase",
    "span": "ddp_probe.traced.record.writer.Span",
    "ledger": "ddp_probe.traced.ledger",
    "record": "ddp_probe.reading.whole_ledger.Record",
    "standing": "ddp_probe.standing.rank_standing.LedgerStanding",
    "standings": "ddp_probe.standing.rank_standing.StandingsOf",
    "split": "ddp_probe.standing.splits.Split",
    "departure": "ddp_probe.shared.alignment.Departure",
    "role": "ddp_probe.activation.roles.Role",
    "run": "ddp_probe.reading.model.Run",
    "launch": "ddp_probe.reading.model.Run#launch",
    "fold": "ddp_probe.reading.host_fold.HostFold#fold",
    "generation": "ddp_probe.reading.model.Run#generation",
    "rule": "ddp_probe.judging.rule.Rule",
    "finding": "ddp_probe.judging.rule.Finding",
    "verdict": "ddp_probe.judging.judge.Diagnosis#verdict",
}


def glossary_page() -> str:
    """Return docs/contributing/glossary.md."""
    source = "the docstrings that scripts/docs_parts/glossary.py names"
    return "\n".join([NOTE.replace("that file", "a docstring") % source, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    """Yield the lines of the page, the words in alphabetical order."""
    yield "# Glossary"
    yield ""
    yield "The words that have a meaning of their own in this project. Each definition is the docstring of the code that it names."
    yield ""
    yield "| word | meaning | defined in |"
    yield "|---|---|---|"
    for word in sorted(GLOSSARY):
        yield "| %s | %s | `%s` |" % (word, prose(definition(word)), GLOSSARY[word].partition("#")[0])


def definition(word: str) -> str:
    """Return the meaning of a word as one capitalised line."""
    dotted, _, label = GLOSSARY[word].partition("#")
    paragraphs = [" ".join(text.split()) for text in (inspect.getdoc(_found(dotted)) or "").split("\n\n")]
    own = [text for text in paragraphs if text.startswith(label + ": ")] if label else paragraphs[:1]
    if len(own) != 1 or not own[0]:
        raise LookupError("The docstring of %s needs one paragraph that begins with '%s: '; GLOSSARY in %s names it." % (dotted, label, __file__))
    text = re.sub(r"^%ss?: " % re.escape(word), "", own[0], flags=re.IGNORECASE)
    return text[:1].upper() + text[1:]


def _found(dotted: str) -> object:
    """Return the module, or the class in it, of a dotted name."""
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        try:
            found: object = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            raise LookupError("There is no %s. Correct its line in GLOSSARY in %s." % (dotted, __file__)) from None
        return found
