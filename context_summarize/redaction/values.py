"""Secrets without a recognisable format: a word before them tells what they are. In doubt, the value goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from context_summarize.redaction.formats import Span, is_mixed, is_real, turns
from context_summarize.redaction.words import CJK, JOINTS, is_ordinary, is_predicate, shapes, telling

_AT, _IN = shapes("values.at"), shapes("values.in")
_LOOKED_AT = 120
"""Characters by which a value is judged; the rest of a longer one is read only if it is a secret."""
QUOTES = tuple("\"'`\u201e\u201c\u00ab\u201a\u2018\u300c\u300e")


def is_secret(value: str, password: bool, bare: bool) -> bool:
    """Returns True if the value looks drawn or chosen by a person, and like no name, path or code."""
    if password:
        is_odd = is_mixed(value) or (_IN["symbol"].search(value.rstrip("?!")) and any(map(str.isalpha, value)))
    else:
        is_odd = is_mixed(value) and not _AT["name"].fullmatch(value)
    is_code = bare and _AT["dotted"].fullmatch(value) and turns(value) < 2
    return bool(is_odd) and not is_code and not _AT["path"].match(value) and is_real(value)


def is_weak(value: str, is_common: Callable[[str], bool] = is_ordinary) -> bool:
    """Returns True if the value may be a password, though it looks like words or a number."""
    if not 3 <= len(value.strip(" -:")) <= 60 or not _IN["word"].search(value) or not is_real(value):
        return False
    words = value.split()
    return not _AT["path"].match(value) and 2 * sum(map(is_common, words)) < len(words)


def is_named(word: re.Match[str], before: str) -> bool:
    """Returns True if the word, with the text before it, names a secret: not every key is one."""
    if _IN["mark"].search(before) or (word[0].lower() == "token" and _IN["paging"].search(before)):
        return False
    return not word[0].lower().startswith("key") or _IN["of_a_key"].search(before) is not None


def _is_code(text: str, joint: re.Match[str], span: tuple[int, int], before: str) -> bool:
    """Returns True if a value without quotes is more likely a name in source code than a password."""
    value, after, sign = text[slice(*span)], text[span[1] : span[1] + 2], joint["sign"] or ""
    if after[:1] in ("(", "[", "{") or _AT["dotted"].fullmatch(value) or any(telling(value)):
        return True
    if _AT["code_line"].match(before, before.rfind("\n") + 1):
        return True
    mark = sign.strip("\"'`*] \t")
    if mark in (":=", "==", "===") or (sign[-1:].isspace() and _AT["compound"].fullmatch(value)):
        return True
    return sign[:1] in ("'", '"') and after[:1] in (",", "}")  # `{"password": found}`


def _is_password(text: str, joint: re.Match[str], span: tuple[int, int], before: str) -> bool:
    """Returns True if the value is a password by its looks, or by its place however weak it looks."""
    value, quoted = text[slice(*span)], text[span[0] - 1 : span[0]] in QUOTES
    if len(value) >= 6 and " " not in value and is_secret(value[:_LOOKED_AT], True, not quoted):
        return not joint["near"] or not _AT["known_name"].match(value)
    if joint["near"] or not is_weak(value, is_predicate if joint["prose"] and not quoted else is_ordinary):
        return False
    if joint["next"] and _IN["flag"].search(before):
        return not value.startswith("--")
    if quoted or joint["pair"] or joint["tag"] or joint["prose"]:
        return quoted or joint["prose"] != "-"
    return not (joint["next"] or joint["bar"] or _is_code(text, joint, span, before))


def _run(pattern: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Returns where a run that begins here ends."""
    found = pattern.match(text, at, end)
    return found.end() if found else at


def _value(text: str, at: int, name: str, joint: re.Match[str]) -> tuple[int, int] | None:
    """Returns where the value begins and ends, whole: a part of it would be left behind."""
    if not (found := _AT["value"].match(text, at)):
        return None
    first, end = found.span(found.lastgroup or 0)
    if found["bare"] is None:
        return first, end
    if name[:2] in CJK and (joint["prose"] or joint["near"]):
        end = _run(_AT["ascii"], text, first, end)
    value = text[first:end]
    if name.endswith("_other"):  # in a URL or a connection string `&` separates the settings
        value = value.partition("&")[0].partition("|")[0]
    return first, first + len(value.rstrip(".,;:)]}*"))


def _after(text: str, word: re.Match[str]) -> Span | None:
    """Returns the secret after a telling word, if there is one."""
    name = word.lastgroup or ""
    joint = JOINTS[name[:2]].match(text, word.end())
    # A table's row ends with a bar, unlike a pipe.
    if not joint or (joint["bar"] and not _AT["row_end"].match(text, joint.end("bar"))):
        return None
    if not (span := _value(text, joint.end(), name, joint)):
        return None
    value = text[slice(*span)]
    before = text[max(0, word.start() - 80) : word.start()]
    is_flag = _IN["flag"].search(before) is not None
    if not is_named(word, before) or (joint["listed"] and not is_flag):
        return None
    if joint["near"] and _IN["of_another"].search(text, max(0, span[0] - 20), span[0]):
        return None
    if not name.endswith("_other"):
        kind = "secret" if "secret" in word[0].lower() else "password"
        return Span(*span, kind) if _is_password(text, joint, span, before) else None
    is_like = _AT["prose"].fullmatch(value) and turns(value) > 2
    if (not is_like and (joint["prose"] or joint["near"])) or (joint["next"] and not is_flag):
        return None
    bare = text[span[0] - 1 : span[0]] not in QUOTES
    is_long = len(value) >= (8 if is_like else 12)
    return Span(*span, "secret") if is_long and is_secret(value[:_LOOKED_AT], False, bare) else None


def values(text: str) -> Iterator[Span]:
    """Finds secrets that a word before them names."""
    end = 0
    for word in telling(text):
        # A rejected value may itself begin with such a word.
        if word.start() >= end and (span := _after(text, word)):
            is_long = span.end - span.first == _LOOKED_AT
            end = _run(_AT["rest"], text, span.end, len(text)) if is_long else span.end
            yield Span(span.first, end, span.kind)
