"""The marks of transcripts and frames: encloses texts, cuts them, and escapes or quotes lines that look like marks."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Sequence, Set

INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f"
)
"""Invisible characters, for a character class of a pattern."""
LINE_END = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""Characters that some reader treats as the end of a line, for a character class."""
BLANK = r" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Blanks within a line, for a character class."""
_MARK_LIKE = re.compile(
    rf"([{LINE_END}])(?=[{INVISIBLE}]*(?:"
    # the header of a row; a word with letters beyond ASCII may look like a role
    rf"[#\ufe5f\uff03][{INVISIBLE}]*\d[\d{INVISIBLE}]*[{BLANK}][{BLANK}{INVISIBLE}]*"
    r"(?:(?i:user|assistant|tool|system|developer|function)\b|[A-Za-z]{0,9}[^\x00-\x7f])"
    # our fence, and the heading of a summary in a merge
    rf"|[=\u2550\ua78a\ufe66\uff1d][=\u2550\ua78a\ufe66\uff1d{BLANK}{INVISIBLE}]*(?i:transcript)"
    rf"|[#\ufe5f\uff03]{{2}}[{BLANK}{INVISIBLE}]*(?i:summary)[{BLANK}{INVISIBLE}]*\d))"
)

_FENCED = re.compile(r"(?ms)^(=== transcript [0-9a-f]{20} ===)\n(.*)\n\1$")
_HEADING = re.compile(r"(?m)^## Summary \d+ of \d+\n")
RECALL_FENCE = ("=== transcript ===", "=== transcript ends ===")
"""Lines before and after the rows of a recall answer. No line of a rendered row begins like these."""


def escape_marks(text: str) -> str:
    """Returns the text with a blank before each line that looks like a row's header, our fence or a summary's heading.

    Look-alike letters count too, and so does every character that some reader treats as the end of a line.
    """
    if text.isascii() and "#" not in text and "=" not in text:
        return text
    return _MARK_LIKE.sub(r"\1 ", f"\n{text}")[1:]


def after_cut(text: str, at: int) -> str:
    """Returns the text after a cut. The rest of a line that was cut is escaped, because it may look like a mark."""
    first, line_end, others = text[at:].partition("\n")
    return text[at:] if text[at - 1 : at] == "\n" else f"{escape_marks(first)}{line_end}{others}"


def cut_middle(text: str, limit_bytes: int, characters: int | None = None) -> str:
    """Returns head (two thirds), a count of what was left out, and tail (one third); a short text is unchanged.

    Args:
        characters: the length of the whole text, if `text` has only its two ends.
    """
    if len(text) * 4 <= limit_bytes or len(text.encode("utf-8", "surrogatepass")) <= limit_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    head = data[: limit_bytes * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - limit_bytes // 3 :].decode("utf-8", "ignore")
    whole = characters or len(text)
    note = f"[… {whole - len(head) - len(tail):,} of {whole:,} characters left out …]"
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
    """Returns the summaries in the form of the merge template, each under a heading."""
    return "\n\n".join(f"## Summary {at} of {len(texts)}\n{escape_marks(text)}" for at, text in enumerate(texts, 1))


def split_numbered(text: str) -> list[str] | None:
    """Returns the summaries without their headings; None if there is no heading."""
    if not _HEADING.search(text):
        return None
    return [part.strip() for part in _HEADING.split(text) if part.strip()]


Frame = Callable[..., str]
"""A function that fills `frame.md`: it takes text, first, last, count, level and recall, all strings."""

_ROLE = r"(?:system|developer|assistant|user|human|tool|function)"
_ROLE_LINE = re.compile(rf"\W*+{_ROLE}(?: (?:message|prompt|note|instructions?))?\W{{0,6}}:|(\W*+)(?:0 )?{_ROLE}\b")
"""The beginning of a transcript's line: `system:`, or `#0 system`, whose sign is group 1."""
_TEMPLATE = re.compile(
    r"<\|[\w ]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|</?(?:system|developer|assistant|user|instructions?)\b"
    r"|== {0,40}transcript"
)
"""Tokens and tags of chat templates, and our own fence."""
LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_DECOMPOSED = 256
"""Characters that are decomposed at once: the time to sort a run of marks grows with the square of its length."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u03b1\u03b5\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u0251\u0261\u0578\u057d",
    "abekmhopctyxsijhldqwaenikmvoptuxiagnu",
)
"""Letters of other scripts that look like Latin ones, after case folding."""


def decomposed(text: str) -> str:
    """Returns the text with letters and accents apart, and in their plain form."""
    pieces = (text[at : at + _DECOMPOSED] for at in range(0, len(text), _DECOMPOSED))
    return "".join(unicodedata.normalize("NFKD", piece) for piece in pieces)


def _plain(line: str) -> str:
    """Returns the line as it looks: no invisible characters, accents and look-alikes, lower case, numbers as 0."""
    plain = decomposed(_INVISIBLE.sub("", line))
    plain = "".join(char for char in plain if not unicodedata.combining(char)).casefold().translate(_LOOK_ALIKES)
    return re.sub(r"\d+", "0", plain)


def _beginning(line: str) -> str:
    """Returns the first words of a frame's line, by which imitations are found; a line of few words whole."""
    words = re.findall(r"\w+", line)
    return " ".join(words[:4]) if len(words) > 2 else line.strip()


def neutralised(text: str) -> str:
    """Returns the text with "> " before each line that looks like a role, a transcript or a token of a chat template.

    Summaries stand in system rows, where such a line would be an instruction.
    """
    return _quoted(text, frozenset())


def quoted(text: str, *frames: Frame) -> str:
    """Returns the text with "> " before each line that looks like one of these frames, a role or a transcript."""
    filled = (frame(text="\0", first="0", last="0", count="0", level="0", recall="") for frame in frames)
    return _quoted(text, {_beginning(_plain(line)) for one in filled for line in one.replace("\0", "\n").split("\n")})


def _quoted(text: str, marks: Set[str]) -> str:
    marks = marks - {""}

    def forged(line: str) -> bool:
        seen = _plain(line)
        words = " ".join(re.findall(r"\w+", seen))
        role = _ROLE_LINE.match(seen)
        as_role = role is not None and (role[1] is None or "#" in role[1])
        return as_role or _TEMPLATE.search(seen) is not None or any(m in seen or m in words for m in marks)

    lines = LINE_ENDS.split(text)
    found = [forged(line) for line in lines]
    if not any(found):
        return text
    return "\n".join(f"> {line}" if bad else line for line, bad in zip(lines, found, strict=True))


def without_surrogates(text: str) -> str:
    """Returns the text with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
