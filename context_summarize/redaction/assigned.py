"""Secrets without a recognisable format; a word before them identifies them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from context_summarize.redaction.formats import QUOTE
from context_summarize.redaction.spans import Span
from context_summarize.redaction.values import is_drawn, is_mixed, is_real

NAMES = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "_auth", "_pass", "credential", "key",
)  # fmt: skip
_BARE = r"[^\s\"'`\\,;&<>(){}\[\]|=]"
_ASSIGNED = re.compile(
    r"(?i:(?P<word>pass(?:word|wd|phrase|code)|(?<=_)pass(?=[\"']?\s{0,2}[:=])|pwd|secret(?:[_-]?access)?(?:[_-]?key(?:[_-]?base)?)?|token|credentials?|_auth"
    r"|(?:api|access|account|storage|private|auth|encryption|signing|master|shared|app(?:lication)?|admin"
    r"|license|fernet|hmac|jwt|session|service[_-]?role|webhook)[ _-]?key(?:[ _-]?(?:private|\d))?|apikey[_-]private"
    r"|unseal[ _-]key(?:[ _-]\d{1,2})?|(?-i:(?<=[A-Z0-9]_)KEY)))"
    rf"(?:(?P<sign>(?:{QUOTE})?\s{{0,8}}(?:=>|:=|={{1,3}}|:)\*{{0,2}}\s{{0,8}})"
    rf"|(?P<pair>{QUOTE}\s{{0,4}},\s{{0,4}}{QUOTE}(?i:value){QUOTE}\s{{0,4}}:\s{{0,4}})"
    r"|(?P<tag>>)|(?P<option>\s{1,4})(?!\s|is\s|was\s)|(?P<prose>\s{1,4}(?:is|was):?\s{1,4}))"
    rf"(?:(?P<quote>{QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\s\\]|\\\S){{6,512}}+)(?P=quote)"
    rf"|(?:{QUOTE})?(?P<bare>{_BARE}{{6,200}}+={{0,2}}))"
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
_VAULT = re.compile(r"s\.(?=[A-Za-z]*\d)[A-Za-z0-9]{24}")
"""A token of older Vault servers, which looks like an attribute."""
_VARIABLE = re.compile(r"(?i:[a-z_]\w*)")
_SPEAKS = re.compile(r"(?i:pass|pwd|secret|token|key|input|field|value|form|param|args|env)")
_TYPE = re.compile(r"\w::\w{1,60}::\w*\Z|\"\w{1,20}::\w*\Z")
_SCOPE = "/aws4_request"
"""Ends a credential scope of AWS, which holds no secret."""
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")


def _entropy(value: str) -> float:
    """Bits per character, from the frequency of the value's own characters."""
    counts = Counter(value).values()
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)


def _is_password(value: str, bare: bool) -> bool:
    if bare and _VARIABLE.fullmatch(value) and _SPEAKS.search(value):
        return False
    if is_mixed(value) or (_SYMBOL.search(value) and any(map(str.isalpha, value))):
        return True
    return not bare and len(value) >= 12 and value not in (value.lower(), value.upper()) and not _NAME.fullmatch(value)


def _is_key(word: str, value: str) -> bool:
    if len(value) < (12 if word.startswith("secret") else 16) or _NAME.fullmatch(value):
        return False
    return _entropy(value) >= (2.8 if is_mixed(value) else 4.2)


def _given_away(text: str, found: re.Match[str], value: str, after: str) -> bool:
    """Is this value, with this word before it, a secret?"""
    word, bare = found["word"].lower(), found["bare"] is not None
    before = text[max(0, found.start() - 80) : found.start()]
    known = word.startswith(("pass", "pwd"))
    if (found["tag"] and after != "<") or (found["prose"] and not known):
        return False
    if found["option"] and not _OPTION.search(before):
        return False
    if not is_real(value) or _PATH_OR_URL.match(value) or (word == "token" and _PAGING.search(before)):
        return False
    if _TYPE.search(before) or value.endswith(_SCOPE):
        return False
    if bare and (
        after in ("(", "[", "{") or (_CODE.fullmatch(value) and not is_drawn(value) and not _VAULT.fullmatch(value))
    ):
        return False
    return _is_password(value, bare) if known else _is_key(word, value)


def assigned(text: str) -> Iterator[Span]:
    """Places of secrets that a word before them names."""
    start = 0
    while found := _ASSIGNED.search(text, start):
        bare = found["bare"] is not None
        first, end = found.span("bare" if bare else "quoted")
        known = found["word"].lower().startswith(("pass", "pwd"))
        # In a URL or a connection string `&` separates the settings; elsewhere it may be part of a password.
        more = _MORE if not known or found["sign"] == "=" else _MORE_OF_PASSWORD
        if bare:
            end = _end(more, text, end, end + 200)
        value = text[first:end]
        if len(value) < 6 or not _given_away(text, found, value, text[end : end + 1]):
            # The rejected value may itself begin with such a word.
            start = max(found.end("word"), first)
            continue
        if bare:
            end = _end(more, text, end, len(text))
        yield Span(first, end, "password" if known else "secret")
        start = end


def _end(more: re.Pattern[str], text: str, end: int, limit: int) -> int:
    """The end of a value that continues after `end`, without the punctuation of a sentence."""
    rest = more.match(text, end, limit)
    end = rest.end() if rest else end
    while text[end - 1] in ".:*":
        end -= 1
    return end
