"""Names of variables, options and fields whose values are secrets."""

import re
from typing import List

from ddp_probe.shared.masking.expression import Expression

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
