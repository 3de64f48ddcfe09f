"""The marks of transcripts and frames: encloses texts, cuts them, and escapes or quotes lines that look like marks."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f"
)
"""Invisible characters, for a character class of a pattern."""
LINE_END = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""Characters that some reader treats as the end of a line, for a character class."""
BLANK = r" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Blanks within a line, for a character class."""
_MARK_LIKE = re.compile(rf"[\[\uff3b\u3010\u3014](?=[{INVISIBLE}]*[mb\uff42\uff4d][{INVISIBLE}]*\d)")
_LINE_LIKE = re.compile(
    # our fence, and the heading of a summary in a merge
    rf"([{LINE_END}])(?=[{INVISIBLE}]*(?:[=\u2550\ua78a\ufe66\uff1d][=\u2550\ua78a\ufe66\uff1d{BLANK}{INVISIBLE}]*(?i:transcript)"
    rf"|[#\ufe5f\uff03]{{2}}[{BLANK}{INVISIBLE}]*(?i:summary)[{BLANK}{INVISIBLE}]*\d))"
)

_FENCED = re.compile(r"(?ms)^(=== transcript [0-9a-f]{20} ===)\n(.*)\n\1$")
_HEADING = re.compile(r"(?m)^## Summary \d+ of \d+\n")
RECALL_FENCE = ("=== transcript ===", "=== transcript ends ===")
"""Lines before and after the rows of a recall answer. No line of a rendered row begins like these."""


def escape_marks(text: str) -> str:
    """Returns a text of others in which nothing is a mark of a message, our fence, or a summary's heading.

    A blank divides a mark's bracket from its letter, and stands before a line that looks like one of ours. Look-alike
    letters count too, and so does every character that some reader treats as the end of a line.
    """
    return _MARK_LIKE.sub(r"\g<0> ", _escape_lines(text))


def _escape_lines(text: str) -> str:
    if text.isascii() and "#" not in text and "=" not in text:
        return text
    return _LINE_LIKE.sub(r"\1 ", f"\n{text}")[1:]


def after_cut(text: str, at: int) -> str:
    """Returns the text after a cut. The rest of a line that was cut is escaped: it may look like one of ours."""
    first, line_end, others = text[at:].partition("\n")
    return text[at:] if text[at - 1 : at] == "\n" else f"{_escape_lines(first)}{line_end}{others}"


def cut_middle(text: str, limit_bytes: int) -> str:
    """Returns head (two thirds), a count of what was left out, and tail (one third); a short text is unchanged."""
    if len(text) * 4 <= limit_bytes or len(text.encode("utf-8", "surrogatepass")) <= limit_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    head = data[: limit_bytes * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - limit_bytes // 3 :].decode("utf-8", "ignore")
    note = f"[… {len(text) - len(head) - len(tail):,} of {len(text):,} characters left out …]"
    return f"{head}\n{note}\n{after_cut(text, len(text) - len(tail))}"


def fence_of(text: str) -> str:
    """Returns the delimiter of a text. It is derived from the text's hash, so that no text contains its own."""
    return f"=== transcript {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]} ==="


def enclosed(text: str, fence: str, before: str) -> str:
    """Returns the text between two lines of its delimiter, which neither it nor the text before them contains.

    Lone surrogates, which no provider accepts, become '?'.
    """
    before, text = (part.replace(fence, fence.replace("===", "= =")) for part in (before, text))
    return f"{before}{fence}\n{text}\n{fence}".encode("utf-8", "replace").decode("utf-8")


def enclosed_in(message: str) -> str | None:
    """Returns the text between the delimiters in a message; None if there are none."""
    found = _FENCED.search(message)
    return found[2] if found else None


def numbered(texts: Sequence[str]) -> str:
    """Returns the summaries in the form of the merge template, each under a heading. Their marks stay."""
    return "\n\n".join(f"## Summary {at} of {len(texts)}\n{_escape_lines(text)}" for at, text in enumerate(texts, 1))


def split_numbered(text: str) -> list[str] | None:
    """Returns the summaries without their headings; None if there is no heading."""
    if not _HEADING.search(text):
        return None
    return [part.strip() for part in _HEADING.split(text) if part.strip()]


_ROLE = r"(?:system|developer|assistant|user|human|tool|function)"
_ROLE_LINE = re.compile(
    rf"(\W*+)(m?0\W++)?{_ROLE}\b(?:(?: (?:message|prompt|note|instructions?))?(\W{{0,6}}:))?",
)
"""The beginning of a transcript's line: `system:`, `#0 system` or `[m0] system`, when numbers are 0."""
_TEMPLATE = re.compile(
    r"<\|[\w ]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|</?(?:system|developer|assistant|user|instructions?)\b"
    r"|== {0,40}transcript"
)
"""Tokens and tags of chat templates, and our own fence."""
LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")


def decomposed(text: str) -> str:
    """Returns the text with letters and accents apart, and in their plain form; accents stay in their order.

    Each character is decomposed alone: the time to sort a run of accents grows with the square of its length.
    """
    return text if text.isascii() else "".join(unicodedata.normalize("NFKD", character) for character in text)


def neutralised(text: str) -> str:
    """Returns the text with "> " before each line that looks like a role, a transcript or a token of a chat template.

    Summaries and the thread stand in system rows, where such a line would be an instruction.
    """
    lines = LINE_ENDS.split(text)
    found = [_is_forged(line) for line in lines]
    if not any(found):
        return text
    return "\n".join(f"> {line}" if bad else line for line, bad in zip(lines, found, strict=True))


def _is_forged(line: str) -> bool:
    plain = decomposed(_INVISIBLE.sub("", line))
    plain = "".join(char for char in plain if not unicodedata.combining(char)).casefold()
    plain = re.sub(r"\d+", "0", plain)
    role = _ROLE_LINE.match(plain)
    is_role = role is not None and bool(role[3] or "#" in role[1] or (role[2] or "").startswith("m"))
    return is_role or _TEMPLATE.search(plain) is not None


def without_surrogates(text: str) -> str:
    """Returns the text with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
