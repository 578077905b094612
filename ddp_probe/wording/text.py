"""A text with its template and its values. It is a str, the English text, so that whatever compares or prints it need not know that it is more."""

from functools import lru_cache
from string import Formatter
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

from ddp_probe.wording import values as kinds
from ddp_probe.wording.values import Items, ShellCommand, Show, Translate, as_it_is

_FORMATTER = Formatter()
_SUBJECTS = {"rank": "rank {rank}", "who": "{who}"}
"""How a template begins that says something of some ranks, by the place of these ranks."""
_SIGNS = (": ", "：", " ")


class Text(str):
    """An English text that can be written in another language."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, values: Mapping[str, Any]) -> "Text":  # noqa: PYI034  # typing.Self is new in Python 3.11
        """Write the English text."""
        text = super().__new__(cls, _filled(template, values, str, as_it_is))
        text.template, text.values = template, values
        return text

    def __reduce__(self) -> Tuple[Any, ...]:
        return Text, (self.template, self.values)

    def written(self, translate: Translate) -> str:
        """Return the text in a reader's language."""
        return self.shown(translate, as_it_is)

    def shown(self, translate: Translate, show: Show) -> str:
        """Return the text in a reader's language, each value in it as a page shows it."""
        return _filled(translate(self.template), self.values, translate, show)

    def number(self) -> int:
        """Return the number of what it names, if it names one thing: a text of ranks alone counts its ranks."""
        return kinds.number(next(iter(self.values.values()))) if len(self.values) == 1 else 1

    def fact(self) -> Any:
        """Return the values by the names of their places, without clauses that say nothing; a text with a single place is its value."""
        facts = {name: kinds.fact(value) for name, value in self.values.items() if value != ""}
        return next(iter(facts.values())) if list(facts) == ["it"] else facts


def say(template: str, **values: Any) -> Text:
    """Return a text: `say("{who:capital} {who:waits|wait} at {where}.", who=named(ranks), where=place(site))`.

    {name:capital} begins a sentence, {name:clause} is a sentence without its full stop, {name:one|many} chooses a word
    by number, and any other form is a format of numbers. A value that is a plain str is a name (of a function, a
    setting, a file); what a program printed is `quoted`; a clause is a text of its own.
    """
    return Text(template, values)


def joined(texts: List[Any], by: str = " ") -> Text:
    """Return texts as one, with a separator between them; empty ones are left out."""
    return Text("{it}", {"it": Items([text for text in texts if text], by=by)})


def write(text: str, translate: Translate, show: Show = as_it_is) -> str:
    """Return any text in a reader's language, if it can be written in another than its own."""
    return text.shown(translate, show) if isinstance(text, Text) else show(text, text)


def predicate(text: Text, subjects: List[str], ranks: Text, translate: Translate, show: Show = as_it_is) -> str:
    """Return a text in a reader's language without the ranks at its begin, if they are one of `subjects`.

    The page has named `ranks` there: {who:waits|wait} goes by their number.
    """
    template = translate(text.template)
    for place, subject in _SUBJECTS.items():
        for sign in _SIGNS:
            begins_so = template.startswith(subject + sign) and str(text.values.get(place)) in subjects
            if begins_so:
                values = {**text.values, place: ranks}
                return _filled(template[len(subject + sign) :], values, translate, show)
    return text.shown(translate, show)


def words_of_values(text: str) -> List[str]:
    """Return the English words of each value of a text, and of the texts that it names."""
    words: List[str] = []

    def note(_: Any, of_value: str) -> str:
        words.append(of_value)
        return of_value

    write(text, str, note)
    return words


def about(text: str, **values: Any) -> str:
    """Return a text with other values in the places that it, or a text inside it, has for them."""
    if not isinstance(text, Text):
        return text
    filled: Dict[str, Any] = {}
    for name, value in text.values.items():
        if isinstance(value, Items):
            filled[name] = value.of([about(item, **values) for item in value.items])
        else:
            filled[name] = values.get(name) or about(value, **values)
    return Text(text.template, filled)


def templates(value: Any) -> Iterator[str]:
    """Yield the template of a text, and those of the texts that it names."""
    if isinstance(value, Text):
        yield value.template
    for part in _parts(value):
        yield from templates(part)


def _parts(value: Any) -> Iterable[Any]:
    """Return what a text or a list names."""
    if isinstance(value, Text):
        return value.values.values()
    return value.items if isinstance(value, Items) else ()


def commands(value: Any) -> Iterator[str]:
    """Yield the commands that a text names, each as a shell takes it."""
    if isinstance(value, ShellCommand):
        yield str(value)
    for part in _parts(value):
        yield from commands(part)


def fact_of(text: str) -> Dict[str, Any]:
    """Return what a text says, as values by name; empty if it names nothing."""
    facts = text.fact() if isinstance(text, Text) else {}
    return facts if isinstance(facts, dict) else {"it": facts}


def forms(text: Text) -> Dict[str, str]:
    """Return what follows the colon in each named place of a text, by its name."""
    return {name: spec for _, name, spec in _parsed(text.template) if name is not None}


def _filled(template: str, values: Mapping[str, Any], translate: Translate, show: Show) -> str:
    parts = []
    for literal, name, spec in _parsed(template):
        parts.append(literal)
        if name is not None:
            parts.append(kinds.written(values[name], translate, spec, show))
    return "".join(parts) if translate is str else kinds.together(parts)


@lru_cache(maxsize=4096)
def _parsed(template: str) -> Tuple[Tuple[str, Any, str], ...]:
    return tuple((literal, name, spec or "") for literal, name, spec, _ in _FORMATTER.parse(template))
