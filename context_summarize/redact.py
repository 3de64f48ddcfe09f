"""Takes secrets of well-known formats, and what the user's own patterns find, out of a text. Pure, linear, idempotent.

Shapes with a prefix of their own are taken as they are. A value without one (a password, a key of some service) is
taken where a word before it says what it is and it looks like a secret: long, mixed, no placeholder, no code.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from .errors import ConfigError

Check = Callable[[str], bool]

OWN = "own pattern"
"""The kind that the mark of a user's own pattern names."""
_MARK = re.compile(r"\[redacted: [^\]\n]{1,40}\]")


def _mark(kind: str) -> str:
    return f"[redacted: {kind}]"


# --- what secrets look like -----------------------------------------------------------------------------------------

# A row may be JSON: there `\n` before a token is two characters, and the second one a letter.
_ESCAPED = r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})"
_START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
_WORD_START = rf"(?:(?<![\w-])|{_ESCAPED})"
_END = r"(?![A-Za-z0-9])"
_QUOTE = r"\\{0,3}[\"'`]"
_GAP = r"(?:\s|\\[nrt]){1,8}"
# What stands between the lines of a key: line ends, those of JSON, quotes of source code.
_GLUE = r"(?:[\s\"',>|]|\\{1,4}+[nrt]?+)"
_ESCAPED_GLUE = r"[\s\\\"',>|]"
_KEY_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"


def _mixed(value: str) -> bool:
    """Letters and digits both: prose and names seldom are."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_discord(value: str) -> bool:
    """The first part of a Discord token is the bot's number in base64."""
    head = value.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (binascii.Error, ValueError):
        return False


_PLACEHOLDER = re.compile(
    r"(?i:[*x.•#_-]+|<.*|\$[a-z_{(].*|[%{\[].*"
    r"|none|null|nil|true|false|undefined|password|passwd|pass|pwd|secret|token)",
    re.S,
)
_SAYS_SO = re.compile(
    r"(?i:\$\{|\{\{|example|placeholder|change[_-]?me|(?<![a-z])your(?![a-z])|your[_-]|xxxx|dummy|redacted)"
)


def _is_real(value: str) -> bool:
    return _PLACEHOLDER.fullmatch(value) is None and _SAYS_SO.search(value) is None


@dataclass(frozen=True, slots=True)
class _Rule:
    """One format. The group `secret` goes, or all of it where there is no such group."""

    kind: str
    needs: tuple[str, ...]
    """One of these stands in every match, so that most texts need no search; in lower case."""
    pattern: re.Pattern[str]
    check: Check | None = None
    """Decides on the secret where the shape alone does not."""


def _rule(kind: str, needs: str, pattern: str, check: Check | None = None) -> _Rule:
    return _Rule(kind, tuple(needs.split()), re.compile(pattern), check)


_RULES = (
    # Blocks; a key that was cut off has no end line.
    _rule(
        "private key",
        "-----begin",
        rf"-----BEGIN {_KEY_NAME}"
        rf"(?:{_GLUE}{{0,20}}+(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,200}}+){{0,8}}+"
        rf"(?:{_GLUE}{{0,80}}+[A-Za-z0-9+/=]{{16,}}+)++(?:[A-Za-z0-9+/=\s\\\"',>|]{{0,200}}?-----END {_KEY_NAME})?",
    ),
    _rule("age key", "age-secret-key-1", rf"{_START}AGE-SECRET-KEY-1[0-9A-Z]{{58}}{_END}"),
    # Clouds.
    _rule(
        "AWS secret key",
        "akia asia",
        rf"{_START}(?:AKIA|ASIA)[A-Z2-7]{{16}}[\s,:|\"']{{1,6}}(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])",
    ),
    _rule(
        "AWS secret key",
        "secret",
        r"(?i:secret[_ -]?(?:access[_ -]?)?key)[^A-Za-z0-9/+\n]{1,12}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _mixed,
    ),
    _rule("AWS access key", "akia asia abia acca", rf"{_START}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_END}"),
    _rule("Google API key", "aiza", rf"{_START}AIza[\w-]{{35}}(?![\w-])"),
    _rule("Google OAuth secret", "gocspx-", rf"{_START}GOCSPX-[\w-]{{20,}}+"),
    _rule("Google OAuth token", "ya29. 1//0", rf"{_START}(?:ya29\.[\w-]{{20,}}+|1//0[\w-]{{30,}}+)"),
    _rule(
        "Azure storage key",
        "accountkey",
        r"(?i:AccountKey)[\"'\\]{0,4}\s{0,4}[=:]\s{0,4}[\"'\\]{0,4}(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})",
    ),
    _rule("Azure SAS signature", "sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/_-]{40,}+={0,2})"),
    _rule("Azure client secret", "q~", rf"{_START}[\w.~-]{{3}}\dQ~[\w.~-]{{31,34}}(?![\w.~-])"),
    _rule("DigitalOcean token", "_v1_", rf"{_START}do[opr]_v1_[a-f0-9]{{64}}{_END}"),
    # Forges and registries.
    _rule(
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{30,}}+|github_pat_\w{{30,}}+)",
    ),
    _rule("GitLab token", "gl", rf"{_START}gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas|ffct)-[\w.-]{{19,}}+(?<=\w)"),
    _rule(
        "Bitbucket token",
        "atbb bbdc- atatt3 atctt3",
        rf"{_START}(?:ATBB[A-Za-z0-9]{{28,}}+|BBDC-[A-Za-z0-9+/@_-]{{30,}}+|AT[AC]TT3[\w=-]{{50,}}+)",
    ),
    _rule("npm token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}"),
    _rule("PyPI token", "pypi-", rf"{_START}pypi-[\w-]{{50,}}+", _mixed),
    # Chat services.
    _rule(
        "Slack token", "xox xapp-", rf"{_START}(?:xox[a-z](?:\.xox[a-z])?-[\w-]{{10,}}+|xapp-\d-[\w-]{{20,}}+)", _mixed
    ),
    _rule(
        "Slack webhook", "hooks.slack", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/+-]{20,}+)"
    ),
    _rule(
        "Discord webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/(?P<secret>[\w-]{30,}+)",
    ),
    _rule(
        "Discord token",
        ".",
        rf"{_WORD_START}[MNO][\w-]{{22,28}}\.[\w-]{{6,7}}\.[\w-]{{27,45}}(?![\w-])",
        _is_discord,
    ),
    _rule("Telegram token", ":aa", r"(?<!\d)\d{8,10}:AA[\w-]{32,34}(?![\w-])"),
    # Models.
    _rule("Anthropic key", "sk-ant-", rf"{_START}sk-ant-[\w-]{{20,}}+"),
    _rule(
        "OpenAI key",
        "sk-",
        rf"{_START}sk-(?:[A-Za-z0-9]{{20,}}+|(?:proj|svcacct|admin|None|or-v1)-[\w-]{{20,}}+)",
        _mixed,
    ),
    _rule("Hugging Face token", "hf_ api_org_", rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,}}+"),
    # Payment, mail, telephone, shops.
    _rule(
        "Stripe key",
        "sk_ rk_ whsec_",
        rf"{_START}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{{16,}}+|whsec_[A-Za-z0-9+/=]{{24,}}+)",
    ),
    _rule("SendGrid key", "sg.", rf"{_START}SG\.[\w-]{{16,32}}\.[\w-]{{30,64}}(?![\w-])"),
    _rule("Twilio key", "sk", rf"{_WORD_START}SK[0-9a-f]{{32}}{_END}"),
    _rule(
        "Mailgun key",
        "key- -",
        rf"{_WORD_START}(?:key-[0-9a-f]{{32}}|[0-9a-f]{{32}}-[0-9a-f]{{8}}-[0-9a-f]{{8}})(?![\w-])",
    ),
    _rule("Shopify token", "shp", rf"{_START}shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{{32}}{_END}"),
    _rule(
        "access token",
        "gsk_ pplx- xai- r8_ dckr_ hvs. hvb. glsa_ lin_api_ ntn_ dapi sntry dp. nrak- sq0 rubygems_ pmak-",
        rf"{_START}(?:(?:gsk|ntn|r8|lin_api)_[A-Za-z0-9]{{32,}}+|(?:pplx|xai)-[A-Za-z0-9]{{32,}}+|dckr_[po]at_[\w-]{{20,}}+"
        r"|hv[sb]\.[\w-]{24,}+|glsa_\w{32,}+|dapi[a-f0-9]{32}(?![A-Za-z0-9])|sntry[su]_[\w=+/-]{40,}+"
        r"|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{40,}+|NRAK-[A-Z0-9]{27}|sq0(?:atp|csp)-[\w-]{22,}+|rubygems_[a-f0-9]{48}"
        r"|PMAK-[a-f0-9]{24}-[a-f0-9]{34})",
        _mixed,
    ),
    # Shapes that many services share.
    _rule("JWT", "eyj", rf"{_WORD_START}eyJ[\w-]{{10,}}+\.[\w-]{{10,}}+\.[\w-]{{8,}}+(?:\.[\w-]++){{0,2}}"),
    _rule("password", "://", r"://[^\s:/@?#\"'<>\\]{0,128}:(?P<secret>[^\s/?#\"'<>\\]{1,256})@(?=[\w.\[-])", _is_real),
    _rule(
        "authorization",
        "bearer",
        rf"{_START}(?i:bearer{_GAP})(?:{_QUOTE})?(?P<secret>[\w.~+/-]{{16,}}+={{0,3}})",
        lambda value: _mixed(value) and _is_real(value),
    ),
    _rule(
        "authorization",
        "authorization",
        rf"(?i:authorization)(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{_QUOTE})?(?i:basic|token|digest|apikey)\s{{1,4}}"
        r"(?P<secret>[\w.~+/-]{8,}+={0,3})",
        _is_real,
    ),
    _rule(
        "password",
        "curl",
        rf"{_START}curl\b[^\n]{{0,150}}?\s(?:-u|--user)[ =]?(?:{_QUOTE})?[^\s:\"'<$]{{1,64}}:"
        r"(?P<secret>[^\s\"'\\]{3,200})",
        _is_real,
    ),
    _rule(
        "password",
        "login",
        rf"{_START}login{_GAP}[^\s\\]{{1,100}}{_GAP}(?:account{_GAP}[^\s\\]{{1,100}}{_GAP})?password{_GAP}(?P<secret>[^\s\\\"']{{3,200}}+)",
        _is_real,
    ),
)

_PEM_END = re.compile(rf"-----END {_KEY_NAME}")
_PEM_TAIL = re.compile(
    rf"(?:[nrt]\\|{_ESCAPED_GLUE}){{0,40}}+[A-Za-z0-9+/=]{{1,80}}+(?:{_ESCAPED_GLUE}{{1,40}}+[A-Za-z0-9+/=]{{40,80}}+)++"
)
"""The end of a key without its beginning, read backwards."""


def _without_pem_tails(text: str) -> str:
    """A private key whose first lines are gone, as the tail of a file shows it."""
    out, at = [], 0
    for end in _PEM_END.finditer(text):
        found = _PEM_TAIL.match(text[max(at, end.start() - 8_000) : end.start()][::-1])
        if found is not None:
            first = end.start() - found.end()
            first += text[first - 1 : first + 1] == "\\n"  # the line end of JSON before the first line
            out += [text[at:first], _mark("private key")]
            at = end.end()
    return "".join([*out, text[at:]])


# --- values that a word before them gives away ----------------------------------------------------------------------

_NAMES = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "_auth", "credential",
    "api", "access", "account", "storage", "private", "auth", "encryption", "signing", "master", "shared",
)  # fmt: skip
_BARE = r"[^\s\"'`\\,;&<>(){}\[\]|=]"
_ASSIGNED = re.compile(
    r"(?i:(?P<word>pass(?:word|wd|phrase|code)|pwd|secret(?:[_-]?access)?(?:[_-]?key)?|token|credentials?|_auth"
    r"|(?:api|access|account|storage|private|auth|encryption|signing|master|shared)[ _-]?key))"
    rf"(?:(?P<sign>(?:{_QUOTE})?\s{{0,8}}(?:=>|:=|={{1,3}}|:)\*{{0,2}}\s{{0,8}})"
    rf"|(?P<pair>{_QUOTE}\s{{0,4}},\s{{0,4}}{_QUOTE}(?i:value){_QUOTE}\s{{0,4}}:\s{{0,4}})"
    r"|(?P<tag>>)|(?P<option>\s{1,4})(?!\s|is\s|was\s)|(?P<prose>\s{1,4}(?:is|was):?\s{1,4}))"
    rf"(?:(?P<quote>{_QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\s\\]|\\\S){{6,512}}+)(?P=quote)"
    rf"|(?:{_QUOTE})?(?P<bare>{_BARE}{{6,200}}+={{0,2}}))"
)
_MORE = re.compile(rf"(?:{_BARE}|=)*+")
_MORE_OF_PASSWORD = re.compile(rf"(?:{_BARE}|[=&|])*+")
_OPTION = re.compile(r"--[\w-]*\Z")
_PAGING = re.compile(r"(?i:next|prev|page|continuation|sync|cancellation|pagination|resume)[_-]?\Z")
_PATH_OR_URL = re.compile(r"(?:\.{0,2}|~)/|[A-Za-z][\w+.-]*:/|@/")
_CODE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+")
_NAME = re.compile(
    r"[a-z]+(?:[._/:-][a-z]+)*[._-]?\d{0,2}|[A-Z]+\d{0,2}(?:_[A-Z0-9]+)+|[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)*[A-Z]?\d{0,2}"
)
_VARIABLE = re.compile(r"(?i:[a-z_]\w*)")
_SPEAKS = re.compile(r"(?i:pass|pwd|secret|token|key|input|field|value|form|param|args|env)")
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")


def _entropy(value: str) -> float:
    """Bits a character, by the value's own letters."""
    counts = Counter(value).values()
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)


def _is_password(value: str, bare: bool) -> bool:
    if bare and _VARIABLE.fullmatch(value) and _SPEAKS.search(value):
        return False
    if _mixed(value) or (_SYMBOL.search(value) and any(map(str.isalpha, value))):
        return True
    return not bare and len(value) >= 12 and value not in (value.lower(), value.upper()) and not _NAME.fullmatch(value)


def _is_key(word: str, value: str) -> bool:
    if len(value) < (12 if word.startswith("secret") else 16) or _NAME.fullmatch(value):
        return False
    return _entropy(value) >= (2.8 if _mixed(value) else 4.2)


def _given_away(text: str, found: re.Match[str], value: str, after: str) -> bool:
    """Is this value, with this word before it, a secret?"""
    word, bare = found["word"].lower(), found["bare"] is not None
    before = text[max(0, found.start() - 24) : found.start()]
    known = word.startswith(("pass", "pwd"))
    if (found["tag"] and after != "<") or (found["prose"] and not known):
        return False
    if found["option"] and not _OPTION.search(before):
        return False
    if not _is_real(value) or _PATH_OR_URL.match(value) or (word == "token" and _PAGING.search(before)):
        return False
    if bare and (after in ("(", "[", "{") or _CODE.fullmatch(value)):
        return False
    return _is_password(value, bare) if known else _is_key(word, value)


def _without_assigned(text: str) -> str:
    out, at, start = [], 0, 0
    while found := _ASSIGNED.search(text, start):
        bare = found["bare"] is not None
        first, end = found.span("bare" if bare else "quoted")
        known = found["word"].lower().startswith(("pass", "pwd"))
        # In a URL or a connection string `&` parts the settings; elsewhere it may be part of a password.
        more = _MORE if not known or found["sign"] == "=" else _MORE_OF_PASSWORD
        if bare:
            end = _end(more, text, end, end + 200)
        value = text[first:end]
        if len(value) < 6 or not _given_away(text, found, value, text[end : end + 1]):
            # What was taken for a value may itself begin with such a word.
            start = max(found.end("word"), first)
            continue
        if bare:
            end = _end(more, text, end, len(text))
        out += [text[at:first], _mark("password" if known else "secret")]
        at = start = end
    return "".join([*out, text[at:]])


def _end(more: re.Pattern[str], text: str, end: int, limit: int) -> int:
    """Where a value ends that goes on; the punctuation of a sentence is none of it."""
    rest = more.match(text, end, limit)
    end = rest.end() if rest else end
    while text[end - 1] in ".:*":
        end -= 1
    return end


# --- a text ---------------------------------------------------------------------------------------------------------


def _applied(rule: _Rule, text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        group = "secret" if "secret" in rule.pattern.groupindex else 0
        if rule.check is not None and not rule.check(found[group]):
            return found[0]
        first, end = (at - found.start() for at in found.span(group))
        return f"{found[0][:first]}{_mark(rule.kind)}{found[0][end:]}"

    return rule.pattern.sub(replaced, text)


_WORDS = tuple((word, at) for at, rule in enumerate(_RULES) for word in rule.needs)
"""Words of which a text must hold one, each with the place of its rule."""


def _known(text: str) -> str:
    """The text without secrets of known formats."""
    low = text.lower()
    for at in sorted({at for word, at in _WORDS if word in low}):
        text = _applied(_RULES[at], text)
    if "-----end" in low:
        text = _without_pem_tails(text)
    if any(name in low for name in _NAMES):
        text = _without_assigned(text)
    return text


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where an own pattern matches; what is a mark already stays one."""
    at = 0
    mark = _MARK.search(text)
    while found := pattern.search(text, at):
        while mark is not None and mark.end() <= found.start():
            mark = _MARK.search(text, mark.end())
        if mark is not None and mark.start() <= found.start():
            at = mark.end()
        elif found.end() > found.start():
            yield found.span()
            at = found.end()
        else:
            at = found.end() + 1
        if at > len(text):
            return


def _own(pattern: re.Pattern[str], text: str) -> str:
    out, at = [], 0
    for first, end in _matches(pattern, text):
        out += [text[at:first], _mark(OWN)]
        at = end
    return "".join([*out, text[at:]])


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"redact: {pattern!r} is no regular expression ({error}); correct it, or escape its special characters "
            "with a backslash"
        ) from None
    if compiled.match(""):
        raise ConfigError(f"redact: {pattern!r} matches the empty text; make it ask for at least one character")
    return compiled


@lru_cache(maxsize=32)
def _redactor(patterns: tuple[str, ...]) -> Callable[[str], str]:
    own = [_compiled(pattern) for pattern in patterns]

    def redact(text: str) -> str:
        clean = _known(text)
        for pattern in own:
            clean = _own(pattern, clean)
        return clean

    return redact


def build_redactor(setting: bool | Sequence[str]) -> Callable[[str], str] | None:
    """What the setting `redact` asks for: None for false, known formats for true, those and own patterns for a list.

    Each secret becomes `[redacted: KIND]`. Own patterns are Python regular expressions, searched without flags (write
    `(?i)` for either case); that they take linear time is the user's care.

    Raises:
        ConfigError: a pattern is no regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))
