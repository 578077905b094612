"""Says what a declaration lacks, and in which file to write it; nothing is printed while something is missing."""

from typing import Any, Dict, Iterator, List, Tuple, Type

import msgspec

from ddp_probe.activation.targets import LAUNCH, PROGRAM
from ddp_probe.judging import examples
from ddp_probe.judging.causes import group_of
from ddp_probe.judging.rule import RESTARTS
from ddp_probe.shared import accelerators, schema
from docs_parts import declarations

_ROLES = tuple(dict.fromkeys((*PROGRAM, *LAUNCH)))


def sentences() -> List[str]:
    """Return a sentence for each declaration that is missing or wrong."""
    return [*_probes(), *_remedies(), *_rules(), *_accelerators(), *_events()]


def _probes() -> Iterator[str]:
    for path, module in declarations.files("traced/probes"):
        if not hasattr(module, "PROBE"):
            yield "%s has no PROBE. Write PROBE = and the name of its class as its last line." % path
            continue
        probe = module.PROBE
        yield from _texts(path, probe, {"cost": "a sentence that says what it costs the job"})
        yield from _targets(path, probe)
        if probe.name != _stem(path):
            yield '%s: %s is named %r. Write name = "%s" in the class: a probe has the name of its file.' % (
                path,
                probe.__name__,
                probe.name,
                _stem(path),
            )
        if not set(probe.roles) <= set(_ROLES) or not probe.roles:
            yield "%s: %s has roles %r. Write some of %s." % (path, probe.__name__, probe.roles, ", ".join(_ROLES))
        if not probe.events + probe.points:
            yield "%s: %s has no events. Write events = (schema.X,) in the class: what it writes around a call." % (path, probe.__name__)


def _remedies() -> Iterator[str]:
    orders: Dict[int, str] = {}
    for path, module in declarations.files("traced/remedies"):
        if not hasattr(module, "REMEDY"):
            yield "%s has no REMEDY. Write REMEDY = and the name of its class as its last line." % path
            continue
        remedy = module.REMEDY
        asked = {"when": "a sentence that says when it applies by itself", "for_good": "how to make the same change in code"}
        yield from _texts(path, remedy, asked)
        yield from _targets(path, remedy)
        word = _stem(path).replace("_", "-")
        if remedy.word != word:
            yield '%s: %s has the word %r. Write word = "%s" in the class: a remedy has the name of its file.' % (
                path,
                remedy.__name__,
                remedy.word,
                word,
            )
        if remedy.order <= 0 or remedy.order in orders:
            why = "as %s has" % orders[remedy.order] if remedy.order in orders else "which is not above 0"
            yield "%s: %s has order %r, %s. Write a number of its own in the class." % (path, remedy.__name__, remedy.order, why)
        orders[remedy.order] = path


def _texts(path: str, kind: Any, asked: Dict[str, str]) -> Iterator[str]:
    """Yield what a class does not say of itself."""
    if not vars(kind).get("__doc__"):
        yield "%s: %s has no docstring. Write a sentence that says what it does." % (path, kind.__name__)
    for name, what in asked.items():
        if not getattr(kind, name).strip():
            yield '%s: %s has no %s. Write %s = "…" in the class: %s.' % (path, kind.__name__, name, name, what)


def _targets(path: str, kind: Any) -> Iterator[str]:
    if not (*kind.targets, *getattr(kind, "optional", ())):
        yield '%s: %s has no targets. Write targets = ("module:qualname",) in the class: the calls, by the module that defines them.' % (
            path,
            kind.__name__,
        )
    for target in (*kind.targets, *getattr(kind, "optional", ())):
        module, _, qualname = target.partition(":")
        if not module or not qualname or ":" in qualname:
            yield "%s: %s has the target %r. Write it as module:qualname." % (path, kind.__name__, target)


def _rules() -> Iterator[str]:
    ids: Dict[str, str] = {}
    for path, module in declarations.files("judging/rules"):
        if not hasattr(module, "RULE"):
            yield "%s has no RULE. Write it as judging/rules/submodule_left_behind.py does." % path
            continue
        if not hasattr(module, "check") and not module.RULE.printed:
            yield "%s has neither a check nor printed texts. Write check(run), or printed=(Printed(…),) in RULE if words decide alone." % path
        if module.RULE.restart not in RESTARTS:
            words = ", ".join(RESTARTS)
            yield "%s says restart=%r. Write one of %s, and why." % (path, module.RULE.restart, words)
        yield from _named(path, module.RULE, ids)
        yield from _examples(_stem(path).replace("_", "-"))


def _examples(slug: str) -> Iterator[str]:
    """Yield the kinds of examples that a rule does not have, or what is wrong with one."""
    try:
        answers = {example.answer for example in examples.of(slug)}
    except ValueError as exc:
        yield "tests/rules/%s." % exc
        return
    for answer, what in (("found", "finds its cause"), ("clear", "stays silent")):
        if answer not in answers:
            yield "tests/rules/%s has no example in which the rule %s. Write a file NN-WORDS.log with 'answer: %s' in its header." % (
                slug,
                what,
                answer,
            )


def _named(path: str, rule: Any, ids: Dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with the id, the slug and the cause of a rule."""
    slug = _stem(path).replace("_", "-")
    if rule.slug != slug:
        yield '%s: the rule has the slug %r. Write slug="%s": a rule has the name of its file.' % (path, rule.slug, slug)
    if rule.id in ids:
        yield "%s: the rule has the id %s, as %s has. Write an id that docs/rules.md does not have." % (path, rule.id, ids[rule.id])
    ids[rule.id] = path
    if not group_of(rule.cause):
        yield "%s: the rule has the cause %r. Write one of ddp_probe/judging/causes.py, or add it there." % (path, rule.cause)


def _accelerators() -> Iterator[str]:
    where = "ddp_probe/shared/accelerators.py"
    for record in accelerators.ACCELERATORS:
        if not record.device_types:
            yield '%s: the record %r has no device_types. Write device_types=("…",) in it: what torch calls its devices.' % (where, record.name)
        for target in record.set_device:
            if target.count(":") != 1:
                yield "%s: the record %r has set_device %r. Write it as module:qualname." % (where, record.name, target)


def _events() -> Iterator[str]:
    for kind in _structs():
        described = msgspec.json.schema(kind)["$defs"][kind.__name__]
        if not kind.__doc__ or not described.get("description"):
            yield "ddp_probe/shared/schema.py: %s has no docstring. Write a sentence that says what it is." % kind.__name__
        for name, node in described["properties"].items():
            if name != "event" and not node.get("description"):
                told = 'ddp_probe/shared/schema.py: the field %s of %s has no meaning. Write it as %s: Annotated[…, _doc("…")].'
                yield told % (name, kind.__name__, name)


def _structs() -> Tuple[Type[msgspec.Struct], ...]:
    """Return the events and the pieces that they carry."""
    found = [kind for kind in vars(schema).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    return tuple(kind for kind in found if kind.__module__ == schema.__name__ and kind is not schema.Event)


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1][:-3]
