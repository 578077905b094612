"""Regular expressions that are compiled on first use.

Most processes never use them, and every rank pays for everything loaded at start-up.
"""

import re
from typing import Any, AnyStr, Callable, Dict, Generic, Iterator, List, Match, Optional, Tuple


class Expression(Generic[AnyStr]):
    """A lazy re.Pattern. A method becomes an attribute at its first call; later calls cost as much as the pattern's own."""

    _pattern: AnyStr
    search: Callable[..., Optional[Match[AnyStr]]]
    match: Callable[..., Optional[Match[AnyStr]]]
    finditer: Callable[..., Iterator[Match[AnyStr]]]
    findall: Callable[..., List[Any]]
    sub: Callable[..., AnyStr]

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not a method of a pattern
            raise AttributeError(name)
        found = getattr(re.compile(self._pattern, self._flags), name)  # re caches compiled patterns
        setattr(self, name, found)
        return found


# Recognises credentials by their form, whatever their name: keys with a vendor's prefix, URLs with a password, headers, webhooks.
#
# The prefixes come from the rules of gitleaks and the plugins of detect-secrets; neither is needed at run time. A pattern is compiled only
# when a text contains its gate, a few characters without which it cannot match: a rank without such a text compiles none.

MASK = "***"

# A vendor's prefix, then characters with at least one digit: "sk-learn-contrib" and "npm_config_cache" are names.
_PREFIXES = tuple(
    """
    ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glptt- glft- glimt- glagent- gloas- glsoat- glcbt- glffct- GR1348941 npm_ pypi-
    rubygems_ CLOJARS_ dckr_pat_ dckr_oat_ dckr_pat- xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- hvs. hvb. nvapi- ya29. sk_live_
    sk_test_ sk_prod_ rk_live_ rk_test_ pk_live_ pk_test_ sk-live- sk-test- whsec_ dop_v1_ doo_v1_ dor_v1_ SG. shpat_ shpca_ shppa_ shpss_
    shpua_ lin_api_ lin_oauth_ dapi PMAK- r8_ gsk_ xai- pplx- sk- AKCp cmVmd A3- p8e- LTAI ATATT ATCTT ABSK bedrock-api-key-
    dnkey- dp.pt. dp.st. dp.ct. dp.scim. dp.audit. duffel_test_ duffel_live_ dt0c01. dt0s01. EZAK EZTK EAA FLWSECK FLWPUBK fo1_ fm1_ fm1a_
    fm1r_ fm2_ fio-u- glc_ glsa_ HRKU- api_org_ ico- s-s4t2ud- s-s4t2af- AGE-SECRET-KEY- AIza sq0atp- sq0csp- sq0idp- sq0idb- tfp_
    sntrys_ sntryu_ NRAK NRJS- NRII- NRRA- NRIQ- NRSP- pscale_ pnu_ rdme_ sgp_ shippo_ ntn_ pul- tvly- figd_
    cio- phc_ phx_ AQVN msy_ doppler_ oy2 wdb_ lsv2_pt_ lsv2_sk_ vcp_ vercel_ sbp_ xkeysib- sm_aat_ sm_pat_ sm_sat_
    access-sandbox- access-development- access-production- maxmind_ AKIA ASIA ABIA ACCA A3T tskey-
    aio_ apify_api_ ATBB ATTA AKID AKLT ALTAK bkua_ CCIPAT_ CFPAT- csk- esecret_ GOCSPX- hcaik_ jina_ napi_ nfp_ pcsk_ rpa_ squ_ sqp_ sqa_ SWMTKN-
    tgp_v1_ wandb_v1_
    """.split()
)
# These begin words and names, too ("patch_embed_16", "co_attention_2d"): what follows has to be random.
_COMMON_PREFIXES = tuple("pat pat. sat. key- fw_ co_ tk- pk- rk- fc- API- sl. t1. y0_ secret_ ops_ v1.0-".split())
# A part of a path is masked only for a prefix that no word has, with a long run of letters and digits: a diagnosis needs the names of folders.
_IN_PATHS = tuple(
    """
    ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- hf_ xoxa- xoxb- xoxe- xoxp- xapp- sk-ant- sk-proj- sk_live_ sk_test_ rk_live_ npm_
    pypi- AKIA ASIA AIza nvapi- dop_v1_ r8_ gsk_ xai- hvs. ya29. lin_api_ sbp_ figd_ phc_ dapi dckr_pat_ glc_ glsa_ whsec_ shpat_ sntrys_ pul- tskey-
    LTAI AKLT AKID ALTAK ATBB
    """.split()
)
_TOKEN = Expression(r"(?<![\w/.-])[A-Za-z0-9][\w./+~-]{11,}=*")
_LONG = re.compile(r"[\w+=~-]{12}")  # Minimum length of a vendor's key.


_NOT_YET = r"(?!\*\*\*(?:[\s'\"<>,;:.)\]}]|$))"  # What is masked already stays as it is, and so does the punctuation behind it.


class _Form:
    """A pattern, the replacement for its match, and the characters without which it cannot match."""

    def __init__(self, gates: Tuple[str, ...], pattern: str, instead: str = MASK, flags: int = 0) -> None:
        self.gates = gates
        self._expression = Expression(pattern, flags)
        self._instead = instead

    def masked(self, text: str) -> str:
        return self._expression.sub(self._instead, text)


_FORMS = (
    _Form(("bce-v3",), r"\bbce-v3/ALTAK-[\w/-]{10,}"),
    _Form(("private key",), r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", flags=re.S),
    # A password may contain a slash, and then extends to a later "@"; without a password the user name ends at the first slash.
    _Form(
        ("://",),
        r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)(?:[^\s/'\"@:]{0,128}:[^\s'\"@]{1,256}|[^\s/'\"@]{1,256})@",
        r"\1" + MASK + "@",
    ),
    _Form(("@",), r"(?<![\w./:@-])[\w.+-]{1,64}:[^\s'\"/@:]{3,128}@(?=[\w.-])", MASK + "@"),
    _Form(
        ("hook", "telegram", "day.app/", "ftqq.com/", "hc-ping", "pagerduty", "with/key"),
        r"((?:hooks\.slack(?:-gov)?\.com|webhook\.office\.com|discord(?:app)?\.com/api/(?:v\d+/)?webhooks|api\.telegram\.org|hooks\.zapier\.com"
        r"|hook\.[\w.]*make\.com|bot/(?:v\d/)?hook|api\.day\.app|s(?:ct|ctapi)?\.ftqq\.com|sc\.ftqq\.com|hc-ping\.com|with/key"
        r"|events\.pagerduty\.com/integration)/)[^\s'\"<>]+",
        r"\1" + MASK,
        re.I,
    ),
    # Of any host: https://chat.example.org/hooks/TOKEN. A page or a file about hooks has no long word with a digit in it.
    _Form(
        ("hook",),
        r"(://[^\s'\"<>]{1,200}?/(?:web)?hooks?(?:b2)?/)(?:[\w@-]{1,80}/){0,3}(?=[\w@-]{0,200}[0-9])[\w@-]{16,}(?![\w.])[^\s'\"<>]*",
        r"\1" + MASK,
        re.I,
    ),
    _Form(
        ("://",),
        r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s?#'\"]{0,500})(?:\?|#(?=[\w./-]*[=0-9]))" + _NOT_YET + r"[^\s'\"<>]+",
        r"\1?" + MASK,
    ),
    _Form(("?",), r"\?" + _NOT_YET + r"(?=[^\s'\"?]{0,200}=|[\w%+/.~-]{16})[^\s'\"<>]+", "?" + MASK),
    _Form(
        tuple("/" + prefix.lower() for prefix in _IN_PATHS),
        r"(?<=/)(?:%s)(?=[\w-]{0,200}[0-9])(?=[\w-]{0,200}[A-Za-z0-9]{16})[\w-]+" % "|".join(map(re.escape, _IN_PATHS)),
    ),
    _Form(("/sk-",), r"(?<=/)sk-(?=[A-Za-z]{0,200}[0-9])[A-Za-z0-9]{32,}"),  # Of the words that begin so, none is so long.
    _Form(("hf_", "api_org", "ico-"), r"\bhf_(?:(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6,}|[a-z]{20,})|\b(?:hf|api_org|ico)[_-][A-Za-z]{30,}"),
    _Form(
        ("ey", "zxlk"),
        r"\b(?:eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,2}|ey[A-Za-z0-9_/-]{17,}\.ey[A-Za-z0-9_/.-]{17,}|ZXlK[A-Za-z0-9+/=_-]{12,})",
    ),
    _Form(("ms-",), r"\bms-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    _Form((".",), r"(?<![0-9A-Za-z])[0-9a-f]{32}\.(?=[A-Za-z]{0,15}[0-9])[A-Za-z0-9]{16}(?![\w.])"),  # The id of a key, and its secret.
    _Form(("sshpass",), r"(\bsshpass\s+(?:-[ev]\s+|-P\s*\S+\s+)*-p\s*)(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)", r"\1" + MASK),
    _Form(
        ("curl", "wget"),
        r"(\b(?:curl|wget)\s(?:[^\s|;&]{1,200}\s+){0,40}?(?:-\w{0,8}[uU]|--(?:proxy-)?user)[\s=]*['\"]?[^\s:'\"]{1,100}:)[^\s'\"]+",
        r"\1" + MASK,
    ),
    _Form(
        ("login",),
        r"(\b(?:wandb|swanlab|modelscope|comet|neptune|huggingface-cli|hf)\s+(?:auth\s+)?login\s+(?:--?[\w-]+\s+)*)"
        r"(?=[\w-]{0,200}[0-9])(?=[\w-]{0,200}[A-Za-z])[\w-]{12,}(?![\w./:])",
        r"\1" + MASK,
    ),
    # echo X | kinit
    _Form(
        ("|",),
        r"(\b(?:echo|printf)\s+(?:-[neE]+\s+)*)(?!\*\*\*)[^\n|;&]{1,200}?(\s*\|\s*(?:sudo\s+-\w*S|kinit|passwd|chpasswd|sshpass|cryptsetup|smbclient|su|gpg"
        r"|(?:docker|podman|helm|gh|wandb|oras|nerdctl|skopeo|huggingface-cli|hf)\b[^\n|;&]{0,80}\blogin)\b)",
        r"\1" + MASK + r"\2",
    ),
    _Form(("<<<",), r"(\b(?:kinit|sudo\s+-\w*S)\b[^\n|;&<]{0,200}<<<\s*)(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)", r"\1" + MASK),
    _Form(
        ("密码", "口令", "密钥", "令牌", "凭证"),
        r"((?:密码|口令|密钥|令牌|凭证)\s*(?:[:\uff1a=\uff1d是为]|设为)\s*['\"\u201c\u300c]?)"
        r"(?!\*\*\*)(?![~.]?/|(?:none|null|true|false)\b|[0-9]{1,5}(?![!-~]))[!-~]{3,}",
        r"\1" + MASK,
        re.I,
    ),
    # Of any server: https://h/t/TOKEN/channel. A page about tokens has words in its address.
    _Form(
        ("/t/", "token", "auth/", "password/", "secret", "key"),
        r"((?:://[^\s'\"<>?#]{1,300}?|(?<![\w.])/api(?:/v[0-9])?)"
        r"/(?:t|[\w-]{0,20}tokens?|auth|[\w-]{0,20}password|secrets?|[\w-]{0,20}api[_-]?keys?)/)"
        r"(?=[^\s/'\"<>]{0,200}[0-9])(?=[^\s/'\"<>]{0,200}[A-Za-z])"
        r"(?!(?:[A-Za-z]+[0-9]{0,2}|[0-9]+)(?:[-_.](?:[A-Za-z]+[0-9]{0,2}|[0-9]+)){0,20}(?:[\s/'\"<>?#]|$))[^\s/'\"<>?#]{8,}",
        r"\1" + MASK,
    ),
    _Form(("conda",), r"(://[^\s'\"<>/]{0,100}conda[^\s'\"<>/]{0,100}/t/)(?!\*\*\*)[^\s/'\"<>]+", r"\1" + MASK),
    # A line of a file of passwords: host:port:database:user:password, and user:hash.
    _Form(
        (":",),
        r"(?<![\w.*:/-])([\w.*-]{1,100}:(?:[0-9]{2,5}|\*):[\w.*-]{1,63}:[\w.*-]{1,63}:)"
        r"(?=[^\s'\":]{0,100}[0-9])(?=[^\s'\":]{0,100}[A-Za-z])[^\s'\":]{6,}",
        r"\1" + MASK,
    ),
    _Form(("$",), r"(\$(?:apr1|1|2[abxy]|5|6|7|y|gy|argon2i?d?)\$)[^\s:'\"]{8,}", r"\1" + MASK),
    _Form(("{s", "{md5", "{crypt"), r"(\{(?:S?SHA[0-9]{0,3}|S?MD5|CRYPT)\})[^\s'\"]{8,}", r"\1" + MASK, re.I),
    _Form(
        ("auth",),
        r"((?:\bauth\w{0,20}\s*=\s*|BasicAuth|DigestAuth)\(\s*\\{0,2}['\"][^'\"]{0,100}['\"]\s*,\s*\\{0,2}['\"])(?!\*\*\*)[^'\"\\]+",
        r"\1" + MASK,
    ),
    _Form(("identified",), r"(\bidentified\s+by\s+['\"])(?!\*\*\*)[^'\"]+", r"\1" + MASK, re.I),
    _Form(("requirepass", "masterauth"), r"(\b(?:requirepass|masterauth)[ \t]+['\"]?)(?!\*\*\*)[^\s'\"]+", r"\1" + MASK, re.I),
    _Form(("cookie",), r"(\b(?:set-)?cookie['\"]?\s*:\s*['\"]?)(?!\*\*\*)(?=[^\n'\"]{0,100}=)[^\n'\"]+", r"\1" + MASK, re.I),
    _Form(("contribsys",), r"\b[0-9a-f]{8}:[0-9a-f]{8}\b"),
    _Form(("xox",), r"\bxox[a-z](?:\.xox[a-z])?-[\w-]{10,}"),
    _Form(
        ("glpat-", "gldt-", "glrt-", "glft-", "glagent-", "glsoat-", "gloas-"),
        r"\bgl(?:pat|dt|rt|ft|agent|soat|oas)-[\w-]{20,}(?:\.[a-z0-9]{2,3}\.[a-z0-9]{7,12})?",
    ),
    _Form(("api-",), r"\bAPI-(?=[A-Z]{0,25}[0-9])[A-Z0-9]{26}\b"),
    _Form(("atatt",), r"\bATATT[\w=-]{20,}"),
    _Form((".atlasv1",), r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{20,}"),
    _Form(("-us",), r"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    _Form(("pk.", "sk."), r"\b[ps]k\.(?=[a-z0-9]{0,100}[0-9])[A-Za-z0-9]{20,}\.[\w-]{20,}"),
    _Form(("gocspx-",), r"\bGOCSPX-[\w-]{20,}"),
    _Form(("dckr_",), r"\bdckr_[po]at_[\w-]{20,}"),
    _Form(("sk_",), r"\bsk_(?=[\w-]{0,28}[0-9])(?=[\w-]{0,28}[A-Z])(?=[\w-]{0,28}[a-z])[\w-]{29}(?![\w-])"),
    _Form(("sk_", "live_"), r"\bsk_[0-9a-f]{32,}|\blive_(?:[0-9a-f]{30,}|(?=[\w-]{0,40}[0-9])[\w-]{40})"),
    _Form(("key",), r"\bkey(?=(?:[A-Za-z]{0,12}[0-9]){2})(?=[a-z0-9]{0,13}[A-Z])(?=[A-Z0-9]{0,13}[a-z])[A-Za-z0-9]{14}\b"),
    _Form(("-",), r"\b[0-9]{15,20}-(?=[A-Za-z]{0,30}[0-9])[A-Za-z0-9]{20,}\b"),
    _Form(
        (
            "mot de passe",
            "passwort",
            "kennwort",
            "contraseña",
            "senha",
            "wachtwoord",
            "пароль",
            "パスワード",
            "비밀번호",
            "暗証番号",
        ),
        r"((?:\b(?:mot de passe|passwort|kennwort|contraseña|senha|wachtwoord|пароль)|パスワード|비밀번호|暗証番号)\s*[:=\uff1a]\s*['\"]?)"
        r"(?=[^\s'\"]{0,100}[0-9])[^\s'\"]{6,}",
        r"\1" + MASK,
        re.I,
    ),
    _Form(
        ("密码", "口令", "密钥", "令牌", "凭证"),
        r"((?:密码|口令|密钥|令牌|凭证)[ \t]+['\"]?)(?=[!-~]{0,100}[0-9])(?=[!-~]{0,100}[A-Za-z])(?![\w.]*/)[!-~]{6,}",
        r"\1" + MASK,
    ),
    _Form(("sk", "ac"), r"\b(?:SK|AC)[0-9a-f]{32}\b"),
    _Form((":",), r"\b[0-9]{8,10}:[A-Za-z0-9_-]{32,}"),
    _Form(("q~",), r"(?<![\w~.])[\w~.]{3}[0-9]Q~[\w~.-]{30,}"),
    _Form(("|", "%"), r"\b[0-9]{15,16}[|%][0-9A-Za-z_-]{27,}"),
    _Form((".acc",), r"\b[a-z]{2,8}_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-]\S{20,}"),
    _Form(("signature",), r"\b(signature['\"]?\s*[:=]\s*['\"]?)[0-9A-Za-z+/%]{16,}=*", r"\1" + MASK, re.I),
    _Form(
        ("authorization",),
        r"\b((?:proxy-)?authorization['\"]?\s*[:=]\s*)(?:['\"]?)(?![0-9]{1,7}(?:[\s,)\]}]|$))(?:(?:bearer|basic|token|digest)\s+)?[^\s'\"<>|;,&)\]}]+",
        r"\1" + MASK,
        re.I,
    ),
    _Form(("basic",), r"\b(basic\s+)(?!\*)(?=[A-Za-z._~+/=-]{0,40}[0-9=])[A-Za-z0-9._~+/=-]{6,}", r"\1" + MASK, re.I),
    _Form(("bearer",), r"\b(bearer\s+)(?!\*)[A-Za-z0-9._~+/=-]{6,}", r"\1" + MASK, re.I),
)

_GATES: Dict[str, List[int]] = {}  # The forms that may be in a text with these characters.
for _number, _form in enumerate(_FORMS):
    for _gate in _form.gates:
        _GATES.setdefault(_gate, []).append(_number)

_SHORTEST_RUN = 15
_RUN = Expression(r"[A-Za-z0-9+/]{%d,}" % _SHORTEST_RUN)
_HEX = Expression(r"(?<![0-9a-fA-F])(?=[a-fA-F]{0,31}[0-9])(?=[0-9]{0,31}[a-fA-F])[0-9a-fA-F]{32,}(?![0-9a-fA-F])")
_UUID = Expression(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])")
_TURN = Expression(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9a-z])|(?<=[0-9])(?=[A-Za-z])")


def mask_forms(text: str) -> str:
    """Mask credentials with a recognisable form."""
    small = text.lower()
    gates = [gate for gate in _GATES if gate in small]  # For most texts none, or the sign of a pair.
    if gates:
        for number in sorted(set().union(*[_GATES[gate] for gate in gates])):
            text = _FORMS[number].masked(text)
    return _TOKEN.sub(_token, text) if _LONG.search(text) else text


def _token(match: Any) -> str:
    word: str = match.group(0)
    if word.startswith(_PREFIXES) and any(letter.isdigit() for letter in word[3:]) and not word.endswith((".py", ".pth", ".pt", ".json", ".yaml")):
        return MASK
    if word.startswith(_COMMON_PREFIXES) and len(word) >= 20 and random_looking(word):
        return MASK
    return MASK if len(word) >= 24 and "/" not in word and "." not in word and _disordered(word) else word


def _disordered(word: str) -> bool:
    """Return whether a word looks random: upper case, lower case and digits mixed. A commit hash does not: it is hexadecimal."""
    return any(c.isupper() for c in word) and any(c.islower() for c in word) and _mixed(word, 3)


def _mixed(run: str, share: int) -> bool:
    """Return whether the kind of character changes often enough to look random."""
    return any(c.isdigit() for c in run) and len(_TURN.findall(run)) * share >= len(run)


def random_looking(text: str) -> bool:
    """Return whether a value contains a random-looking mix of letters and digits, or a long hexadecimal number."""
    if len(text) < _SHORTEST_RUN:
        return False
    return _HEX.search(text) is not None or _UUID.search(text) is not None or any(_mixed(run, 4) for run in _RUN.findall(text))
