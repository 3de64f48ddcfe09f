"""Secrets without a recognisable format: a word before them tells what they are. In doubt, the value goes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.redaction.formats import QUOTE, Span, is_drawn, is_mixed, is_real, turns
from context_summarize.redaction.words import CJK, CODE_LINE, FOLLOWS, JOINTS, ORDINARY, PREDICATE, telling

_WIDE_SIGNS = r"\u3001-\u303f\uff01-\uff5e\u201c-\u201f\u00ab\u00bb"
_BARE = rf"[^\s\"'`\\,;&<>()\{{\}}\[\]|={_WIDE_SIGNS}]"
_MORE = rf"[^\s\"'`\\,;<>()\{{\}}\[\]{_WIDE_SIGNS}]"
_LOOKED_AT = 120
"""Characters by which a value is judged; the rest of a longer one is read only if it is a secret."""
_CLOSED = rf"{QUOTE}?[\"'`\]*_]{{0,4}}+(?:\[\w{{0,20}}\]|\s{{1,2}}\([\w ,./:-]{{1,40}}\))?\*{{0,2}}\s{{0,8}}"
"""From the word to the sign: what closes it, the length of an array, a remark in brackets."""
_SIGN = r"(?:=>|:=|={1,3}|:(?:\s?&?[A-Za-z]\w{0,20}\s?=(?=[ \t]?[^\s=]))?|->(?=\s)|[\u2192\uff1a\uff1d]|(?P<bar>[|\u2502]))"
"""Signs of assignment; the last one is a bar in a table."""
_ROW_END = re.compile(r"[^\n]{6,400}?[|\u2502][ \t\r]{0,4}(?:\Z|[\n\"'`])")
_ASSIGNS = rf"{_CLOSED}{_SIGN}\*{{0,2}}\s{{0,8}}"
_PAIR = rf"{QUOTE}?[\s,:{{]{{1,40}}{QUOTE}?(?i:value){QUOTE}?\s{{0,4}}[:=]\s{{0,4}}"
_LISTED = rf"(?P<mark>{QUOTE}?)(?:,\s{{0,40}}|\s{{0,4}}\n\s{{0,40}}-\s{{1,4}})(?=(?P=mark))"
"""Between two arguments of a command in a list of JSON, YAML or source code."""
_ASIAN = r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
_WORD_OR_ADDRESS = r"(?:[\w.+-]{1,40}@[\w.-]{1,40}|[^\W\d_]{1,20}(?:['\u2019][^\W\d_]{1,20})?)"
_WORDS = rf"(?:['\u2019]?s)?(?:{_ASIAN}{{1,12}}+)?(?:[^\S\n]{{1,2}}{_WORD_OR_ADDRESS}){{0,4}}?"
_MEMBERS = rf"[^{{}}]{{0,80}}?{QUOTE}(?:value|text){QUOTE}\s?:\s?"
_SHAPED = (
    r"(?=[\"'`]?[!-~]{8})(?=[!-~]{0,40}[a-z])(?=[!-~]{0,40}\d)(?=[!-~]{0,40}[A-Z!#$^&*+?~])"
    r"(?=[!-~]{0,40}(?:[A-Za-z]\d{1,20}[A-Za-z]|\d[A-Za-z]{1,20}\d|[!#$^&*+?~]))"
)
"""Before a value that is hardly a word or a name: letters of both cases and digits that take turns, or a sign."""
_NEAR = rf"(?!\s{{1,2}}{_SHAPED})(?:{_WORDS}(?:(?<={_ASIAN})|[^\S\n]{{1,2}})|{_MEMBERS}){_SHAPED}"
"""One to four words of a sentence, or other members of an object, between the word and such a value."""
_JOINTS = {
    name: re.compile(
        f"(?P<pair>{_PAIR})|(?P<near>{_NEAR})|(?i:{joint % _ASSIGNS})"
        f"|(?P<tag>{QUOTE}?>)|(?P<next>(?P<listed>{_LISTED})|\\s{{1,4}})"
    )
    for name, joint in JOINTS.items()
}
_VALUE = re.compile(
    rf"(?P<quote>{QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\n\\]|\\\S){{3,512}}+)(?P=quote)"
    r"|[\u201e\u201c\u00ab\u201a\u2018\u300c\u300e]\s?(?P<set>[^\n\u201c-\u201f\u00ab\u00bb\u300c-\u300f]{3,100}?)\s?"
    r"[\u201c\u201d\u00bb\u2018\u2019\u300d\u300f]"
    rf"|{QUOTE}?(?P<bare>{_BARE}{{3}}{_MORE}{{0,{_LOOKED_AT - 3}}}+)"
)
_REST = re.compile(rf"(?:(?![&|]){_MORE}){{0,4000}}+")
_TO_BLANK = re.compile(rf"[^\s\"'`\\<>{_WIDE_SIGNS}]{{0,200}}+")
OF_A_KEY = re.compile(
    r"(?i:api|access|account|storage|private|auth|encryption|signing|master|shared|app(?:lication)?|admin|license|fernet"
    r"|hmac|jwt|secret|session|service[_-]?role|webhook|unseal)[ _-]?\Z"
)
"""Comes before `key` where the key is a secret; other keys have names in capitals."""
_CAPITALS = re.compile(r"[A-Z0-9]_\Z")
_OTHER_KEY = re.compile(r"(?<![A-Za-z])(?!public|primary|foreign|cache|sort|partition|object)[a-z][a-z0-9]*_\Z")
"""Before `key` in small letters, where a value of small letters, capitals and digits is a secret."""
_MANY_KINDS = re.compile(r"(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{16,}+(?![/+:])")
_MARK = re.compile(r"\[redacted: [\w ]*\Z")
_FLAG = re.compile(r"(?<![\w-])--?[\w-]*\Z")
_PAGING = re.compile(r"(?i:next|prev|page|continuation|sync|cancellation|pagination|resume)[_-]?\Z")
_PATH_OR_URL = re.compile(r"(?:\.{0,2}|~)/|[A-Za-z][\w+.-]*:/|@/")
_KNOWN_NAME = re.compile(r"[^/@]*(?:/|@[\w-]*\.|\.\w{1,5}\Z)|[A-Za-z]+\d{1,2}(?:[A-Z][a-z]{2,})+\Z")
"""A path, a mail address, a file, a host, or a product such as `Windows10Pro`."""
_NAME = re.compile(
    r"[a-z]+(?:[._/:-][a-z]+)*[._-]?\d{0,2}|[A-Z]+\d{0,2}(?:_[A-Z0-9]+)+|[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)*[A-Z]?\d{0,2}"
)
_OF_ANOTHER = re.compile(
    r"(?i)\b(?:user|customer|order|account|tenant|commit|ticket|issue|bug|pr|build|model|version|on|per|with|by)\s{1,2}\Z"
)
"""Before a value that names another thing than a secret, as in `reset the password for customer C4f9K2x1`."""
_PROSE_VALUE = re.compile(r"[\w.~+/=-]+")
"""Values that a sentence may give a key or a token."""
QUOTES = tuple("\"'`\u201e\u201c\u00ab\u201a\u2018\u300c\u300e")
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")
_WORD = re.compile(r"[^\W\d_]|\d{4}")
_TECHNICAL = re.compile(r"(?i)(?:sha|md|base|utf|aes|hmac|oauth|argon|pbkdf|ipv|rfc|tls|v)[-_]?\d|bcrypt")
_ASCII = re.compile(r"[!-~]*")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+")
_COMPOUND = re.compile(r"_?[a-z]+(?:_[a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z]+(?:_[A-Z]+)*")
"""A name of several words, or in capitals."""
_IN_A_CALL = re.compile(r"[\w\])]\([^()\n]*\Z")
_OF_OBJECT = re.compile(r"(?:self|this|cls)(?:\.|->)_*\Z")


def is_secret(value: str, after: str, password: bool, bare: bool) -> bool:
    """Returns True if the value looks drawn or chosen by a person, and like no name, path or code."""
    if password:
        is_odd = is_mixed(value) or (_SYMBOL.search(value) and any(map(str.isalpha, value)))
    else:
        is_odd = is_mixed(value) and not _NAME.fullmatch(value)
    is_code = after in ("(", "[", "{") or (_DOTTED.fullmatch(value) and not is_drawn(value))
    return bool(is_odd) and not _PATH_OR_URL.match(value) and not (bare and is_code) and is_real(value)


def is_weak(value: str, ordinary: re.Pattern[str] = ORDINARY) -> bool:
    """Returns True if the value may be a password, though it looks like words or a number."""
    words = value.split()
    if not 3 <= len(value.strip(" -:")) <= 60 or not _WORD.search(value) or not is_real(value):
        return False
    if _PATH_OR_URL.match(value) or (any(telling(value)) and (len(words) > 1 or _COMPOUND.fullmatch(value))):
        return False
    return 2 * sum(ordinary.match(word) is not None for word in words) < len(words)


def _is_named(word: re.Match[str], joint: re.Match[str], value: str, before: str, after: str) -> bool:
    """Returns True if the word, with the text before it and the character after the value, names a secret."""
    name = word[0].lower()
    if name.startswith("key") and word["en_other"]:
        in_capitals = word[0].startswith("KEY") and _CAPITALS.search(before)
        is_other = _OTHER_KEY.search(before) and _MANY_KINDS.match(value) and is_drawn(value)
        if not in_capitals and not is_other and not OF_A_KEY.search(before):
            return False
    if _MARK.search(before) or (joint["tag"] and after not in ("<", '"')) or (joint["listed"] and not _FLAG.search(before)):
        return False
    return not (name == "token" and _PAGING.search(before)) and not (name.startswith("pin") and not value.isdigit())


def _is_code(text: str, joint: re.Match[str], span: tuple[int, int], before: str) -> bool:
    """Returns True if a value without quotes is more likely a name in source code than a password."""
    value, after = text[slice(*span)], text[span[1] : span[1] + 2]
    if after[:1] in ("(", "[", "{") or _DOTTED.fullmatch(value) or any(telling(value)):
        return True
    line, sign = before[before.rfind("\n") + 1 :], joint["sign"] or ""
    if _IN_A_CALL.search(line) or CODE_LINE.match(line) or _OF_OBJECT.search(before):
        return True
    is_spaced, mark = sign[-1:].isspace(), sign.strip("\"'`*] \t")
    if mark in (":=", "==", "===") or (is_spaced and _COMPOUND.fullmatch(value)):
        return True
    if mark.startswith("="):  # `x = found;`, and an argument on a line of its own
        return (is_spaced and after[:1] == ";") or (after == ",\n" and line[:1].isspace())
    return sign[:1] in ("'", '"') and after[:1] in (",", "}")  # `{"password": found}`


def _is_password(text: str, joint: re.Match[str], span: tuple[int, int], before: str, language: str) -> bool:
    """Returns True if the value is a password by its looks, or by its place however weak it looks."""
    value, after, quoted = text[slice(*span)], text[span[1] : span[1] + 1], text[span[0] - 1 : span[0]] in QUOTES
    strong = len(value) >= 6 and " " not in value and is_secret(value[:_LOOKED_AT], after, True, not quoted)
    if joint["near"]:
        return strong and not _TECHNICAL.match(value) and not _KNOWN_NAME.match(value)
    if joint["next"]:
        if _FLAG.search(before):
            return (strong or is_weak(value)) and not value.startswith("--") and (quoted or not _COMPOUND.fullmatch(value))
        is_chosen = strong and after not in ("(", "[", "{", ":", "=") and not _TECHNICAL.match(value)
        return is_chosen or (quoted and is_weak(value))
    if strong:
        return not (joint["prose"] and _TECHNICAL.match(value))
    if joint["prose"]:
        goes_on = language in CJK and not FOLLOWS.match(text, span[1])
        return is_weak(value, PREDICATE) and len(value) > 3 and (quoted or not (joint["prose"] == "-" or goes_on))
    if not is_weak(value) or (joint["bar"] and not quoted):
        return False
    return bool(quoted or joint["pair"] or joint["tag"]) or not _is_code(text, joint, span, before)


def _is_said(joint: re.Match[str]) -> bool:
    """Returns True if a sentence joins name and value."""
    return joint["prose"] is not None or joint["near"] is not None


def _run(pattern: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Returns where a run that begins here ends."""
    found = pattern.match(text, at, end)
    return found.end() if found else at


def _value(text: str, at: int, name: str, joint: re.Match[str]) -> tuple[int, int] | None:
    """Returns where the value begins and ends, whole: a part of it would be left behind."""
    if not (found := _VALUE.match(text, at)):
        return None
    first, end = found.span(found.lastgroup or 0)
    if found["bare"] is None:
        return first, end
    is_password = not name.endswith("_other")
    if name[:2] in CJK and _is_said(joint):
        end = _run(_ASCII, text, first, end)
    elif is_password and (_is_said(joint) or (joint["sign"] or "")[-1:].isspace()) and text[end : end + 1] not in "([{":
        end = _run(_TO_BLANK, text, first, len(text))
    value = text[first:end]
    # In a URL or a connection string `&` separates the settings; elsewhere it may be part of a password.
    if not is_password or joint["bar"] or (joint["sign"] or "")[:1] == "=":
        value = value.partition("&")[0].partition("|")[0]
    return first, first + len(value.rstrip(".,;:)]}*"))


def _after(text: str, word: re.Match[str]) -> Span | None:
    """Returns the secret after a telling word, if there is one."""
    name = word.lastgroup or ""
    joint = _JOINTS[name[:2]].match(text, word.end())
    # A table's row ends with a bar, unlike a pipe.
    if not joint or (joint["bar"] and not _ROW_END.match(text, joint.end("bar"))):
        return None
    if not (span := _value(text, joint.end(), name, joint)):
        return None
    value, after = text[slice(*span)], text[span[1] : span[1] + 1]
    before = text[max(0, word.start() - 80) : word.start()]
    if not _is_named(word, joint, value, before, after):
        return None
    if joint["near"] and _OF_ANOTHER.search(text, max(0, span[0] - 20), span[0]):
        return None
    if not name.endswith("_other"):
        kind = "secret" if "secret" in word[0].lower() else "password"
        return Span(*span, kind) if _is_password(text, joint, span, before, name) else None
    is_flag, is_like = _FLAG.search(before), _PROSE_VALUE.fullmatch(value) and turns(value) > 2
    if (_is_said(joint) and not is_like) or (joint["next"] and not is_flag):
        return None
    bare = text[span[0] - 1 : span[0]] not in QUOTES
    if len(value) < (8 if is_like else 12) or not is_secret(value[:_LOOKED_AT], after, False, bare):
        return None
    return Span(*span, "secret")


def values(text: str) -> Iterator[Span]:
    """Finds secrets that a word before them names."""
    end = 0
    for word in telling(text):
        # A rejected value may itself begin with such a word.
        if word.start() >= end and (span := _after(text, word)):
            is_long = span.end - span.first == _LOOKED_AT
            end = _run(_REST, text, span.end, len(text)) if is_long else span.end
            yield Span(span.first, end, span.kind)
