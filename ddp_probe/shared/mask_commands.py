"""The options and words of programs after which a secret stands, and a reader of command lines that knows them.

The same reader takes a list of arguments, a line of a shell and a list that Python has printed.
"""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from ddp_probe.shared.mask_forms import MASK, Expression
from ddp_probe.shared.mask_names import (
    CERTAIN,
    NOT,
    PERHAPS,
    certainty_of_option,
    common_secret,
    harmless,
    looks_secret,
    names_several,
    says_a_state,
)

# PROGRAMS | options of which the next argument is a secret, "-p=" the rest of the same argument, "-u:" what follows a colon.
_OPTIONS = """
mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mariadb mariadb-dump | -p=
docker podman nerdctl buildah helm az oc crane oras | login -p
twine mongo mongosh mongodump mongorestore rabbitmqadmin cqlsh impala-shell | -p
sqlcmd bcp ipmitool zip unzip zipcloak | -P -P=
snmpwalk snmpget snmpset snmpbulkwalk | -A -X -c
ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami | -w
redis-cli | -a
openssl | -k -K -pass -passin -passout
ssh-keygen | -N -P
7z 7za 7zz rar unrar | -p=
gpg gpg2 | --passphrase
keytool jarsigner | -storepass -keypass
influx | -password
consul nomad vault | -token
sshpass | -p -p=
kubectl | --token
ssh scp sftp rsync |
curl | --oauth2-bearer --pass --proxy-pass
curl | -u: --user: -U: --proxy-user:
smbclient rpcclient | -U:
etcdctl | --user:
lftp | -u:
skopeo | --creds: --src-creds: --dest-creds:
gh | -b --body
"""
# PROGRAM WORDS | how many of the next arguments, options aside, come before the secret.
_WORDS_BEFORE = """
htpasswd -b | 2
htpasswd -nb | 1
htpasswd -nbB | 1
htpasswd -bn | 1
htpasswd -bB | 2
rabbitmqctl change_password | 1
rabbitmqctl add_user | 1
net user | 1
mc alias set | 3
rclone obscure | 0
vault login | 0
wandb login | 0
swanlab login | 0
poetry config | 1
npm config set | 1
aws configure set | 1
ngrok config add-authtoken | 0
ngrok authtoken | 0
nmcli password | 0
"""
# Of these, the argument before the secret has the name of a secret, too: poetry config pypi-token.pypi X.
_NAMED = frozenset(("poetry config", "npm config set", "aws configure set"))


class _Program(NamedTuple):
    """What a program does with its arguments."""

    next: FrozenSet[str]
    joined: Tuple[str, ...]
    after_colon: FrozenSet[str]
    needs: str  # A word that comes before its options mean this: docker run -p 8080:80.


def _programs() -> Dict[str, _Program]:
    table: Dict[str, _Program] = {}
    for row in _OPTIONS.strip().splitlines():
        names, _, options = row.partition(" |")
        words = options.split()
        for name in names.split():
            old = table.get(name, _Program(frozenset(), (), frozenset(), ""))
            table[name] = _Program(
                old.next | {word for word in words if word.startswith("-") and word[-1] not in ":="},
                old.joined + tuple(word[:-1] for word in words if word.endswith("=")),
                old.after_colon | {word[:-1] for word in words if word.endswith(":")},
                " ".join(word for word in words if not word.startswith("-")),
            )
    return table


_TABLE: Dict[str, _Program] = {}
_PLACES: Dict[str, List[Tuple[List[str], int, bool]]] = {}
_UNKNOWN = _Program(frozenset(), (), frozenset(), "")


def _load() -> None:
    """Make the tables once they are needed."""
    for row in _WORDS_BEFORE.strip().splitlines():
        words, _, count = row.partition(" |")
        program, *rest = words.split()
        _PLACES.setdefault(program, []).append((rest, int(count), words in _NAMED))
    _TABLE.update(_programs())


NAMES = frozenset(row.split()[0] for row in _WORDS_BEFORE.strip().splitlines()).union(
    *[row.partition(" |")[0].split() for row in _OPTIONS.strip().splitlines()]
)
_WORDS_TOO = frozenset(("az", "crane", "gh", "mc", "net", "oc", "zip"))  # "nmcli connect net" does not call net.
_USER = Expression(r"(?:[^\s:=/%,]+)[:%,](?=.)")
_OF_A_USER = Expression(r"-u|--(?:[\w-]+-)?user(?:name)?")
_LONG_ENOUGH = 12


class CommandLine:
    """Reads a command line item by item: the meaning of an item depends on those before it."""

    def __init__(self) -> None:
        self._program = ""
        self._option = ""  # The option whose value may come next.
        self._certain = False  # Whether the next item is the value of a secret's option.
        self._seen: List[str] = []  # Words of the program, options aside.
        self._login = False

    def hidden(self, item: str, alone: bool = True) -> Optional[str]:
        """Return the masked form of an item that is a secret by its position; None if it is not.

        An item of a sentence that goes on is not alone, as in "wandb login worked".
        """
        option, self._option = self._option, ""
        certain, self._certain = self._certain, False
        if certain and not item.startswith("--"):
            self._option, self._certain = option, names_several(option)
            return _hidden(option, item, option in self._rules().next)
        if item.startswith("-") and len(item) > 1:
            return self._of_an_option(item)
        masked = self._of_a_value(option, item, alone)
        if masked is None:
            self._note(option, item)
        return masked

    def _of_an_option(self, item: str) -> Optional[str]:
        """Return an option with a secret in it masked, and note what its value is."""
        program = self._rules()
        for glued in program.joined:
            if item.startswith(glued) and len(item) > len(glued):
                return glued + MASK
        name, joined, value = item.partition("=")
        if joined:
            user = (name in program.after_colon or _OF_A_USER.match(name)) and _USER.match(value)
            if user:
                return "%s=%s%s" % (name, user.group(0), MASK)
            if name == "--from-literal" and "=" in value:  # kubectl: the value of any name is the secret
                return "%s=%s=%s" % (name, value.partition("=")[0], MASK)
            is_secret = name in program.next or certainty_of_option(name) == CERTAIN
            masked = _hidden(name, value, name in program.next) if is_secret else None
            return None if masked is None else "%s=%s" % (name, masked)
        self._option = item
        self._certain = item in program.next or (" " not in item and certainty_of_option(item) == CERTAIN)
        if item.startswith("-p") and len(item) > 7 and looks_secret(item[2:]) and "." not in item and "/" not in item:
            return "-p" + MASK
        if item.startswith("-") and self._program == "htpasswd":
            self._seen.append(item)
        return None

    def _rules(self) -> _Program:
        rules = _TABLE.get(self._program, _UNKNOWN)
        return _UNKNOWN if rules.needs and rules.needs not in self._seen else rules

    def _of_a_value(self, option: str, item: str, alone: bool) -> Optional[str]:
        user = (option in self._rules().after_colon or _OF_A_USER.fullmatch(option)) and _USER.match(item)
        if user and not item[user.end() :].isdigit():  # docker run -u 1000:1000
            return user.group(0) + MASK
        if option == "--from-literal" and "=" in item:
            return item.partition("=")[0] + "=" + MASK
        if option and certainty_of_option(option) == PERHAPS and not harmless(option, item) and common_secret(item):
            return MASK
        if option in ("-p", "-P", "-pw") and looks_secret(item) and not any(sign in item for sign in "/=:."):
            return MASK
        if (alone or looks_secret(item)) and self._is_placed(item):
            self._seen.append(MASK)
            return MASK
        if self._login and len(item) >= _LONG_ENOUGH and "." not in item and looks_secret(item):
            return MASK
        return None

    def _is_placed(self, item: str) -> bool:
        """Return whether the words before an item say that it is a secret: net user bob X."""
        for words, count, named in _PLACES.get(self._program, ()):
            at = len(self._seen) - count - len(words)
            if at < 0 or self._seen[at : at + len(words)] != words or harmless("", item) or says_a_state(item):
                continue
            if (not named or certainty_of_option(self._seen[-1]) != NOT) and (count or "=" not in item):
                return True
        return False

    def _note(self, option: str, item: str) -> None:
        """Note a word of the program, a new program, or a dotted name whose value comes next: --set db.password X."""
        name = item.rpartition("/")[2]
        if name in NAMES and name != self._program and not (self._program and name in _WORDS_TOO):
            if not _TABLE:
                _load()
            self._program, self._seen = name, []
        else:
            self._seen = [*self._seen[-8:], item]
        self._login = item == "login" or (self._login and option.startswith("-"))
        is_name = all(letter.isalnum() or letter in "._-" for letter in item)
        if option.startswith("-") and is_name and "." in item and certainty_of_option(item) == CERTAIN:
            self._option, self._certain = item, True


def _hidden(option: str, value: str, only: bool) -> Optional[str]:
    """Return the value of a secret's option masked; None if it only says where the secret is."""
    if value.startswith("pass:"):  # openssl -passin pass:X, against file:PATH and env:NAME.
        return "pass:" + MASK
    if only and value.isdigit():  # After sshpass -p nothing else can stand.
        return MASK
    return None if harmless(option, value) or value.startswith(("file:", "env:", "fd:")) else MASK
