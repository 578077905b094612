"""Makes the page: one part for each section, each made from the diagnosis, and the template, in which everything from a log is text."""

import base64
import hashlib
import json
import os
from typing import Any, Generator

import jinja2
from markupsafe import Markup, escape

import ddp_probe
from ddp_probe.judging.judge import CLEAR, FOUND, Diagnosis
from ddp_probe.shared.regular_files import open_text
from ddp_probe.showing import brief_form, inventory, language, remedies, safe
from ddp_probe.showing.brief_form import questions
from ddp_probe.showing.html import findings, lanes, matrix, model_differences, rank_differences, stack_branches, waits
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.html.quotes import Quotes
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.masker import Masker
from ddp_probe.showing.paths import Paths
from ddp_probe.showing.rank_state import rank_states
from ddp_probe.wording.text import Text
from ddp_probe.wording.words import named

_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def rendered(values: Any, masker: Masker, say: Language) -> str:
    """Return the page that the template makes of these values."""

    def inert(value: Any) -> Any:
        """Return what is printed: every text that is not markup of the template itself is shown as inert text."""
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return safe.visible(masker.page(say.text(value) if isinstance(value, Text) else value))

    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, finalize=inert, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = (source(name) for name in ("style.css", "script.js"))
    fixed = {"style": Markup(style), "script": Markup(script), "policy": escape(policy(style, script)), "eol": Markup("\n")}  # noqa: S704  # the package's own files
    return environment.get_template("page.html.j2").render(**values, **fixed, data=lambda value: Markup(as_json(value, masker)))  # noqa: S704  # escaped


def source(name: str) -> str:
    """Return the text of a file beside the templates."""
    with open_text(os.path.join(_TEMPLATES, name)) as file:
        return file.read()


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy under which only this style and this script work."""
    return "default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'" % (_hash(style), _hash(script))


def _hash(text: str) -> str:
    return "sha256-%s" % base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def as_json(value: Any, masker: Masker) -> str:
    """Return a value as JSON that cannot end the element that contains it."""
    return json.dumps(_inert(value, masker)).translate(_ESCAPES)


def _inert(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return safe.visible(masker.page(value))
    if isinstance(value, dict):
        return {key: _inert(item, masker) for key, item in value.items()}
    return [_inert(item, masker) for item in value] if isinstance(value, (list, tuple)) else value


_QUESTIONS = 12


def chunks(diagnosis: Diagnosis) -> Generator[str, None, str]:
    """Yield the page in the reader's language; there is nothing to note about it."""
    yield text(diagnosis, language.chosen())
    return ""


def text(diagnosis: Diagnosis, say: Language = ENGLISH) -> str:
    """Return the whole page, masked as a bundle is: both are given away."""
    masker = Masker(os.environ)
    run, states, quotes, paths = diagnosis.run, rank_states(diagnosis.run), Quotes(diagnosis.run, masker), Paths(diagnosis.run)
    asked = questions(diagnosis)
    values = {
        "w": {**{key: say(word) for key, word in WORDS.items()}, "lang": say.name},
        "verdict": diagnosis.verdict,
        "running": bool(run.running),
        "title": inventory.title(run, states, say),
        "made_by": ddp_probe.__version__,
        "findings": findings.parts(diagnosis, quotes, say),
        "explained": " ".join(inventory.near(folder) for folder in run.folders),
        "clear": say(brief_form.GOOD_ORDER) % say.text(named(sorted(run.ranks))) if diagnosis.verdict == CLEAR else "",
        "found": diagnosis.verdict == FOUND,
        "open": [(paths(reason.because, say), paths(reason.next, say)) for reason in asked[:_QUESTIONS]],
        "open_more": max(0, len(asked) - _QUESTIONS),
        "remedies": [paths(sentence) for sentence in remedies.sentences(run)[:_QUESTIONS]],
        "matrix": matrix.matrix(diagnosis, states, quotes, say),
        "waits": waits.part(diagnosis, say),
        "lanes": lanes.part(diagnosis, quotes, say),
        "stacks": stack_branches.part(run, say),
        "models": model_differences.model_tables(run, quotes),
        "environment": rank_differences.environment_part(run, quotes),
        "inventory": [(say(label), text) for label, text in inventory.rows(run, states, say)],
    }
    return rendered({**values, "quoted": quotes.read()}, masker, say)
