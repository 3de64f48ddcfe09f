"""Secrets without a recognisable format: a word before them, or the header of a cookie, identifies them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from context_summarize.redaction.formats import QUOTE, Span, is_drawn, is_mixed, is_real

NAMES = ("pass", "pwd", "secret", "token", "_auth", "credential", "key")
"""A text without these, in lower case, holds no assigned secret."""
_BARE = r"[^\s\"'`\\,;&<>(){}\[\]|=]"
_ASSIGNED = re.compile(
    r"(?P<word>(?i:pass(?:word|wd|phrase|code)|(?<=_)pass(?=[\"']?\s{0,2}[:=])|pwd|token|credentials?|_auth"
    r"|secret(?:[_-]?access)?(?:[_-]?key(?:[_-]?base)?)?|key(?:[ _-]?private|[ _-]\d{1,2})?))"
    rf"(?:(?P<sign>(?:{QUOTE})?\s{{0,8}}(?:=>|:=|={{1,3}}|:)\*{{0,2}}\s{{0,8}})"
    rf"|(?P<pair>{QUOTE}\s{{0,4}},\s{{0,4}}{QUOTE}(?i:value){QUOTE}\s{{0,4}}:\s{{0,4}})"
    r"|(?P<tag>>)|(?P<option>\s{1,4})(?!\s|is\s|was\s)|(?P<prose>\s{1,4}(?:is|was):?\s{1,4}))"
    rf"(?:(?P<quote>{QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\s\\]|\\\S){{6,512}}+)(?P=quote)"
    rf"|(?:{QUOTE})?(?P<bare>{_BARE}{{6,200}}+={{0,2}}))"
)
_OF_A_KEY = re.compile(
    r"(?i:api|access|account|storage|private|auth|encryption|signing|master|shared|app(?:lication)?|admin|license|fernet"
    r"|hmac|jwt|session|service[_-]?role|webhook|unseal)[ _-]?\Z"
)
"""Stands before `key` where the key is a secret; other keys have names in capitals."""
_CAPITALS = re.compile(r"[A-Z0-9]_\Z")
_MORE = re.compile(rf"(?:{_BARE}|=)*+")
_MORE_OF_PASSWORD = re.compile(rf"(?:{_BARE}|[=&|])*+")
_OPTION = re.compile(r"--[\w-]*\Z")
_PAGING = re.compile(r"(?i:next|prev|page|continuation|sync|cancellation|pagination|resume)[_-]?\Z")
_TYPE = re.compile(r"\w::\w{1,60}::\w*\Z|\"\w{1,20}::\w*\Z")
_PATH_OR_URL = re.compile(r"(?:\.{0,2}|~)/|[A-Za-z][\w+.-]*:/|@/")
_CODE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+")
_NAME = re.compile(
    r"[a-z]+(?:[._/:-][a-z]+)*[._-]?\d{0,2}|[A-Z]+\d{0,2}(?:_[A-Z0-9]+)+|[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)*[A-Z]?\d{0,2}"
)
_VARIABLE = re.compile(r"(?=[A-Za-z_]\w*\Z)(?i:.*(?:pass|pwd|secret|token|key|input|field|value|form|param|args|env))")
_SCOPE = "/aws4_request"
"""Ends a credential scope of AWS, which holds no secret."""
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")


def _entropy(value: str) -> float:
    """Bits per character, from the frequency of the value's own characters."""
    counts = Counter(value).values()
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)


def _is_password(value: str, bare: bool) -> bool:
    if bare and _VARIABLE.match(value):
        return False
    if is_mixed(value) or (_SYMBOL.search(value) and any(map(str.isalpha, value))):
        return True
    return not bare and len(value) >= 12 and value not in (value.lower(), value.upper()) and not _NAME.fullmatch(value)


def _is_key(word: str, value: str) -> bool:
    if len(value) < (12 if word.startswith("secret") else 16) or _NAME.fullmatch(value):
        return False
    return _entropy(value) >= (2.8 if is_mixed(value) else 4.2)


def _is_named(found: re.Match[str], before: str, after: str) -> bool:
    """Does the word, with what stands before it and after the value, name a secret?"""
    word = found["word"].lower()
    if word.startswith("key"):
        in_capitals = found["word"].startswith("KEY") and _CAPITALS.search(before)
        if not in_capitals and not _OF_A_KEY.search(before):
            return False
    if (found["tag"] and after != "<") or (found["prose"] and not word.startswith(("pass", "pwd"))):
        return False
    if found["option"] and not _OPTION.search(before):
        return False
    return not (word == "token" and _PAGING.search(before)) and not _TYPE.search(before)


def _is_secret(found: re.Match[str], value: str, after: str) -> bool:
    word, bare = found["word"].lower(), found["bare"] is not None
    if len(value) < 6 or not is_real(value) or _PATH_OR_URL.match(value) or value.endswith(_SCOPE):
        return False
    is_code = _CODE.fullmatch(value) and not is_drawn(value)
    if bare and (after in ("(", "[", "{") or is_code):
        return False
    return _is_password(value, bare) if word.startswith(("pass", "pwd")) else _is_key(word, value)


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
        after = text[end : end + 1]
        before = text[max(0, found.start() - 80) : found.start()]
        if not _is_named(found, before, after) or not _is_secret(found, text[first:end], after):
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


_HEADER = re.compile(r"(?i:cookies?|(?<=\s)-b)[\"']{0,2}\s{0,3}[:=]?\s{0,3}[\"']?(?=[\w.-]{1,60}=)")
_PAIR = re.compile(r"[\w.-]{1,60}=\"?(?P<value>[^\s;,\"'\\]{0,4096}+)\"?(?:;\s{0,3})?")


def cookies(text: str) -> Iterator[Span]:
    """Places of the values of cookies that look drawn, in headers, in options of tools and in logs."""
    at = 0
    for header in _HEADER.finditer(text):
        at = max(at, header.end())
        while (pair := _PAIR.match(text, at)) is not None:
            if len(pair["value"]) >= 16 and is_drawn(pair["value"]) and is_real(pair["value"]):
                yield Span(*pair.span("value"), "cookie")
            at = pair.end()
