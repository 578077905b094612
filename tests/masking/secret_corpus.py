"""A corpus of secrets: the forms of vendors' keys and the places of passwords, each with values made at random, in the texts that carry them."""

import json
import random
import re
import shlex
import string
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from ddp_probe.shared.masks import mask, mask_argv

HERE = Path(__file__).resolve().parent
_LETTERS = {
    "any": string.ascii_letters + string.digits,
    "word": string.ascii_letters + string.digits + "_-",
    "hex": "0123456789abcdef",
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "dig": string.digits,
    "let": string.ascii_letters,
}
_RANDOM = re.compile(r"<(any|word|hex|low|up|b64|dig|let) (\d+)>")
_WINDOW = 8  # This many characters of a secret in a row are a leak.


class Planted(NamedTuple):
    """A text with a secret in it, as a log or a command line carries it."""

    kind: str
    carrier: str
    text: str
    shown: Callable[[], str]  # The text, masked.
    secret: Tuple[str, ...]  # Its random parts.

    def leaks(self) -> bool:
        """Return whether a part of the secret can be read in the masked text."""
        masked = self.shown()
        return any(part[at : at + _WINDOW] in masked for part in self.secret for at in range(max(1, len(part) - _WINDOW + 1)))


def _random(rng: random.Random, letters: str, length: int) -> str:
    return "".join(rng.choice(_LETTERS[letters]) for _ in range(length))


def _made(form: str, rng: random.Random) -> Tuple[str, Tuple[str, ...]]:
    """Return a value of this form, and its random parts, of which the short ones tell nothing."""
    parts: List[str] = []

    def fill(match: "re.Match[str]") -> str:
        parts.append(_random(rng, match.group(1), int(match.group(2))))
        return parts[-1]

    value = _RANDOM.sub(fill, form)
    longest = max(map(len, parts))
    return value, tuple(part for part in parts if len(part) >= min(_WINDOW, longest))


def _rows(name: str) -> Iterator[List[str]]:
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield [part.strip() for part in line.split(" | ")]


def _argv(argv: List[str]) -> Callable[[], str]:
    return lambda: "\0".join(mask_argv(argv))


def _text(text: str) -> Callable[[], str]:
    return lambda: mask(text)


def _texts_of_a_key(name: str, value: str, plain: bool) -> Dict[str, str]:
    """Return the texts that carry a key with a name; what has a vendor's form needs none."""
    low = name.lower()
    texts = {
        "environment": "export %s=%s" % (name, value),
        "address": "GET https://api.example.org/v1/jobs?page=2&%s=%s failed" % (low, value),
        "JSON": json.dumps({"lr": 0.1, low: value, "epochs": 3}),
        "call": "client = Client(%s='%s', timeout=3)" % (low, value),
        "YAML": "%s: %s" % (low, value),
        "header": "> X-%s: %s" % (name.title().replace("_", "-"), value),
        "log": "2030-01-02 03:04:05 ERROR client: %s: %s was refused" % (name, value),
    }
    if plain:
        texts["log"] = "2030-01-02 03:04:05 ERROR client: 401 for %s from api.example.org" % value
        texts["bearer"] = "{'Authorization': 'Bearer %s'}" % value
        texts["note"] = "using '%s'." % value
    return texts


def keys(seed: int) -> Iterator[Planted]:
    """Yield every vendor's key in every text that carries it."""
    for kind, name, form in _rows("secret_kinds.txt"):
        plain = not form.startswith("!")
        value, secret = _made(form.lstrip("! "), random.Random("%d %s" % (seed, kind)))
        for carrier, text in _texts_of_a_key(name, value, plain).items():
            yield Planted(kind, carrier, text, _text(text), secret)
        option = "--" + name.lower().replace("_", "-")
        lines = [["train.py", option, value, "--lr", "0.1"], ["train.py", "%s=%s" % (option, value), "--lr", "0.1"]]
        if plain:
            lines.append(["train.py", "run", value, "--lr", "0.1"])
        for number, argv in enumerate(lines):
            yield Planted(kind, "argv %d" % number, " ".join(argv), _argv(argv), secret)


def _passwords(rng: random.Random, command: bool) -> Iterator[str]:
    yield _random(rng, "low", 9) + "7" + _random(rng, "any", 4)
    yield "%s!%s%%%s_%s" % (_random(rng, "any", 5), _random(rng, "dig", 3), _random(rng, "any", 4), _random(rng, "up", 2))
    if command:
        yield "".join(rng.choice(string.ascii_lowercase) for _ in range(12))


def _unescaped(text: str) -> str:
    return text.replace("\\x1b", "\x1b").replace("\\\\n", "\0").replace("\\n", "\n").replace("\0", "\\n")


def places(seed: int) -> Iterator[Planted]:
    """Yield every place in every text that carries it."""
    for sort, place in _rows("secret_places.txt"):
        rng = random.Random("%d %s" % (seed, place))
        for password in _passwords(rng, sort == "command"):
            filled, _ = _made(place, rng) if _RANDOM.search(place) else (place, ())
            text = _unescaped(filled.replace("{}", password))
            yield from (_of_a_command if sort == "command" else _of_a_text)(place, text, password)


def _of_a_command(place: str, text: str, password: str) -> Iterator[Planted]:
    argv = shlex.split(text)
    error = "subprocess.CalledProcessError: Command '%s' returned non-zero exit status 1." % argv
    lists = {"argv": argv, "bash -c": ["bash", "-c", text]}
    texts = {"text": "running: " + text, "trace": "+ " + text, "error": error}
    for carrier, line in lists.items():
        yield Planted(place, carrier, text, _argv(line), (password,))
    for carrier, line in texts.items():
        yield Planted(place, carrier, line, _text(line), (password,))


def _of_a_text(place: str, text: str, password: str) -> Iterator[Planted]:
    texts = {
        "line": text,
        "log": "[rank0]: " + text,
        "message": "ValueError: request failed: " + text,
        "JSON": json.dumps({"message": text}, ensure_ascii=False),
    }
    for carrier, line in texts.items():
        yield Planted(place, carrier, line, _text(line), (password,))


def ordinary() -> List[str]:
    """Return lines that tools and libraries print, none of which holds a secret."""
    lines = (HERE / "ordinary_lines.txt").read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("#: ")]
