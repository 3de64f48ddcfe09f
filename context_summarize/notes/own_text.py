"""The user's own words in a message: without quoted blocks, fences, tables, tags and text that looks pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from context_summarize.transcript.escaping import INVISIBLE, LINE_ENDS

MOST_READ = 100_000
"""Characters of one message that are read; a longer message is pasted text."""
REMOVED = "\0"
"""Replaces words of others."""

_ITEM = r"[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?"
"""Signs that may come before a block on its first line."""
_CLOSE = r"[ \t]*+(?P=fence)[`~]*+[ \t]*$"
_LINE, _END = rf"(?!{_CLOSE})[^\n]*+", rf"(?:\n{_CLOSE}|\Z)"
"""A line of a fenced text, and its end."""
_MAIL = r"[*_]{0,2}(?:from|von|de|to|an|sent|date|datum|subject|betreff|objet|cc|reply-to)[*_]{0,2}:[^\n]+"
_TELLING = r"[*_]{0,2}(?:(?:sent|subject|betreff|objet)[*_]{0,2}:[^\n]+|(?:from|von|de|to|an)[*_]{0,2}:[^\n]*@[^\n]+)"
"""Headers of a mail, and those of them that only mails have."""
_QUOTED = (
    # A fence; one with a language inside another has an end of its own.
    rf"^{_ITEM}(?P<fence>`{{3,}}(?=[^`\n]*$)|~{{3,}})[^\n]*+"
    rf"(?:\n(?:[ \t]*+(?P=fence)[`~]*+\w[^\n]*+(?:\n{_LINE})*+{_END}|{_LINE}))*+{_END}",
    r"(?P<three>\"\"\"|''').*?(?:(?P=three)|\Z)",
    r"<!--.*?(?:-->|\Z)",
    rf"^(?:{_MAIL}\n{_TELLING}|{_TELLING}\n{_MAIL}).*",  # a mail runs to the end
    r"^[- \t_>]*(?:(?:original|forwarded) message[-:_ ]*$|begin forwarded message|on [^\n]{5,80} wrote:).*",
    # A table: its headings, a line below them, and everything up to an empty line.
    r"^[^|\n]*\|[^\n]*\n(?=[^|\n]*\|)[ \t|:]*-[-\t |:]*$(?:\n(?=[ \t]*+[^\s])[^\n]*)*",
    r"^(?:diff --git|@@ -|--- [\w/.])[^\n]*(?:\n(?:[ +\-@\\]|index )[^\n]*)*",  # a diff
    # A quotation whose first mark begins a line, or whose last mark is on another line.
    *(
        rf"(?:^[ \t]*{marks[0]}|{marks[0]}(?=[^{marks}\n]*\n)).*?(?:[{marks[1:]}]|\Z)"
        for marks in ("“”", "„“”", "«»", "»«", "‹›", "「」", "『』")  # noqa: RUF001 - they are looked for
    ),
    r"^[ \t]*\"(?=[^\"\n]*(?:\"\s*$|\n)).*?(?:\"|\Z)|^[ \t]*'[^'\n]+'[ \t]*$",
    r"^[ \t]*(?P<ticks>`+)(?!`)[^\n]*?(?P=ticks)[ \t]*$",
    r"(?<=[\s:])\"(?=[^\"\n]*\n).*?(?:\"(?!\w)|\Z)|^(?:[^\"\n]*\"(?!\")[^\"\n]*\")+[^\"\n]*\"[^\"\n]*\n.*?\"",
)
"""Words of others. Where two kinds overlap, the one that begins first counts."""
_OTHERS = re.compile("|".join(_QUOTED), re.M | re.S | re.I)
_TAG = re.compile(r"<(/?)([a-z][\w:.-]*)(?:\s[^<>]{0,300})?>|\[(/?)(quote|code)\b[^\]\n]{0,100}\]", re.I)
_NO_END = frozenset({"br", "hr", "img", "input", "link", "meta", "p", "li"})
"""Tags of plain HTML that need no end."""
_OTHERS_LINE = re.compile(
    # A sign of a quotation; a bar also begins a row of a table.
    rf"{_ITEM}[ \t\xa0{INVISIBLE}]*+(?:&gt;|[>\uff1e\ufe65\u276f|\u2502\u2503\u258c\u258e\u2595])"
    r"|(?:[ ]{4,}|[ ]*\t\s*)(?![-*+•]\s|\d{1,3}[.)]\s)\S"  # indented code
    r"|\W?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b[\])]?[ :\t])"  # a log
    r"|\s*\[[^\]]*\]\s*$"  # a mark of a host in place of an image, or of an interruption
    r"|\s*\"[^\"]+\"\s*:|(?=[\w-]*[./])[\w./-]++:\d+[: ]"  # a key in JSON, what grep finds
)


def own_text(text: str) -> str:
    """Returns a message with `REMOVED` and blanks in place of words that are not the user's.

    A block that is opened and not closed runs to the end.
    """
    if len(text) > MOST_READ:
        return ""
    text = LINE_ENDS.sub("\n", text).replace(REMOVED, " ")
    text = _without(text, (found.span() for found in _OTHERS.finditer(text)))
    text = _without(text, sorted(_tagged(text)))
    return "\n".join(REMOVED if _OTHERS_LINE.match(line) else line for line in text.split("\n"))


def _tagged(text: str) -> Iterator[tuple[int, int]]:
    """Yields the range of each text that tags enclose.

    A tag that begins a line and has no end encloses the rest. An end without its tag encloses everything since the
    last end of its name.
    """
    opened: dict[str, int] = {}
    last: dict[str, int] = {}
    for found in _TAG.finditer(text):
        name = (found[2] or found[4]).lower()
        start, end = found.span()
        if not (found[1] or found[3]):
            opened.setdefault(name, start)
        elif name in opened or text[end : end + 1] in ("", "\n"):
            last[name] = opened.pop(name, last.get(name, 0))
            yield last[name], end
    for name, start in opened.items():
        if name not in _NO_END and not text[text.rfind("\n", 0, start) + 1 : start].strip():
            yield start, len(text)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Returns the text with blanks in place of these parts; line ends stay."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], REMOVED, re.sub(r"[^\n]", " ", text[max(at, start) : end])]
        at = max(at, end)
    return "".join(pieces) + text[at:]
