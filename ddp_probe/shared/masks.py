"""Masks credentials in text, command lines and names, so that logs can be shared.

A value is masked for what it is (mask_forms), for its place in a command line (mask_commands), or for its name (mask_names).
"""

import re
from typing import Any, Iterable, List, Optional, Tuple

from ddp_probe.shared.mask_commands import NAMES, CommandLine
from ddp_probe.shared.mask_forms import MASK, Expression, mask_forms, random_looking
from ddp_probe.shared.mask_names import (
    CERTAIN,
    NOT,
    PERHAPS,
    certainty,
    certainty_of_option,
    common_secret,
    harmless,
    looks_secret,
    says_a_state,
    secret_name,
)

__all__ = ["MASK", "mask", "mask_argv", "mask_value", "masked", "secret_name"]

_ARGUMENTS = 200
_CHARACTERS = 1000
_TOKENS_OF_TEXTS = frozenset("pad cls mask sep unk bos eos pos dist start end special next stop image audio video num max last first".split())
_GLANCE = 128  # Maximum characters of a value that are checked, so that a text with a thousand names stays cheap.

_LIST = Expression(r"[\[({]\s*(?=['\"])[^\])}]*[\])}]?")
# In a text that is itself a string of JSON, a quotation mark follows a backslash.
_VALUE = Expression(r"\\{1,2}\"[^\"\\]*(?:\\{1,2}\")?|\"[^\"]*\"?|'[^']*'?|[^\s'\"]+")
_NAME = Expression(
    r"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)"
    r"(\\{0,2}['\"]?\]?[ \t]*(?:=>|:=|==|[=:\uff1a\uff1d])[ \t]*(?!//)"  # name=value, name: value, {'name': value}
    r"|\\{0,2}['\"][ \t]*,[ \t]*(?=\\{0,2}['\"])"  # setdefault('name', 'value'), ['--name', 'value']
    r"|(?<=\w)[ \t]+(?!-))(?=\S)"  # --name value
)
_METAVARIABLE = Expression(r"[A-Z_]+(?:=[A-Z_]+)?[\],]*$")  # In a page of help: --key KEY=VALUE
_QUOTES = "'\"`\\"
_ENDS = Expression(r"[ \t]*(?:$|[\r\n,;)}\]#'\"])")
# Most texts are names of backends, devices, classes and files: one search is enough for them.
_SUSPECT = re.compile(r"[=:\uff1a\uff1d]| -|(?i:pass|secret|token|key|cred|auth|pwd)")
_NAMES_A_VERSION = Expression(
    r"(?:commit|sha\d*|hash|digest|rev|revision|version|checksum|md5|uuid|id|fingerprint|etag|build)['\"]?\]?\s*[=:\uff1a]?\s*$",
    re.I,
)


def _mask_named(text: str) -> str:
    """Mask the values of name=value, name: value and --name value if name and value are those of a secret."""
    shown, done = [], 0
    for match in _NAME.finditer(text):
        name, joined = match.group(1), match.group(2).strip(" \t'\"]\\")
        if match.start() < done or not (name.startswith("-") or joined):
            continue
        value = _value_at(text, match.end(), match.end() + _GLANCE)
        if value is None or value.group(0).strip(_QUOTES).startswith(MASK):
            continue
        sure = certainty_of_option(name) if name.startswith("-") else certainty(name)
        if joined[:1] == ":" and text[max(match.start() - 1, 0)] == "/":  # "/etc/passwd: Not a directory"
            sure = NOT
        if not _is_secret(sure, name, joined, value, text[match.end() - 1] == "="):
            continue
        value = _value_at(text, match.end(), len(text)) or value
        shown += [text[done : match.end()], _hidden(value.group(0))]
        done = value.end()
    return "".join(shown) + text[done:]


def _value_at(text: str, start: int, end: int) -> "Optional[re.Match[str]]":
    return _LIST.match(text, start, end) or _VALUE.match(text, start, end)


def _hidden(value: str) -> str:
    lead = value[: len(value) - len(value.lstrip("\\"))]
    quote = value[len(lead) : len(lead) + 1]
    if not quote or quote not in "'\"`":
        return MASK
    return lead + quote + MASK + (lead + quote if value[len(lead) + 1 :].endswith(quote) else "")


def _is_secret(sure: int, name: str, joined: str, found: "re.Match[str]", tight: bool) -> bool:
    """Return whether a value is a secret, from how sure its name is, from what joins the two, and from the value."""
    value = found.group(0)
    if sure and (harmless(name, value) or (not joined and _METAVARIABLE.match(value))):
        return False
    if sure == CERTAIN:
        return _of_a_certain_name(name, joined, found)
    if sure == PERHAPS and (common_secret(value) or (tight and joined == "=" and _is_a_token(name))):
        return True
    if not joined or joined == "," or "/" in value or "://" in value:
        return False
    return _NAMES_A_VERSION.search(name) is None and random_looking(value)


def _of_a_certain_name(name: str, joined: str, found: "re.Match[str]") -> bool:
    value = found.group(0)
    if looks_secret(value):
        return True
    if joined == "," and not name.startswith("-"):  # A list of words, in which one is "password".
        return False
    if not joined.startswith((":", "\uff1a")) or value[0] in "'\"\\[({":
        return not says_a_state(value)
    # "password: X" is a pair if nothing follows; "secret: copying a param" is a sentence.
    return _ENDS.match(found.string, found.end()) is not None and not says_a_state(value)


def _is_a_token(name: str) -> bool:
    """Return whether a name is that of a token that lets somebody in, as NPM_TOKEN and auth are, not of a token of a text."""
    words = name.lower().split("_")
    return words[-1] in ("token", "auth") and (len(words) == 1 or words[-2] not in _TOKENS_OF_TEXTS)


# "Incorrect API key provided: X", "Password 'X' rejected", "token X is invalid".
_SAID = Expression(
    r"\b(?<!syntax \()((?:api|access|secret|private|auth)[ _-]?key|pass ?phrase|password|passwd|passcode|secret|token|credentials?)"
    r"((?:[ \t]+[A-Za-z]+(?=[ \t:=\uff1a])){0,3}[ \t]*[ \t:=\uff1a][ \t]*)"
    r"(\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|[^\s'\"`,;()<>\[\]{}]{6,})",
    re.I,
)


def _mask_said(text: str) -> str:
    """Mask a credential quoted in an error message."""

    def hide(match: "re.Match[str]") -> str:
        kind, between, value = match.groups()
        bare = value.strip("'\"`.")
        quoted = value[0] in "'\"`" and kind.lower().startswith("pass") and " " not in bare and _mixes(bare)
        is_secret = (quoted or looks_secret(bare)) and "/" not in bare and not harmless(kind, value)
        return kind + between + (_hidden(value) if is_secret else value)

    return _SAID.sub(hide, text)


def _mixes(text: str) -> bool:
    return any(letter.isdigit() for letter in text) and any(letter.isalpha() for letter in text)


# As ssh and sudo ask: Enter passphrase for key '/home/bob/.ssh/id': X
_ASKED = Expression(r"\b((?:pass ?phrase|password)(?: for [^:\n]{1,200})?: ?)([^\s'\"]{4,})(?=[ \t]*(?:$|[\r\n'\"]))", re.I)
_ELEMENT = Expression(r"(<([\w.:-]{1,80})(?: [^<>]{0,200})?>)([^<>]{1,500})(?=</\2>)")
# <name>password</name><value>X</value>, {"name": "password", "value": "X"}, key="password" value="X"
_NAME_AND_VALUE = Expression(
    r"\b((?:name|key)\\{0,2}['\"]?(?:>|[ \t]*[:=])[ \t]*\\{0,2}['\"]?([\w.:-]{1,100})"
    r"\\{0,2}['\"]?(?:</(?:name|key)>)?(?:[\s,]|\\{1,2}n)*[<'\"\\]{0,3}value\\{0,2}['\"]?(?:>|[ \t]*[:=])[ \t]*\\{0,2}['\"]?)"
    r"([^\s'\"<>,}\\]+)",
    re.I,
)


def _mask_asked(text: str) -> str:
    return _ASKED.sub(_hide_answer, text)


def _hide_answer(match: "re.Match[str]") -> str:
    """Hide what follows a prompt; of a file with such a name, as in /x/password: Directory, only what looks like a secret."""
    in_path = match.string[max(match.start() - 1, 0) : match.start()] == "/"
    if _says_nothing(match[2]) or (in_path and not looks_secret(match[2])):
        return match[0]
    return match[1] + MASK


def _says_nothing(value: str) -> bool:
    return says_a_state(value) or harmless("", value)


def _hide_value(match: "re.Match[str]") -> str:
    """Hide the third group of a match, whose second is its name."""
    sure, value = certainty(match[2]), match[3]
    is_secret = looks_secret(value) or (sure == CERTAIN and not _says_nothing(value))
    return match[1] + MASK if sure and is_secret and not harmless(match[2], value) else match[0]


def _mask_elements(text: str) -> str:
    return _ELEMENT.sub(_hide_value, text)


_SPLIT = re.compile(r"[\s'\"/:,;=<>|&`(\[{]+")  # A program may stand directly behind a path: /job/run.sh:mysql -pX
_ITEM = Expression(r"\n|\"[^\"\n]*\"|'[^'\n]*'|[^\s'\"]+(?:\"[^\"\n]*\"|'[^'\n]*')?")
_PROGRAM = Expression(
    r"(?<![\w./-])['\"]?(?:[\w.-]*/(?:[\w.-]+/)*)?(?:%s)(?=['\",\s])" % "|".join(sorted(map(re.escape, NAMES), key=len, reverse=True))
)
_NEXT_COMMAND = frozenset(("\n", "|", "||", "&&", "&", ";"))


def _mask_commands(text: str) -> str:
    """Mask the secrets of command lines in a text: a line of a shell, or a list as Python prints it."""
    shown, done = [], 0
    program = _PROGRAM.search(text)
    while program is not None:
        line, begin, end = CommandLine(), program.start(), program.end()
        listed = program.group(0)[0] in "'\""
        if listed and text[end : end + 1].isspace():  # The quotation marks are around the line and not around the program.
            listed, begin = False, begin + 1
        for match in _ITEM.finditer(text, begin):
            end = match.end()
            if match.group(0) in _NEXT_COMMAND or (listed and match.group(0)[0] == "]"):
                break
            start, word = _bare(match)
            hidden = line.hidden(word, alone=_ENDS.match(text, end) is not None) if word else None
            if hidden is not None:
                shown += [text[done:start], hidden]
                done = start + len(word)
            if match.group(0)[-1] == ";":
                break
        program = _PROGRAM.search(text, end)
    return "".join(shown) + text[done:]


def _bare(match: "re.Match[str]") -> Tuple[int, str]:
    """Return where an item begins without its quotation marks and what is around it in a list, and the item."""
    item = match.group(0)
    if item[0] in "'\"":
        return match.start() + 1, item[1:-1]
    inner = item.lstrip("[(,")
    return match.end() - len(inner), inner.rstrip(",;")


_ANSI = Expression(r"(?:\x1b|\\(?:u001b|x1b|033|e))\[[0-9;]{0,20}m")


def mask(text: str) -> str:
    """Return the text with everything that looks like a credential replaced by ***."""
    if "[" not in text or not _ANSI.search(text):
        return _mask(text)
    plain = _ANSI.sub("", text)  # A colour may stand between a name and its value.
    shown = _mask(plain)
    return text if shown == plain else shown


def _mask(text: str) -> str:
    text = mask_forms(text)
    if " " in text and not NAMES.isdisjoint(_SPLIT.split(text)):
        text = _mask_commands(text)
    if not _SUSPECT.search(text):
        return text
    text = _mask_named(text)
    small = text.lower()
    if any(word in small for word in ("pass", "secret", "token", "key", "credential")):
        text = _mask_said(text)
    if "pass" in small:
        text = _mask_asked(text)
    if "</" in text:
        text = _mask_elements(text)
    return _NAME_AND_VALUE.sub(_hide_value, text) if "value" in text else text


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
    if secret_name(name) and value and not harmless(name, value):
        return MASK
    return mask(value)


def mask_argv(argv: Iterable[Any]) -> List[str]:
    """Return a command line with secrets masked, also if option and value are two items."""
    line, before, shown = CommandLine(), "", []
    for item in list(argv)[:_ARGUMENTS]:
        if not issubclass(type(item), str):
            shown.append("<%s>" % type(item).__name__)
            continue
        text = str.__str__(item)
        hidden = line.hidden(text)
        if hidden is None:
            hidden = MASK if _is_random(before, text) else masked(text, _CHARACTERS)
        shown.append(hidden)
        before = text
    return shown


def _is_random(before: str, text: str) -> bool:
    """Return whether an argument is a random word, and the option before it does not name a version."""
    if text.startswith("-") or "=" in text or "/" in text or " " in text or not random_looking(text):
        return False
    return not (before.startswith("-") and _NAMES_A_VERSION.search(before))
