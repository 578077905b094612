"""Turns values into HTML in which nothing of a log is anything but text: escaped, masked, without control and bidirectional characters."""

import base64
import hashlib
import json
import os
from typing import Any

import jinja2
from markupsafe import Markup, escape

from ddp_probe.showing import safe
from ddp_probe.showing.masker import Masker

_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def rendered(values: Any, masker: Masker) -> str:
    """Return the page that the template makes of these values."""

    def inert(value: Any) -> Any:
        """Return what is printed: every text that is not markup of the template itself is shown as inert text."""
        return safe.visible(masker.page(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, finalize=inert, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = (source(name) for name in ("style.css", "script.js"))
    own = {"style": Markup(style), "script": Markup(script), "policy": escape(policy(style, script)), "eol": Markup("\n")}  # noqa: S704  # the package's own files
    return environment.get_template("page.html.j2").render(**values, **own, data=lambda value: Markup(as_json(value, masker)))  # noqa: S704  # escaped


def source(name: str) -> str:
    """Return the text of a file beside the templates."""
    with open(os.path.join(_TEMPLATES, name), encoding="utf-8") as file:
        return file.read()


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy under which only this style and this script work."""
    return "default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'" % (_hash(style), _hash(script))


def _hash(text: str) -> str:
    return "sha256-%s" % base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def as_json(value: Any, masker: Masker) -> str:
    """Return a value as JSON that cannot end the element that it stands in."""
    return json.dumps(_inert(value, masker)).translate(_ESCAPES)


def _inert(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return safe.visible(masker.page(value))
    if isinstance(value, dict):
        return {key: _inert(one, masker) for key, one in value.items()}
    return [_inert(one, masker) for one in value] if isinstance(value, (list, tuple)) else value
