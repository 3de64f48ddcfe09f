"""What of a user message the user says: no quoted block, no fence, table or tag, nothing that reads like a paste."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from context_summarize.transcript.escaping import INVISIBLE, LINE_END

MOST_READ = 40_000
"""Characters of one message that are read; a longer message is pasted text."""
_DEEPEST = 16
"""Levels of markup that are parsed; it bounds the parser's work."""

_LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]{0,300}>|\[(/?)(quote|code)[^\]\n]{0,100}\]|<!--|-->", re.I)
_PAIRS = ("“”“", "„“”", "«»", "»«", "‹›", "「」", "『』")  # noqa: RUF001 - they are what is looked for
"""Quotation marks: the opening one, and those that close it."""
_QUOTED = re.compile(
    "|".join(rf"(?:^[ \t]*|(?=[^{pair[1:]}\n]*\n)){pair[0]}.*?(?:[{pair[1:]}]|\Z)" for pair in _PAIRS)
    + r"|^[ \t]*``(?!`).*?(?:``|\Z)|^[ \t]*\"(?=[^\"\n]*(?:\"\s*$|\n)).*?(?:\"|\Z)|^[ \t]*'[^'\n]+'[ \t]*$"
    + r"|(?<=[\s:])\"(?=\w[^\"\n]*\n).*?\"(?!\w)",
    re.M | re.S,
)
"""What stands between quotation marks, where the first begins a line or the last stands on another line."""
_MARKED = re.compile(
    r"\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|\\begin\{.*?(?:\\end\{[^}\n]*\}|\Z)|^[^\w\n]{2,12}BEGIN\b.*?(?:^[^\w\n]{2,12}END\b[^\n]*$|\Z)",
    re.M | re.S,
)
_QUOTE_SIGN = re.compile(
    rf"^( *)[ \t\xa0{INVISIBLE}]*(?:&gt;|[>\uff1e\ufe65\u276f|\u2502\u2503\u258c\u258e\u2595])", re.M
)
"""Signs that stand before a quoted line; a bar begins the row of a table."""
_MAIL = re.compile(r"(?mi)^[*_]{0,2}(?:from|von|de|to|sent|date|subject|betreff|cc|reply-to)[*_]{0,2}:[^\n]+$")
_FORWARDED = re.compile(
    r"(?mi)^[-\s_>]*(?:(?:original|forwarded) message|begin forwarded message|on .{5,80} wrote:)|^#\+begin"
)
_PASTED_LINE = re.compile(
    r"[ \t]{4,}\S|\t|[+-](?![\s-])\S|(?:@@|diff --git|index [0-9a-f]{6})"  # indented code, a diff
    r"|[\[(]?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:)"  # a log
    r"|[\[(]?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL)\b[\])]?[ :\t]"
    r"|\s*(?:at [\w.$<>]+\(|File \".*\", line \d+)"  # a stack
)


@lru_cache(maxsize=512)
def own_lines(text: str) -> tuple[str, ...]:
    """The lines of a message, those empty that the user does not say; their number stays.

    Markdown is read as CommonMark has it, with tables. What is opened and not closed runs to the end.
    """
    if len(text) > MOST_READ:
        return ()
    text = _MARKED.sub(_blanked, _LINE_ENDS.sub("\n", text))
    text = _QUOTED.sub(_blanked, _without_tags(_QUOTE_SIGN.sub(r"\1>", text)))
    lines = text.split("\n")
    kept = [""] * len(lines)
    for first, end in _paragraphs(_parser().parse(text)):
        kept[first:end] = lines[first:end]
    end = _mail_at(text)
    return tuple("" if at >= end or _PASTED_LINE.match(line) else line for at, line in enumerate(kept))


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table")
    return made.disable(["inline", "text_join", "code", "reference", "lheading", "html_block"], ignoreInvalid=True)


def _paragraphs(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The lines (first, end) of paragraphs and headings outside quoted blocks and tables."""
    found: list[tuple[int, int]] = []
    inside = 0
    for token in tokens:
        inside += {"blockquote_open": 1, "table_open": 1, "blockquote_close": -1, "table_close": -1}.get(token.type, 0)
        if token.type == "inline" and not inside and token.map is not None:
            found.append((token.map[0], token.map[1]))
    return found


def _blanked(found: re.Match[str]) -> str:
    """Blanks in place of a text, line by line."""
    return re.sub(r"[^\n]", " ", found[0])


def _without_tags(text: str) -> str:
    """The text with blanks in place of tags and of what stands between a tag and its end.

    A tag without an end encloses the rest of the message, unless it is one of plain HTML's that need none.
    """
    spans: list[tuple[int, int]] = []
    opened: dict[str, int] = {}
    for found in _TAG.finditer(text):
        name = (found[2] or found[4] or "").lower()
        if not name or name in _VOID:
            continue
        if found[1] or found[3]:
            spans.append((opened.pop(name, 0), found.end()))
        else:
            opened.setdefault(name, found.start())
    spans += [(start, len(text)) for start in opened.values()]
    for start, end in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "p", "li"})


def _mail_at(text: str) -> int:
    """The line where a pasted mail begins: two headers of one, or the sign of a forwarded one; past the end if none."""
    headers = list(_MAIL.finditer(text))
    at = headers[0].start() if len(headers) > 1 else len(text) + 1
    forwarded = _FORWARDED.search(text)
    at = min(at, forwarded.start()) if forwarded else at
    return text.count("\n", 0, at) if at <= len(text) else text.count("\n") + 1
