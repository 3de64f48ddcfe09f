"""Makes a summary safe to show: lines that look like a frame's, a role's or a transcript's are quoted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from context_summarize.transcript.escaping import INVISIBLE, LINE_END

Frame = Callable[..., str]
"""Fills `frame.md`: called with text, first, last, count, level and recall, all strings."""

_ROLE = r"(?:system|developer|assistant|user|human|tool|function)"
_ROLE_LINE = re.compile(rf"\W*+{_ROLE}(?: (?:message|prompt|note|instructions?))?\W{{0,6}}:|(\W*+)(?:0 )?{_ROLE}\b")
"""`system:` begins a line of some transcripts, and so does `#0 system`, as group 1 tells."""
_TEMPLATE = re.compile(
    r"<\|[\w ]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|</?(?:system|developer|assistant|user|instructions?)\b"
    r"|== {0,40}transcript"
)
"""Tokens and tags of chat templates, and our own fence."""
_LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_PIECE = 256
"""Characters that are decomposed at once: a run of marks is sorted in time that grows with its square."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u03b1\u03b5\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u0251\u0261\u0578\u057d",
    "abekmhopctyxsijhldqwaenikmvoptuxiagnu",
)
"""Letters of other scripts that look like Latin ones, after case folding."""


def _plain(line: str) -> str:
    """The line as it looks: without invisible characters, accents and look-alikes, in lower case, each number as 0."""
    line = _INVISIBLE.sub("", line)
    pieces = (line[at : at + _PIECE] for at in range(0, len(line), _PIECE))
    plain = "".join(unicodedata.normalize("NFKD", piece) for piece in pieces)
    plain = "".join(char for char in plain if not unicodedata.combining(char)).casefold().translate(_LOOK_ALIKES)
    return re.sub(r"\d+", "0", plain)


def _beginning(line: str) -> str:
    """The first words of a frame's line, by which an imitation is found; the whole line when it has few words."""
    words = re.findall(r"\w+", line)
    return " ".join(words[:4]) if len(words) > 2 else line.strip()


def quoted(text: str, *frames: Frame) -> str:
    """The text with "> " before each line that looks like a line of these frames, of a role or of a transcript."""
    filled = (frame(text="\0", first="0", last="0", count="0", level="0", recall="") for frame in frames)
    marks = {_beginning(_plain(line)) for one in filled for line in one.replace("\0", "\n").split("\n")} - {""}

    def forged(line: str) -> bool:
        seen = _plain(line)
        words = " ".join(re.findall(r"\w+", seen))
        role = _ROLE_LINE.match(seen)
        as_role = role is not None and (role[1] is None or "#" in role[1])
        return as_role or _TEMPLATE.search(seen) is not None or any(m in seen or m in words for m in marks)

    lines = _LINE_ENDS.split(text)
    found = [forged(line) for line in lines]
    if not any(found):
        return text
    return "\n".join(f"> {line}" if bad else line for line, bad in zip(lines, found, strict=True))


def without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
