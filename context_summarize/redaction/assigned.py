"""Secrets without a recognisable format: a word before them identifies them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.redaction.formats import QUOTE, Span, is_drawn, is_mixed, is_real, turns

NAMES = ("pass", "pwd", "secret", "token", "_auth", "credential", "key")
"""A text without these, in lower case, holds no assigned secret."""
_BARE = r"[^\s\"'`\\,;&<>(){}\[\]|=]"
_MORE = r"[^\s\"'`\\,;<>(){}\[\]]"
_LOOKED_AT = 120
"""Characters by which a value is judged; the rest of a longer one is looked for only where it is a secret."""
_BETWEEN = rf"(?:{QUOTE})?[\"'`\]*_]{{0,4}}+(?:\[\w{{0,20}}\]|\s{{1,2}}\([\w ,./:-]{{1,40}}\))?\*{{0,2}}\s{{0,8}}"
"""From the word to the sign: what closes it, the length of an array, a remark in brackets."""
_SIGN = r"(?:=>|:=|={1,3}|:(?:\s?&?[A-Za-z]\w{0,20}\s?=(?!=))?|->(?=\s)|[\u2192\uff1a\uff1d]"
_SIGN += r"|(?P<bar>[|\u2502])(?=[^\n]{6,400}?[|\u2502][ \t\r]{0,4}(?:\Z|\n|\\{1,4}[nr]|[\"'`])))"
"""Signs of assignment; the last one is a bar in a table, whose row ends with a bar."""
_ASSIGNED = re.compile(
    r"(?P<word>(?i:pass(?:word|wd|phrase|code)|(?<=_)pass(?=[\"']?\s{0,2}[:=])|pwd|token|credentials?|_auth"
    r"|secret(?:[_-]?access)?(?:[_-]?key(?:[_-]?base)?)?|key(?:[ _-]?private|[ _-]\d{1,2})?))"
    rf"(?:(?P<sign>{_BETWEEN}{_SIGN}\*{{0,2}}\s{{0,8}})"
    rf"|(?P<pair>{QUOTE}\s{{0,4}},\s{{0,4}}{QUOTE}(?i:value){QUOTE}\s{{0,4}}:\s{{0,4}})"
    r"|(?P<tag>>)|(?P<option>\s{1,4})(?!\s|is\s|was\s)|(?P<prose>\s{1,4}(?:is|was):?\s{1,4}))"
    rf"(?:(?P<quote>{QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\s\\]|\\\S){{6,512}}+)(?P=quote)"
    rf"|(?:{QUOTE})?(?P<bare>{_BARE}{{6}}{_MORE}{{0,{_LOOKED_AT - 6}}}+))"
)
_WORD = re.compile(r"[PpTtCc_SsKk](?i:ass|wd|oken|redential|auth|ecret|ey)")
"""Where such a word may begin: this is found much faster than the whole."""
_REST = re.compile(rf"{_MORE}{{0,4000}}+")
_OF_A_KEY = re.compile(
    r"(?i:api|access|account|storage|private|auth|encryption|signing|master|shared|app(?:lication)?|admin|license|fernet"
    r"|hmac|jwt|secret|session|service[_-]?role|webhook|unseal)[ _-]?\Z"
)
"""Stands before `key` where the key is a secret; other keys have names in capitals."""
_CAPITALS = re.compile(r"[A-Z0-9]_\Z")
_OTHER_KEY = re.compile(r"(?<![A-Za-z])(?!public|primary|foreign|cache|sort|partition|object)[a-z][a-z0-9]*_\Z")
"""Before `key` in small letters, where a value of small letters, capitals and digits is a secret."""
_MANY_KINDS = re.compile(r"(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{16,}+(?![/+:])")
_CELL = re.compile(r"[|\u2502][\w \t*`\"'-]*\Z")
_MARK = re.compile(r"\[redacted: [\w ]*\Z")
_OPTION = re.compile(r"--[\w-]*\Z")
_PAGING = re.compile(r"(?i:next|prev|page|continuation|sync|cancellation|pagination|resume)[_-]?\Z")
_PATH_OR_URL = re.compile(r"(?:\.{0,2}|~)/|[A-Za-z][\w+.-]*:/|@/")
_CODE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+")
_NAME = re.compile(
    r"[a-z]+(?:[._/:-][a-z]+)*[._-]?\d{0,2}|[A-Z]+\d{0,2}(?:_[A-Z0-9]+)+|[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)*[A-Z]?\d{0,2}"
)
_IN_PROSE = re.compile(r"[\w.~+/=-]+")
"""What a sentence may say that a key or a token is, if letters and digits take turns in it."""
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")


def _is_named(found: re.Match[str], before: str, after: str) -> bool:
    """Does the word, with what stands before it and after the value, name a secret?"""
    word = found["word"].lower()
    if word.startswith("key"):
        in_capitals = found["word"].startswith("KEY") and _CAPITALS.search(before)
        value = found["bare"] or found["quoted"]
        is_other = _OTHER_KEY.search(before) and _MANY_KINDS.match(value) and is_drawn(value)
        if not in_capitals and not is_other and not _OF_A_KEY.search(before):
            return False
    if _MARK.search(before) or (found["bar"] and not _CELL.search(before)):
        return False
    if found["tag"] and after != "<":
        return False
    if found["option"] and not _OPTION.search(before):
        return False
    return not (word == "token" and _PAGING.search(before))


def _is_secret(value: str, after: str, password: bool, bare: bool) -> bool:
    """Does the value look drawn or chosen by a person, and like no name, path or code?"""
    mixed, is_name = is_mixed(value), _NAME.fullmatch(value) is not None
    if password:
        is_odd = not bare and len(value) >= 12 and value not in (value.lower(), value.upper()) and not is_name
        is_odd = is_odd or bool(_SYMBOL.search(value) and any(map(str.isalpha, value)))
    else:
        mixed, is_odd = mixed and not is_name, len(set(value)) >= 20 and not is_name
    if not (mixed or is_odd) or _PATH_OR_URL.match(value):
        return False
    is_code = _CODE.fullmatch(value) and not is_drawn(value)
    if bare and (after in ("(", "[", "{") or is_code):
        return False
    return is_real(value)


def _next(text: str, start: int) -> re.Match[str] | None:
    """The next word with what is assigned to it."""
    words = _WORD.finditer(text, start)
    return next((found for word in words if (found := _ASSIGNED.match(text, word.start()))), None)


def assigned(text: str) -> Iterator[Span]:
    """Places of secrets that a word before them names."""
    start = 0
    while found := _next(text, start):
        word, bare = found["word"].lower(), found["bare"] is not None
        password = word.startswith(("pass", "pwd"))
        first, value = found.start("bare" if bare else "quoted"), found["bare"] or found["quoted"]
        if bare and len(value) == _LOOKED_AT and _is_secret(value, "", password, bare):
            rest = _REST.match(text, found.end())
            value += rest[0] if rest else ""
        if bare:
            # In a URL or a connection string `&` separates the settings; elsewhere it may be part of a password.
            if not password or found["bar"] or found["sign"] == "=":
                value = value.partition("&")[0].partition("|")[0]
            value = value.rstrip(".:*")
        end = first + len(value)
        before, after = text[max(0, found.start() - 80) : found.start()], text[end : end + 1]
        in_prose = found["prose"] is not None and not password
        is_long = len(value) >= (6 if password else 8 if in_prose else 12 if word.startswith("secret") else 16)
        is_like = not in_prose or (_IN_PROSE.fullmatch(value) and turns(value) > 2)
        if (
            is_long
            and is_like
            and _is_named(found, before, after)
            and _is_secret(value[:_LOOKED_AT], after, password, bare)
        ):
            yield Span(first, end, "password" if password else "secret")
            start = end
        else:
            # The rejected value may itself begin with such a word.
            start = max(found.end("word"), first)
