"""Names of variables, options and fields whose values are secrets."""

import re
from typing import Any, Iterable, List, Optional

from ddp_probe.shared.mask_forms import MASK, Expression, mask_forms, perhaps_random, random_looking

# If a variable's or an option's name contains one of these words, its value is a secret.
_WORDS = frozenset(
    "key keys apikey token tokens secret secrets password passwords passwd passwds passphrase passcode pass pwd pw credential credentials cred creds"
    " auth authorization bearer cookie cookies signature sig jwt pat dsn private psk otp".split()
)
# Written together: authtoken, accesskey, dbpass, PGPASSWORD.
_GLUED = Expression(
    r"(?:tokens?|passwords?|passwd|passphrase|secrets?|credentials?|(?:api|access|secret|auth|private|account|license|ssh)keys?|(?<!com)(?<!by)pass|pwd)$"
)
_NOT_GLUED = frozenset("compass bypass encompass surpass trespass subtoken pretokens".split())
# If this is the last word, the value is about a secret but not one itself.
_ABOUT = frozenset(
    "file files path paths dir folder name names type types size sizes len length count"
    " counts num id ids index limit dim error exception warning ratio".split()
)
_FOLDERS = ("PWD", "OLDPWD")  # The shell's working directories.
# In prose these words alone are too common: "key: conv1.weight", "private: no", "pass = 2".
_COMMON = frozenset("key keys pass private sig pat signature pwd pw dsn token tokens auth otp".split())
_KEY_OF = frozenset(
    "api access secret private auth encryption signing ssh account service master wandb license client app user db hf bot refresh id".split()
)
_PLURAL = Expression(r"(?:tokens|keys|secrets|passwords|passwds|credentials|creds|cookies)$", re.I)

_WORD = Expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _words(name: str) -> List[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _glued(word: str) -> bool:
    return word not in _NOT_GLUED and word not in _WORDS and _GLUED.search(word) is not None


def secret_name(name: str) -> bool:
    """Return whether the value of a variable or option of this name is a secret."""
    words = _words(name[-200:])
    if not words or name in _FOLDERS or words[-1] in _ABOUT:
        return False
    return any(word in _WORDS or _glued(word) for word in words)


def secret_in_text(name: str) -> bool:
    """Return the same for a name in prose, where a single common word is not enough."""
    if name.startswith("-"):
        return secret_name(name)
    words = _words(name[-200:])
    if not words or words[-1] in _ABOUT or name in _FOLDERS:  # "KeyError: 'conv1'" contains no secret
        return False
    if words[-1] in ("token", "auth") or (len(words) > 1 and words[-1] == "tokens" and words[-2] in _KEY_OF):
        return True
    if words == ["tokens"] or name == "KEY":
        return True  # Numbers and other words are not secrets: "tokens=512".
    if words[-1] in _COMMON and (name == "Pwd" or (len(words) > 1 and (words[-2] in _KEY_OF or words[-1] in ("pass", "pwd", "pw")))):
        return True
    return any((word in _WORDS and word not in _COMMON) or _glued(word) for word in words)


def perhaps_secret(name: str) -> bool:
    """Return whether a name is like airtable_key or mapKey, so that its value decides."""
    words = _words(name[-200:])
    return len(words) > 1 and words[-1] in _COMMON


def names_several(name: str) -> bool:
    """Return whether an option of this name may take several values."""
    return _PLURAL.search(name) is not None


# Masks credentials in text, command lines and names, so that logs can be shared.

__all__ = ["MASK", "mask", "mask_argv", "mask_value", "masked", "secret_name"]

_ARGUMENTS = 200
_CHARACTERS = 1000

_LIST = Expression(r"[\[({]\s*(?=['\"])[^\])}]*[\])}]?")
_VALUE = Expression(r"\"[^\"]*\"?|'[^']*'?|[^\s'\"]+")
_GLANCE = 128  # Maximum characters of a value that are checked, so that a text with a thousand names stays cheap.
_NAME = Expression(r"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)(['\"]?\]?\s*(?:=>|[=:\uff1a\uff1d])\s*(?!//)|(?<=\w)\s+(?!-))(?=\S)")
# "Incorrect API key provided: X", "Password 'X' rejected", "token X is invalid".
_SAID = Expression(
    r"\b((?:api|access|secret|private|auth)[ _-]?key|password|passwd|passphrase|passcode|secret|token|credentials?)"
    r"((?:[ \t]+[A-Za-z]+(?=[ \t:=\uff1a])){0,3}[ \t]*[:=\uff1a]?[ \t]*)(\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|[^\s'\"`,;()<>\[\]{}]{8,})",
    re.I,
)
# Most texts are names of backends, devices, classes and files: one search is enough for them.
_SUSPECT = re.compile(r"[=:\uff1a\uff1d]| -|(?i:pass|secret|token|key|credential)")
_PLAIN_VALUE = Expression(
    r"['\"]?(?:none|null|true|false|yes|no|auto|on|off|[-+]?[0-9][0-9_.,]{0,6}(?:e-?[0-9]{1,3}|[kmgt]b?)?)['\"]?[,;)\]}]*$",
    re.I,
)
_PATH = Expression(r"['\"]?(?:/|\.{1,2}/|~/)[\w.@%+-]+(?: [\w.@%+-]+)*(?:/[\w.@%+-]+(?: [\w.@%+-]+)*)+['\"]?$")  # "my clone" has a space
_USER = Expression(r"((?:-u|--(?:[\w-]+-)?user(?:name)?)=[^\s:=/]+:)\S")
_GLUED_PASSWORD = Expression(r"-p(?=\S*\d)(?=\S*[A-Za-z])(?!y\d|ython)[^\s=]{6,}$")
_NAMES_A_VERSION = Expression(
    r"(?:commit|sha\d*|hash|digest|rev|revision|version|checksum|md5|uuid|id|fingerprint|etag|build)['\"]?\]?\s*[=:\uff1a]?\s*$",
    re.I,
)


def _harmless(name: str, value: str) -> bool:
    """Return whether a value is a number, a switch or a path, which may follow a secret's name too: --max_tokens 512, --private-key ~/.ssh/id."""
    return _PLAIN_VALUE.match(value) is not None or (_PATH.match(value) is not None and "pass" not in name.lower())


def _hidden(value: str) -> str:
    quote = value[0] if value[:1] in "'\"`" else ""
    return quote + MASK + (quote if value[1:].endswith(quote) else "")


def _mask_named(text: str) -> str:
    """Mask the values of name=value, name: value and --name value if the name is a secret's, or the value looks like one."""
    shown, done = [], 0
    for match in _NAME.finditer(text):
        option, joined = match.group(1).startswith("-"), match.group(2).strip()
        if match.start() < done or not (option or joined):
            continue
        found = _value_at(text, match.end(), match.end() + _GLANCE)
        if found is None or found.group(0).startswith(MASK) or not _is_secret(match.group(1), joined, found.group(0)):
            continue
        found = _value_at(text, match.end(), len(text)) or found
        shown += [text[done : match.end()], _hidden(found.group(0))]
        done = found.end()
    return "".join(shown) + text[done:]


def _value_at(text: str, start: int, end: int) -> "Optional[re.Match[str]]":
    return _LIST.match(text, start, end) or _VALUE.match(text, start, end)


def _is_secret(name: str, joined: str, value: str) -> bool:
    if secret_in_text(name):
        return not _harmless(name, value)
    if perhaps_secret(name) and perhaps_random(value) and "/" not in value and "." not in value:
        return True
    return bool(joined) and _NAMES_A_VERSION.search(name) is None and "://" not in value and "/" not in value and random_looking(value)


def _mask_said(text: str) -> str:
    """Mask a credential quoted in an error message."""

    def hide(match: "re.Match[str]") -> str:
        kind, between, value = match.groups()
        quoted = value[0] in "'\"`"
        bare = value.strip("'\"`.")
        word = kind.lower()
        mixed = any(c.isdigit() for c in bare) or (quoted and word.startswith("pass"))
        explicit = quoted or between.strip() in ("", ":", "=", "\uff1a") or ":" in between or word.startswith("pass") or random_looking(bare)
        certain = explicit and mixed and len(bare) >= 6
        return kind + between + (_hidden(value) if certain and not _harmless(kind, value) else value)

    return _SAID.sub(hide, text)


def mask(text: str) -> str:
    """Return the text with everything that looks like a credential replaced by ***."""
    text = mask_forms(text)
    if not _SUSPECT.search(text):
        return text
    return _mask_said(_mask_named(text))


def masked(text: str, limit: int) -> str:
    """Return the masked beginning of a text of any length, at most `limit` characters."""
    head = text[: 4 * limit + 1000]
    cut = len(head) < len(text)
    if cut:  # half a secret may not be recognised: omit the word that was cut
        end = max(head.rfind(" "), head.rfind("\n"))
        head = head[:end] if end > limit else head
    head = mask(head)
    return head[: max(limit - 3, 0)] + "..." if cut or len(head) > limit else head


def mask_value(name: str, value: str) -> str:
    """Return the value of a variable, an option or a field of this name with credentials masked."""
    if secret_name(name) and value and not _harmless(name, value):
        return MASK
    return mask(value)


class _CommandLine:
    """Reads a command line item by item: the meaning of an item depends on the previous one."""

    def __init__(self) -> None:
        self._option = ""  # The option, or the dotted name after --set, whose value comes next.
        self._secret = False
        self._login = False
        self._sshpass = False

    def shown(self, text: str) -> str:
        """Return an item as it may be logged."""
        if self._secret and not text.startswith("--"):
            self._secret = names_several(self._option)
            return text if _harmless(self._option, text) else MASK
        option, self._option = self._option, text if text.startswith("-") and "=" not in text and " " not in text else ""
        self._secret = bool(self._option) and secret_name(self._option)
        if not self._option and all(one.isalnum() or one in "._-" for one in text) and option[:1] == "-" and secret_in_text(text):
            self._option, self._secret = text, True  # --set db.password X
            return text
        hidden = self._hide(option, text)
        self._login = text == "login" or (self._login and text.startswith("-"))
        self._sshpass = text.endswith("sshpass") or (self._sshpass and text.startswith("-"))
        return masked(text, _CHARACTERS) if hidden is None else hidden

    def _hide(self, option: str, text: str) -> Optional[str]:
        """Return the masked form of an item that is a secret by its position or its form; None if it is not."""
        given = text if "=" in text else option + "=" + text
        user = given.startswith("-") and _USER.match(given)
        if user:
            return (user.group(1) if "=" in text else user.group(1).partition("=")[2]) + MASK
        if self._sshpass and (option == "-p" or text.startswith("-p")):
            return MASK if option == "-p" else text if text == "-p" else "-p" + MASK
        if option in ("-p", "-P", "-pw") and not _harmless("", text) and "/" not in text and "=" not in text and ":" not in text:
            return MASK
        if text.startswith("-p") and _GLUED_PASSWORD.match(text):
            return "-p" + MASK
        if self._login and not text.startswith("-") and len(text) >= 12 and "." not in text:
            return MASK
        if text.startswith("-") or "=" in text or "/" in text or " " in text or _NAMES_A_VERSION.search(option) or not random_looking(text):
            return None
        return MASK


def mask_argv(argv: Iterable[Any]) -> List[str]:
    """Return a command line with secrets masked, also if option and value are two items."""
    line = _CommandLine()
    items = list(argv)[:_ARGUMENTS]
    return [line.shown(str.__str__(item)) if issubclass(type(item), str) else "<%s>" % type(item).__name__ for item in items]
