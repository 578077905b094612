"""Whether a name is that of a secret, and whether a value looks like one: both are asked where only the name tells that a value may be a secret."""

import re
from typing import List

from ddp_probe.shared.mask_forms import MASK, Expression, random_looking

# If a variable's or an option's name contains one of these words, its value is a secret.
_WORDS = frozenset(
    "key keys apikey token tokens secret secrets password passwords passwd passwds passphrase passcode pass"
    " pwd pw credential credentials cred creds auth authorization bearer cookie cookies signature sig jwt pat"
    " dsn private psk otp".split()
)
# Written together: authtoken, accesskey, dbpass, PGPASSWORD.
_GLUED = Expression(
    r"(?:tokens?|passwords?|passwd|passphrase|secrets?|credentials?"
    r"|(?:api|access|secret|auth|private|account|license|ssh)keys?|(?<!com)(?<!by)pass|pwd)$"
)
_NOT_GLUED = frozenset("compass bypass encompass surpass trespass subtoken pretokens".split())
# If this is the last word, the value is about a secret but not one itself.
_ABOUT = frozenset(
    "file files path paths dir folder name names type types size sizes len length count counts num id ids index"
    " limit dim error exception warning ratio stdin stdout prompt expression field policy required"
    " c cc cpp cu h py pt pth json yaml yml txt md toml cfg ini so log crt com org".split()
)
_FOLDERS = ("PWD", "OLDPWD")  # The shell's working directories.
_CERTAIN = frozenset(
    "apikey secret secrets password passwords passwd passwds passphrase passcode pwd credential credentials cred"
    " creds authorization bearer jwt psk".split()
)
# Alone these words say little: "key: conv1.weight", "pad_token: <pad>", "License: MIT", "pass = 2".
_COMMON = frozenset("key keys token tokens pass auth pw private cookie cookies signature sig pat dsn otp license licence ak sk".split())
_KEY_OF = frozenset(
    "api access secret private auth encryption signing ssh account service master wandb client app user db hf bot"
    " refresh id bearer session login github gh gitlab slack registry webhook hub".split()
)
_PLURAL = Expression(r"(?:tokens|keys|secrets|passwords|passwds|credentials|creds|cookies)$", re.I)

_WORD = Expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# How far a name says that its value is a secret; if it says PERHAPS, the value decides.
NOT, PERHAPS, CERTAIN = 0, 1, 2


def _words(name: str) -> List[str]:
    return [word.lower() for word in _WORD.findall(name[-200:])]


def _glued(word: str) -> bool:
    return word not in _NOT_GLUED and word not in _WORDS and _GLUED.search(word) is not None


def secret_name(name: str) -> bool:
    """Return whether the value of a variable or option of this name is a secret."""
    words = _words(name)
    if not words or name in _FOLDERS or words[-1] in _ABOUT:
        return False
    return any(word in _WORDS or _glued(word) for word in words)


def certainty(name: str) -> int:
    """Return how far a name in a text says that its value is a secret."""
    words = _words(name)
    if not words or name in _FOLDERS or words[-1] in _ABOUT:  # "KeyError: 'conv1'" contains no secret
        return NOT
    last = words[-1]
    if last in _CERTAIN or _glued(last) or (len(words) > 1 and _certain_after(words[-2], last)):
        return CERTAIN
    if last in _COMMON or any(word in _CERTAIN or word == "token" or _glued(word) for word in words):
        return PERHAPS
    return NOT


def _certain_after(before: str, last: str) -> bool:
    if last in ("pass", "pw"):
        return True
    return last in ("key", "keys", "token", "tokens", "auth", "license") and before in _KEY_OF


def certainty_of_option(name: str) -> int:
    """Return the same for an option of a command, in which a common word stands for itself: --token, --auth."""
    if name.startswith("-D"):  # A macro, or a property of Java.
        return certainty(name[2:])
    words = _words(name)
    if len(words) == 1 and words[0] in _COMMON and words[0] not in ("license", "licence"):
        return CERTAIN
    known = certainty(name)
    return known if known is not NOT or not secret_name(name) else PERHAPS


def names_several(name: str) -> bool:
    """Return whether an option of this name may take several values."""
    return _PLURAL.search(name) is not None


_PLAIN = Expression(
    r"['\"`]*(?:none|null|nil|true|false|yes|no|auto|on|off|~|\*+|\.{3}|[-+]?[0-9][0-9_.,]{0,6}(?:e-?[0-9]{1,3}|[kmgt]b?)?)?"
    r"['\"`]*[,;:.)\]}]*$",
    re.I,
)
_PATH = Expression(
    r"['\"]?(?:/|\.{1,2}/|~/)[\w.@%+-]+(?: [\w.@%+-]+)*(?:/[\w.@%+-]+(?: [\w.@%+-]+)*)+['\"]?$"  # "my clone" has a space
)
# What stands for a value: <token>, [your_key], ${HF_TOKEN}, $PASS, %(key)s, {key}.
_STANDS_FOR = Expression(r"['\"`]*(?:<[^<>]*>|\[[A-Za-z_ ]+\]|\$\{?\w+\}?|\$\([^()]*\)|%\(\w+\)s|%s|\{\w*\}|<?\|\w*\|?>?)['\"`]*[,;:.)\]}]*$")
# What a message says of a secret instead of the secret.
_STATE = frozenset(
    "required missing empty invalid incorrect wrong expired accepted rejected denied unset undefined unbound disabled"
    " enabled ok failed failure success valid unknown unsupported deprecated optional mandatory hidden redacted masked"
    " falsch ungültig fehlt obligatoire incorrect invalide manquant requis incorrecta obligatorio vacía"
    " not is str int bool bytes float string object optional[str] str|none unauthorized needed".split()
)


def harmless(name: str, value: str) -> bool:
    """Return whether a value is a number, a switch, a path or a placeholder, which may follow a secret's name too."""
    if _PLAIN.match(value) is not None or _STANDS_FOR.match(value) is not None:
        return True
    if _PATH.match(value) is not None and "pass" not in name.lower():
        return True
    word = value.strip("'\"`,;:()[]{}<>").rpartition(".")[2].lower()  # password=args.password, --token TOKEN
    return word == name.lstrip("-").lower() or (len(value) < 40 and value.isupper() and word in _words(name))


def says_a_state(value: str) -> bool:
    """Return whether a word after a secret's name tells something about it: "password: required"."""
    return value.strip("'\"`.,;:()[]{}!").lower() in _STATE


_PARTS = Expression(r"[A-Za-z0-9]+")
_NUMBERED = Expression(r"(?:[A-Za-z]*|[0-9]+|[A-Za-z]{1,8}[0-9]{1,4}|[vV]?[0-9]{1,3}[a-z]{0,3}[0-9]{0,2})$")
_PUNCTUATION = frozenset("!#$%^&*+=?~@")
_FEWEST = 6


def looks_secret(value: str) -> bool:
    """Return whether a value mixes letters and digits as words, names, versions and numbered things do not."""
    value = value.strip("'\"`,;()[]{}<>").partition("&")[0]  # sig=X&se=2030
    if len(value) < _FEWEST or value.startswith(MASK) or "::" in value or not _mixes(value):
        return False
    words = _PARTS.findall(value)
    if any(_NUMBERED.match(word) is None for word in words):
        return True
    return len(value) >= 8 and len(words) < 5 and any(letter in _PUNCTUATION for letter in value[1:]) and "=" not in value[:-2]


def common_secret(value: str) -> bool:
    """Return whether the value of a common name, such as token or key, is a secret."""
    if value[:1] in "[({" and "," in value:  # Tokens of a text.
        return False
    return looks_secret(value) and ("/" not in value or random_looking(value))


def _mixes(value: str) -> bool:
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)
