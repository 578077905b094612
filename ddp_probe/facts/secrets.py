"""Masks what nobody wants in a log that is sent to somebody else: credentials in text, in command lines, in names."""

import re
from typing import Any, Iterable, List, Pattern, Tuple

MASK = "***"
_ARGUMENTS = 200
_CHARACTERS = 1000

# One of these as a word of a variable's or an option's name makes its value a secret.
_WORDS = frozenset(
    "key keys apikey token secret secrets password passwords passwd passphrase passcode pass pwd credential credentials cred creds"
    " auth authorization bearer cookie cookies signature sig jwt pat dsn private".split()
)
# In running text these words are too common to go by: "key: conv1.weight", "private: no", "pass = 2".
_COMMON = frozenset(("key", "keys", "pass", "private", "sig", "pat", "signature", "pwd", "dsn"))
_KEY_OF = frozenset("api access secret private auth encryption signing ssh account service master wandb license client app".split())

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_END = r"[^\s'\"<>|;,&)\]}]"
_KNOWN: Tuple[Tuple[Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), MASK),
    (re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/'\"]+@"), r"\1" + MASK + "@"),
    (re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s?#'\"]*)[?#][^\s'\"<>]+"), r"\1?" + MASK),
    (re.compile(r"\?(?=[^\s'\"?]*=|[\w%+/.~-]{16})[^\s'\"<>]+"), "?" + MASK),
    (re.compile(r"\bhf_(?:(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6,}|[a-z]{20,})"), MASK),
    (re.compile(r"\b(?:gh[pousr]|github_pat|glpat|npm|xox[a-z]|pypi|dckr_pat)[_-][A-Za-z0-9_-]{6,}"), MASK),
    (re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{8,}"), MASK),
    (re.compile(r"\bsk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{12,}"), MASK),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{20,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,2}"), MASK),
    (re.compile(r"\b((?:proxy-)?authorization['\"]?\s*[:=]\s*)(?:['\"]?)(?:(?:bearer|basic|token|digest)\s+)?%s+" % _END, re.I), r"\1" + MASK),
    (re.compile(r"\b(bearer\s+)(?!\*)[A-Za-z0-9._~+/=-]{6,}", re.I), r"\1" + MASK),
)
_VALUE = re.compile(r"\"[^\"]*\"?|'[^']*'?|[^\s'\"]+")
_NAME = re.compile(r"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)(['\"]?\s*[=:]\s*(?!//)|(?<=\w)\s+(?!-))(?=\S)")
# Most texts are names of backends, devices and classes: one look spares them the rest.
_SUSPECT = re.compile(r"[?@=:-]|hf_|gh[pousr]_|github_pat|npm_|xox|pypi|dckr|A[KSBC][IC]A|AIza|eyJ|bearer", re.I)


def _words(name: str) -> List[str]:
    return [word.lower() for word in _WORD.findall(name)]


def secret_name(name: str) -> bool:
    """Tell whether a variable or option of this name holds a secret."""
    words = _words(name[:200])
    if words == ["pwd"]:  # the shell's working directory
        return False
    return any(word in _WORDS for word in words)


def _secret_in_text(name: str) -> bool:
    if name.startswith("-"):
        return secret_name(name)
    words = _words(name[:200])
    if not words or words[-1] in ("error", "exception", "warning"):  # "KeyError: 'conv1'" tells no secret
        return False
    if len(words) > 1 and words[-1] in _COMMON:
        return words[-2] in _KEY_OF or words[-1] in ("pass", "pwd")
    return any(word in _WORDS and word not in _COMMON for word in words)


def _hidden(value: str) -> str:
    quote = value[0] if value[:1] in "'\"" else ""
    return quote + MASK + (quote if value[1:].endswith(quote) else "")


def _mask_named(text: str) -> str:
    """Mask the values of name=value, name: value and --name value where the name says that it is a secret."""
    shown, done = [], 0
    for match in _NAME.finditer(text):
        option = match.group(1).startswith("-")
        if match.start() < done or not (option or match.group(2).strip()) or not _secret_in_text(match.group(1)):
            continue
        value = _VALUE.match(text, match.end())
        if value and not value.group(0).startswith(MASK):
            shown += [text[done : match.end()], _hidden(value.group(0))]
            done = value.end()
    return "".join(shown) + text[done:]


def mask(text: str) -> str:
    """Return the text with what looks like a credential replaced by ***."""
    if not _SUSPECT.search(text):
        return text
    for pattern, instead in _KNOWN:
        text = pattern.sub(instead, text)
    return _mask_named(text)


def masked(text: str, limit: int) -> str:
    """Return the masked beginning of a text of any length, at most `limit` characters."""
    head = text[: 4 * limit + 1000]
    cut = len(head) < len(text)
    if cut:  # half a secret may not be known as one: leave out the word that was cut
        end = max(head.rfind(" "), head.rfind("\n"))
        head = head[:end] if end > limit else head
    head = mask(head)
    return head[: max(limit - 3, 0)] + "..." if cut or len(head) > limit else head


def mask_argv(argv: Iterable[Any]) -> List[str]:
    """Return a command line, secrets masked: also where option and value are two items."""
    shown: List[str] = []
    value_is_secret = False
    for item in list(argv)[:_ARGUMENTS]:
        if not issubclass(type(item), str):
            shown.append("<%s>" % type(item).__name__)
            value_is_secret = False
            continue
        text = str.__str__(item)
        hidden = value_is_secret and not text.startswith("--")
        shown.append(MASK if hidden else masked(text, _CHARACTERS))
        value_is_secret = text.startswith("-") and "=" not in text and " " not in text and secret_name(text)
    return shown
