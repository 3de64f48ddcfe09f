"""Secrets with a recognisable format: prefixes, blocks, headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from context_summarize.redaction.services import ACCESS, UUID
from context_summarize.redaction.services import END as _END
from context_summarize.redaction.services import START as _START
from context_summarize.redaction.spans import Span
from context_summarize.redaction.values import Check, is_discord, is_drawn, is_login, is_mixed, is_password, is_real

QUOTE = r"\\{0,3}[\"'`]"
_GAP = r"(?:\s|\\[nrt]){1,8}"
# Text between the lines of a key: line ends, escaped line ends of JSON, quotes of source code.
_GLUE = r"(?:[\s\"',>|]|\\{1,4}+[nrt]?+)"
_HASH = (
    r"\$(?:1|apr1|2[abxy]|5|6|7|y|gy|argon2(?:id|i|d)|scrypt)\$(?:v=\d{1,3}\$)?(?:[\w=,-]{1,60}\$)?(?:[\w./+=-]{1,40}\$)?"
    r"[A-Za-z0-9./+]{22,100}+"
)
"""A password as crypt(3), bcrypt or argon2 keep it."""
_LOGIN = r"[^\s:\"'<$]{1,64}:"
_PIPED = (
    rf"\b(?:echo|printf)\s{{1,4}}(?:-n\s{{1,4}})?(?:{QUOTE})?(?P<secret>[^\s\"'`\\|$]{{6,200}}+)(?:{QUOTE})?\s{{0,4}}\|"
    r"[^\n|]{0,150}?--password-stdin"
)
_KEY_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"


@dataclass(frozen=True, slots=True)
class Format:
    """One format. The group `secret` is replaced, or the whole match if there is no such group."""

    kind: str
    needs: tuple[str, ...]
    """Every match contains one of these; a text without them needs no search.

    A word with a capital is looked for as it is, another one in any case.
    """
    pattern: re.Pattern[str]
    check: Check | None = None
    """A further condition for the secret, if the pattern is not enough."""
    run: int = 20
    """Every match holds at least so many characters without a blank between them."""

    def places(self, text: str) -> Iterator[Span]:
        """Places of this format's secrets in a text, in order."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for found in self.pattern.finditer(text):
            if self.check is None or self.check(found[group]):
                yield Span(*found.span(group), self.kind)


def _after(command: str, option: str, before: str = "") -> str:
    """A pattern for the secret that an option of a command holds."""
    return (
        rf"{_START}{command}\b[^\n]{{0,150}}?\s{option}(?:{QUOTE})?{before}"
        r"(?P<secret>[^\s\"'\\$<-][^\s\"'\\]{2,200})"
    )


def _format(kind: str, needs: str, pattern: str, check: Check | None = None, *, run: int = 20) -> Format:
    return Format(kind, tuple(needs.split()), re.compile(pattern), check, run)


FORMATS = (
    # Blocks, also on one line, which `keys.blocks` does not read; a truncated key has no end line.
    _format(
        "private key",
        "-----begin",
        rf"-----BEGIN {_KEY_NAME}"
        rf"(?:{_GLUE}{{0,20}}+(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,200}}+){{0,8}}+"
        rf"(?:{_GLUE}{{0,80}}+[A-Za-z0-9+/=]{{16,}}+)++(?:[A-Za-z0-9+/=\s\\\"',>|]{{0,200}}?-----END {_KEY_NAME})?",
        run=0,
    ),
    _format(
        "age key",
        "age-secret-key- age-plugin-",
        rf"{_START}AGE-(?:SECRET-KEY(?:-PQ)?|PLUGIN-[A-Z0-9]{{1,20}})-1[0-9A-Z]{{40,}}+",
    ),
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
    _format("Google API key", "aiza", rf"{_START}AIza[\w-]{{35}}{_END}"),
    _format("Google OAuth secret", "gocspx-", rf"{_START}GOCSPX-[\w-]{{20,}}+"),
    _format("Google OAuth token", "ya29. 1//0", rf"{_START}(?:ya29\.[\w-]{{20,}}+|1//0[\w-]{{30,}}+)"),
    _format(
        "Azure storage key",
        "accountkey",
        r"(?i:AccountKey)[\"'\\]{0,4}\s{0,4}[=:]\s{0,4}[\"'\\]{0,4}(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})",
    ),
    _format("Azure SAS signature", "sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/_-]{40,}+={0,2})"),
    _format("Azure client secret", "q~", rf"{_START}[\w.~-]{{3}}\dQ~[\w~-]{{31,34}}{_END}"),
    _format(
        "signature",
        "signature=",
        r"(?<=[?&;])(?:X-(?:Amz|Goog)-)?Signature=(?P<secret>[A-Za-z0-9%+/_~-]{60,}+={0,2})",
    ),
    _format("Azure function key", "code=", r"(?<=[?&;])code=(?P<secret>[\w-]{52,60}==)"),
    _format("DigitalOcean token", "_v1_", rf"{_START}do[opr]_v1_[a-f0-9]{{64}}{_END}"),
    # Forges and registries.
    _format(
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{30,}}+|ghs_\d{{1,12}}_eyJ[\w.-]{{30,}}+|github_pat_\w{{30,}}+)",
    ),
    _format(
        "GitLab token",
        "glpat- glptt- gldt- glrt- glrtr- glcbt- glsoat- glft- glimt- glagent- gloas- glffct- glwt- gr1348941",
        rf"{_START}(?:gl(?:pat|ptt|dt|rt|rtr|cbt|soat|ft|imt|agent|oas|ffct|wt)-(?:t\d_)?[\w-]{{19,}}+"
        r"(?:\.[a-z0-9]{2}\.[a-z0-9]{7,12}|\.[a-z0-9]{7,12})?|GR1348941[\w-]{20,60}+)",
    ),
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
        "xox xapp- xwfp-",
        rf"{_START}(?:xoxd-[\w%+/=-]{{10,}}+|xox[a-z](?:\.xox[a-z])?-[\w-]{{10,}}+|xapp-\d-[\w-]{{20,}}+|xwfp-[\w-]{{20,}}+)",
        is_mixed,
        run=0,
    ),
    _format(
        "Slack webhook", "hooks.slack", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/+-]{20,}+)"
    ),
    _format("Teams webhook", "webhook.office.com", r"webhook\.office\.com/(?P<secret>[\w/@-]{60,}+)"),
    _format("Zapier webhook", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/catch/(?P<secret>[\w/]{10,}+)"),
    _format(
        "Discord webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/(?P<secret>[\w-]{30,}+)",
    ),
    _format(
        "Discord token",
        ".",
        rf"{_START}[MNO][\w-]{{22,28}}\.[\w-]{{6,7}}\.[\w-]{{27,45}}{_END}",
        is_discord,
        run=57,
    ),
    _format("Telegram token", ":aa", r"(?<!\d)\d{8,10}:AA[\w-]{32,34}(?![A-Za-z0-9])"),
    # Models.
    _format("Anthropic key", "sk-ant-", rf"{_START}sk-ant-[\w-]{{20,}}+"),
    _format(
        "OpenAI key",
        "sk-",
        rf"{_START}sk-(?:[A-Za-z0-9]{{20,}}+|(?:proj|svcacct|admin|None|or-v1|kimi|cp|helicone|litellm)-[\w-]{{20,}}+)",
        is_mixed,
    ),
    _format("Hugging Face token", "hf_ api_org_", rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,}}+"),
    # Payment, mail, telephone, shops.
    _format(
        "Stripe key",
        "sk_ rk_ whsec_",
        rf"{_START}(?:[sr]k_(?:live|test|org)_(?:live_|test_)?[A-Za-z0-9]{{16,}}+|whsec_[A-Za-z0-9+/=]{{24,}}+)",
    ),
    _format("Twilio key", "AC", rf"{_START}AC[0-9a-f]{{32}}[\"', :]{{1,6}}(?P<secret>[0-9a-f]{{32}}){_END}"),
    _format("SendGrid key", "sg.", rf"{_START}SG\.[\w-]{{16,32}}\.[\w-]{{30,64}}{_END}"),
    _format("Twilio key", "SK", rf"{_START}SK[0-9a-f]{{32}}{_END}"),
    _format(
        "Mailgun key",
        "key- -",
        rf"{_START}(?:key-[0-9a-f]{{32}}{_END}|[0-9a-f]{{32}}-[0-9a-f]{{8}}-[0-9a-f]{{8}}(?!-?[0-9a-f]){_END})",
        run=36,
    ),
    _format("Shopify token", "shp", rf"{_START}shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{{32}}{_END}"),
    _format("access token", ".", rf"{_START}[a-f0-9]{{32}}\.(?=[A-Za-z]{{0,15}}\d)[A-Za-z0-9]{{16}}{_END}", run=49),
    _format("access token", "st.", rf"{_START}st\.{UUID}\.[a-f0-9]{{32}}\.[a-f0-9]{{32}}", run=105),
    _format("access token", "pat", rf"{_START}pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}{_END}", run=82),
    *(_format("access token", needs, pattern, is_mixed, run=24) for needs, pattern in ACCESS),
    # Formats that many services share.
    _format("JWT", "eyj", rf"{_START}eyJ[\w-]{{10,1000}}+\.(?:\.|[\w-]{{10,}}+\.)[\w-]{{8,}}+(?:\.[\w-]++){{0,2}}"),
    _format(
        "password",
        "://",
        r"://[^\s:/@?#\"'<>\\]{0,128}:(?P<secret>[^\s/?#\"'<>\\]{1,256})@(?=[\w.\[-])",
        is_real,
        run=0,
    ),
    _format("access token", "://", r"://(?P<secret>[A-Za-z0-9_.~-]{20,}+)@(?=[\w.\[-])", is_drawn),
    _format(
        "access token",
        "alchemy.com infura.io appid=",
        r"(?:\.g\.alchemy\.com/v2/|infura\.io/v3/|[?&]appid=)(?P<secret>[\w-]{24,}+)",
        is_drawn,
    ),
    _format(
        "authorization",
        "bearer",
        rf"{_START}(?i:bearer{_GAP})(?:{QUOTE})?(?P<secret>[\w.~+/-]{{16,}}+={{0,3}})",
        is_password,
        run=0,
    ),
    _format(
        "authorization",
        "authorization",
        rf"(?i:authorization)(?:{QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{QUOTE})?(?i:basic|token|digest|apikey)\s{{1,4}}"
        r"(?P<secret>[\w.~+/-]{8,}+={0,3})",
        is_real,
        run=0,
    ),
    _format(
        "authorization",
        "authorization",
        rf"(?i:authorization)(?:{QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{QUOTE})?[A-Za-z][\w-]{{1,24}}\s{{1,4}}"
        r"(?P<secret>[\w.~+/=-]{20,}+)",
        lambda value: is_drawn(value) and is_real(value),
    ),
    _format(
        "registry login",
        "auth",
        rf"(?:{QUOTE})auth(?:{QUOTE})\s{{0,4}}:\s{{0,4}}(?:{QUOTE})(?P<secret>[A-Za-z0-9+/]{{12,}}+={{0,2}})(?:{QUOTE})",
        is_login,
        run=12,
    ),
    _format("password hash", "$", _HASH, run=20),
    _format(
        "access token",
        "rzp_ npg_",
        rf"{_START}(?:rzp_(?:live|test)_[A-Za-z0-9]{{14}}{_END}|npg_[A-Za-z0-9]{{12,}}+)",
        is_mixed,
        run=16,
    ),
    _format(
        "password",
        "variable",
        r"variable\s{1,4}\\{0,3}\"[\w-]{0,40}(?i:password|passwd|secret|token|key)[\w-]{0,40}\\{0,3}\"\s{0,4}\{[^{}]{0,400}?\bdefault\s{0,8}=\s{0,4}"
        r"\\{0,3}\"(?P<secret>[^\s\"\\]{6,200}+)",
        is_password,
        run=0,
    ),
    _format("wifi key", "psk=", rf"(?<![A-Za-z0-9])psk=(?:{QUOTE})?(?P<secret>[^\s\"'\\]{{8,64}})", is_password, run=0),
    _format(
        "password",
        "curl wget http",
        _after(r"(?:curl|https?|wget)", r"(?:-u|--user|-a|--auth)[ =]?", _LOGIN),
        is_real,
        run=0,
    ),
    _format("password", "mysql mariadb", _after(r"(?:mysql|mariadb)[\w-]{0,12}", "-p"), is_password, run=0),
    _format("password", "sshpass", _after("sshpass", "-p ?"), is_real, run=0),
    _format("password", "redis-cli", _after("redis-cli", "(?:-a|--pass) "), is_real, run=0),
    _format(
        "password",
        "login",
        _after(r"(?:docker|podman|helm|oras|crane|az|npm) (?:\w{1,20} )?login", r"-p[ =]?"),
        is_real,
        run=0,
    ),
    _format("password", "password-stdin", _PIPED, is_real, run=0),
    _format(
        "password",
        "pass:",
        rf"\s-pass(?:in|out)?\s{{1,4}}(?:{QUOTE})?pass:(?P<secret>[^\s\"'\\]{{3,200}})",
        is_real,
        run=0,
    ),
    _format(
        "password",
        "jdbc:oracle",
        r"jdbc:oracle:\w{1,10}:[\w$#]{1,60}/(?P<secret>[^\s@\"'\\]{3,100})@",
        is_real,
        run=0,
    ),
    _format(
        "password",
        ":543 :6543 :26257",
        r"(?m)^[^\s:]{1,100}:(?:543\d|6543|26257):[^\s:]{1,60}:[^\s:]{1,60}:(?P<secret>(?:[^\s:\\]|\\.){3,200})\r?$",
        is_real,
        run=0,
    ),
    _format(
        "password",
        "login",
        rf"{_START}login{_GAP}[^\s\\]{{1,100}}{_GAP}(?:account{_GAP}[^\s\\]{{1,100}}{_GAP})?password{_GAP}(?P<secret>[^\s\\\"']{{3,200}}+)",
        is_real,
        run=0,
    ),
)
