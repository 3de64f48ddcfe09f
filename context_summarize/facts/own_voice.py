"""What of a user message the user says in their own voice: no quotation, no code, nothing that was pasted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from context_summarize.facts.pasted import PASTED, STRAY, host_tag, pasted_rule
from context_summarize.transcript.escaping import BLANK, INVISIBLE, LINE_END

READ = 40_000
"""Characters of one message that are read, half of them at its end; a longer message is pasted text."""

LOOKED_OVER = 1_000_000
"""Characters of a message up to which the part that is not read is searched for something that it leaves open."""

_DEEPEST = 16
"""Levels of markup that are parsed, two a list; what is nested deeper is left out. It bounds the parser's work."""

_LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_LEAD = re.compile(rf"(?m)^[{BLANK}{INVISIBLE}]+")
_QUOTE_SIGN = re.compile(r"(?m)^([ \t]*)(?:&gt;|\uff1e|\ufe65|\u276f|\u2502|\u2503|\u258c|\u258e|\u2595)")
"""Signs that stand for `>` before a quoted line."""
_TAG = re.compile(r"[<\uff1c]\s{0,3}(/?)\s{0,3}([a-z][\w:.-]{0,60})")
_TWINS = (
    *(("<!--", "-->"), ("<![cdata[", "]]>"), ("#+begin", "#+end"), ("[quote", "[/quote"), ("[code", "[/code")),
    *(("“", "”"), ("«", "»")),
)
_FORWARDED = ("original message", "forwarded message")
_CLOSES = re.compile(
    r"(?m)^[ \t>*+-]*(?:`{3,}|~{3,})[^\n]*$|\"\"\"|'''|-->|\]\]>|[<\uff1c\[]\s{0,3}/[A-Za-z][^\n<>\[\]]*+[>\]]"
)
_BARE_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*")


def parts_read(text: str) -> tuple[str, str]:
    """The beginning and the end of a message that are read; the second is empty for a message that is read whole."""
    return (text, "") if len(text) <= READ else (text[: READ // 2], text[-READ // 2 :])


def own_voice(text: str) -> str:
    """The lines that the user says in their own voice; all others are empty. At most `READ` characters are read.

    Markdown is parsed as CommonMark has it, save that indented lines are text. Block quotes, fences, triple quotes, the
    tags of hosts and what stands between them are left out; what is opened and not closed runs to the end.
    """
    head, tail = parts_read(text)
    return _own_lines(head) if not tail else f"{_own_lines(head)}\n\n{_own_lines(_trusted_tail(text, tail))}"


def _trusted_tail(text: str, tail: str) -> str:
    """The part of a long message's end that does not lie in something that was opened before.

    It begins after the last mark that ends something; where what was opened before has no end in it, it is empty.
    """
    ends = [match.end() for match in _CLOSES.finditer(tail)]
    start = ends[-1] if ends else 0
    if len(text) > LOOKED_OVER:
        return tail[start:] if start else ""
    low, before = tail.lower(), text[: -len(tail)].lower()
    if any(sign in before for sign in _FORWARDED):
        return ""
    for closer in _left_open(before):
        at = low.rfind(closer)
        if at < 0:
            return ""
        start = max(start, at + len(closer))
    if before.count('"') % 2:
        start = max(start, low.rfind('"') + 1)
    return tail[start:] if start else tail.partition("\n")[2]


def _left_open(before: str) -> Iterator[str]:
    """What must follow to end everything that a text in lower case has opened."""
    yield from (sign for sign in ("```", "~~~", '"""', "'''") if before.count(sign) % 2)
    yield from (closer for opener, closer in _TWINS if before.count(opener) > before.count(closer))
    opened: Counter[str] = Counter()
    for end, name in _TAG.findall(before):
        opened[name] += -1 if end else 1
    yield from (f"/{name}" for name, times in opened.items() if times > 0 and host_tag(name))


def _parser() -> MarkdownIt:
    # Inline markup, references, raw HTML, tables and underlined headings only change how text looks.
    made = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).disable(["code", "html_block", "reference", "lheading"])
    made.block.ruler.before("fence", "pasted", pasted_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return made


def _own_lines(text: str) -> str:
    source = _LEAD.sub(_plain_lead, _LINE_ENDS.sub("\n", text))
    source = _QUOTE_SIGN.sub(r"\1>", source)
    parser = _parser()
    tokens: list[Token] = []
    parser.block.parse(source, parser, {}, tokens)
    return "\n".join(_kept(tokens, source.split("\n")))


def _plain_lead(lead: re.Match[str]) -> str:
    """The beginning of a line as a reader sees it: only spaces and tabs."""
    return "".join(char if char == "\t" else " " for char in lead[0] if char.isspace())


def _kept(tokens: Sequence[Token], lines: Sequence[str]) -> list[str]:
    """The lines of paragraphs and headings outside block quotes, and what stands around something pasted."""
    own = [""] * len(lines)
    seen: dict[str, int] = {}
    """The line of the last tag of each name."""
    quoted = 0
    for token in tokens:
        quoted += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if quoted or token.map is None:
            continue
        first, end = token.map
        if token.type == "inline":
            own[first:end] = lines[first:end]
        elif token.type == PASTED:
            seen.update(dict.fromkeys(token.info.split(" "), first))
            for line, around in token.meta.items():
                own[line] = around
        elif token.type == STRAY:
            # What was pasted has ended its own tag earlier; or its beginning is missing.
            begun = seen.setdefault(token.info, 0)
            own[begun : first + 1] = [*[""] * (first - begun), token.content]
    for first, end in _torn_fences(tokens, lines):
        own[first:end] = [""] * (end - first)
    return own


def _torn_fences(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines (first, end) that belong to a fence though Markdown has them outside.

    A fence in a list ends where a line is not indented enough: what follows is its text up to the next bare fence.
    A fence whose text has fences of its own is ended by the first of these; then the last fence of the message is
    opened by the sign that was meant to close the first.
    """
    fences = [(token, token.map) for token in tokens if token.type == "fence" and token.map is not None]
    for token, (first, end) in fences:
        if token.level and not _is_closed(lines, first, end) and not lines[first].lstrip().startswith(">"):
            following = (at for at in range(end, len(lines)) if _BARE_FENCE.fullmatch(lines[at]))
            yield end, next(following, len(lines) - 1) + 1
            return
    if not fences or fences[-1][0].info.strip() or _is_closed(lines, *fences[-1][1]):
        return
    for token, (first, _) in fences[:-1]:
        if re.search(rf"(?m)^[ \t]*{re.escape(token.markup)}[^\n]", token.content):
            yield first, len(lines)
            return


def _is_closed(lines: Sequence[str], first: int, end: int) -> bool:
    return end - first > 1 and _BARE_FENCE.fullmatch(lines[end - 1]) is not None
