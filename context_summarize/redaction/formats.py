"""Secrets with a recognisable format: prefixes, blocks, headers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from context_summarize.redaction.marks import mark
from context_summarize.redaction.values import Check, is_discord, is_mixed, is_real

# A row may be JSON. There `\n` before a token is two characters, and the second one is a letter.
_ESCAPED = r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})"
_START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
_WORD_START = rf"(?:(?<![\w-])|{_ESCAPED})"
_END = r"(?![A-Za-z0-9])"
QUOTE = r"\\{0,3}[\"'`]"
_GAP = r"(?:\s|\\[nrt]){1,8}"
# Text between the lines of a key: line ends, escaped line ends of JSON, quotes of source code.
_GLUE = r"(?:[\s\"',>|]|\\{1,4}+[nrt]?+)"
_ESCAPED_GLUE = r"[\s\\\"',>|]"
_KEY_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"


@dataclass(frozen=True, slots=True)
class Format:
    """One format. The group `secret` is replaced, or the whole match if there is no such group."""

    kind: str
    needs: tuple[str, ...]
    """Every match contains one of these, in lower case; a text without them needs no search."""
    pattern: re.Pattern[str]
    check: Check | None = None
    """A further condition for the secret, if the pattern is not enough."""


def _format(kind: str, needs: str, pattern: str, check: Check | None = None) -> Format:
    return Format(kind, tuple(needs.split()), re.compile(pattern), check)


FORMATS = (
    # Blocks; a truncated key has no end line.
    _format(
        "private key",
        "-----begin",
        rf"-----BEGIN {_KEY_NAME}"
        rf"(?:{_GLUE}{{0,20}}+(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,200}}+){{0,8}}+"
        rf"(?:{_GLUE}{{0,80}}+[A-Za-z0-9+/=]{{16,}}+)++(?:[A-Za-z0-9+/=\s\\\"',>|]{{0,200}}?-----END {_KEY_NAME})?",
    ),
    _format("age key", "age-secret-key-1", rf"{_START}AGE-SECRET-KEY-1[0-9A-Z]{{58}}{_END}"),
    # Clouds.
    _format(
        "AWS secret key",
        "akia asia",
        rf"{_START}(?:AKIA|ASIA)[A-Z2-7]{{16}}[\s,:|\"']{{1,6}}(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])",
    ),
    _format(
        "AWS secret key",
        "secret",
        r"(?i:secret[_ -]?(?:access[_ -]?)?key)[^A-Za-z0-9/+\n]{1,12}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        is_mixed,
    ),
    _format("AWS access key", "akia asia abia acca", rf"{_START}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_END}"),
    _format("Google API key", "aiza", rf"{_START}AIza[\w-]{{35}}(?![\w-])"),
    _format("Google OAuth secret", "gocspx-", rf"{_START}GOCSPX-[\w-]{{20,}}+"),
    _format("Google OAuth token", "ya29. 1//0", rf"{_START}(?:ya29\.[\w-]{{20,}}+|1//0[\w-]{{30,}}+)"),
    _format(
        "Azure storage key",
        "accountkey",
        r"(?i:AccountKey)[\"'\\]{0,4}\s{0,4}[=:]\s{0,4}[\"'\\]{0,4}(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})",
    ),
    _format("Azure SAS signature", "sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/_-]{40,}+={0,2})"),
    _format("Azure client secret", "q~", rf"{_START}[\w.~-]{{3}}\dQ~[\w.~-]{{31,34}}(?![\w.~-])"),
    _format("DigitalOcean token", "_v1_", rf"{_START}do[opr]_v1_[a-f0-9]{{64}}{_END}"),
    # Forges and registries.
    _format(
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{30,}}+|github_pat_\w{{30,}}+)",
    ),
    _format("GitLab token", "gl", rf"{_START}gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas|ffct)-[\w.-]{{19,}}+(?<=\w)"),
    _format(
        "Bitbucket token",
        "atbb bbdc- atatt3 atctt3",
        rf"{_START}(?:ATBB[A-Za-z0-9]{{28,}}+|BBDC-[A-Za-z0-9+/@_-]{{30,}}+|AT[AC]TT3[\w=-]{{50,}}+)",
    ),
    _format("npm token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}"),
    _format("PyPI token", "pypi-", rf"{_START}pypi-[\w-]{{50,}}+", is_mixed),
    # Chat services.
    _format(
        "Slack token",
        "xox xapp-",
        rf"{_START}(?:xox[a-z](?:\.xox[a-z])?-[\w-]{{10,}}+|xapp-\d-[\w-]{{20,}}+)",
        is_mixed,
    ),
    _format(
        "Slack webhook", "hooks.slack", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/+-]{20,}+)"
    ),
    _format(
        "Discord webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/(?P<secret>[\w-]{30,}+)",
    ),
    _format(
        "Discord token",
        ".",
        rf"{_WORD_START}[MNO][\w-]{{22,28}}\.[\w-]{{6,7}}\.[\w-]{{27,45}}(?![\w-])",
        is_discord,
    ),
    _format("Telegram token", ":aa", r"(?<!\d)\d{8,10}:AA[\w-]{32,34}(?![\w-])"),
    # Models.
    _format("Anthropic key", "sk-ant-", rf"{_START}sk-ant-[\w-]{{20,}}+"),
    _format(
        "OpenAI key",
        "sk-",
        rf"{_START}sk-(?:[A-Za-z0-9]{{20,}}+|(?:proj|svcacct|admin|None|or-v1)-[\w-]{{20,}}+)",
        is_mixed,
    ),
    _format("Hugging Face token", "hf_ api_org_", rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,}}+"),
    # Payment, mail, telephone, shops.
    _format(
        "Stripe key",
        "sk_ rk_ whsec_",
        rf"{_START}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{{16,}}+|whsec_[A-Za-z0-9+/=]{{24,}}+)",
    ),
    _format("SendGrid key", "sg.", rf"{_START}SG\.[\w-]{{16,32}}\.[\w-]{{30,64}}(?![\w-])"),
    _format("Twilio key", "sk", rf"{_WORD_START}SK[0-9a-f]{{32}}{_END}"),
    _format(
        "Mailgun key",
        "key- -",
        rf"{_WORD_START}(?:key-[0-9a-f]{{32}}|[0-9a-f]{{32}}-[0-9a-f]{{8}}-[0-9a-f]{{8}})(?![\w-])",
    ),
    _format("Shopify token", "shp", rf"{_START}shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{{32}}{_END}"),
    _format(
        "access token",
        "gsk_ pplx- xai- r8_ dckr_ hvs. hvb. glsa_ lin_api_ ntn_ dapi sntry dp. nrak- sq0 rubygems_ pmak-",
        rf"{_START}(?:(?:gsk|ntn|r8|lin_api)_[A-Za-z0-9]{{32,}}+|(?:pplx|xai)-[A-Za-z0-9]{{32,}}+|dckr_[po]at_[\w-]{{20,}}+"
        r"|hv[sb]\.[\w-]{24,}+|glsa_\w{32,}+|dapi[a-f0-9]{32}(?![A-Za-z0-9])|sntry[su]_[\w=+/-]{40,}+"
        r"|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{40,}+|NRAK-[A-Z0-9]{27}|sq0(?:atp|csp)-[\w-]{22,}+|rubygems_[a-f0-9]{48}"
        r"|PMAK-[a-f0-9]{24}-[a-f0-9]{34})",
        is_mixed,
    ),
    # Formats that many services share.
    _format("JWT", "eyj", rf"{_WORD_START}eyJ[\w-]{{10,}}+\.[\w-]{{10,}}+\.[\w-]{{8,}}+(?:\.[\w-]++){{0,2}}"),
    _format("password", "://", r"://[^\s:/@?#\"'<>\\]{0,128}:(?P<secret>[^\s/?#\"'<>\\]{1,256})@(?=[\w.\[-])", is_real),
    _format(
        "authorization",
        "bearer",
        rf"{_START}(?i:bearer{_GAP})(?:{QUOTE})?(?P<secret>[\w.~+/-]{{16,}}+={{0,3}})",
        lambda value: is_mixed(value) and is_real(value),
    ),
    _format(
        "authorization",
        "authorization",
        rf"(?i:authorization)(?:{QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{QUOTE})?(?i:basic|token|digest|apikey)\s{{1,4}}"
        r"(?P<secret>[\w.~+/-]{8,}+={0,3})",
        is_real,
    ),
    _format(
        "password",
        "curl",
        rf"{_START}curl\b[^\n]{{0,150}}?\s(?:-u|--user)[ =]?(?:{QUOTE})?[^\s:\"'<$]{{1,64}}:"
        r"(?P<secret>[^\s\"'\\]{3,200})",
        is_real,
    ),
    _format(
        "password",
        "login",
        rf"{_START}login{_GAP}[^\s\\]{{1,100}}{_GAP}(?:account{_GAP}[^\s\\]{{1,100}}{_GAP})?password{_GAP}(?P<secret>[^\s\\\"']{{3,200}}+)",
        is_real,
    ),
)

_PEM_END = re.compile(rf"-----END {_KEY_NAME}")
_PEM_TAIL = re.compile(
    rf"(?:[nrt]\\|{_ESCAPED_GLUE}){{0,40}}+[A-Za-z0-9+/=]{{1,80}}+(?:{_ESCAPED_GLUE}{{1,40}}+[A-Za-z0-9+/=]{{40,80}}+)++"
)
"""The end of a key without its beginning, read backwards."""


def without_pem_tails(text: str) -> str:
    """The text without private keys whose first lines are missing, as in the tail of a file."""
    out, at = [], 0
    for end in _PEM_END.finditer(text):
        found = _PEM_TAIL.match(text[max(at, end.start() - 8_000) : end.start()][::-1])
        if found is not None:
            first = end.start() - found.end()
            first += text[first - 1 : first + 1] == "\\n"  # the line end of JSON before the first line
            out += [text[at:first], mark("private key")]
            at = end.end()
    return "".join([*out, text[at:]])
