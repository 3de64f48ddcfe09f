"""What of a user message the user says in their own voice: no quotation, no code, nothing that was pasted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from context_summarize.facts.pasted import PASTED, STRAY, host_tag, pasted_rule
from context_summarize.transcript.marks import LINE_END

READ = 40_000
"""Characters of one message that are read, half of them at its end; a longer message is pasted text."""

LOOKED_OVER = 1_000_000
"""Characters of a message up to which the part that is not read is searched for something that it leaves open."""

_DEEPEST = 12
"""Levels of markup that are parsed, two a list; what is nested deeper is left out. It bounds the parser's work."""

_LINE_ENDS = re.compile(rf"\r\n|[{LINE_END}]")
_QUOTE_SIGN = re.compile(r"(?m)^([ \t]*)(?:&gt;|\uff1e|\u276f|\u2502|\u2503|\u258c|\u258e|\u2595)")
"""Signs that stand for `>` before a quoted line."""
_TAG = re.compile(r"[<\uff1c]\s{0,3}(/?)\s{0,3}([a-z][\w:.-]{0,60})")
_TWINS = (("<!--", "-->"), ("<![cdata[", "]]>"), ("[quote", "[/quote"), ("[code", "[/code"), ("#+begin", "#+end"))
_FORWARDED = ("original message", "forwarded message")
_CLOSES = re.compile(
    r"(?m)^[ \t>*+-]*(?:`{3,}|~{3,})[^\n]*$|\"\"\"|'''|-->|\]\]>|[<\uff1c\[]\s{0,3}/[A-Za-z][\w:.-]*[^\n<>\]]*[>\]]"
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
    return tail[start:] if start else tail[tail.find("\n") + 1 :]


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
    source = _QUOTE_SIGN.sub(r"\1>", _LINE_ENDS.sub("\n", text).replace("\0", "\ufffd"))
    parser = _parser()
    tokens: list[Token] = []
    parser.block.parse(source, parser, {}, tokens)
    lines = source.split("\n")
    own = [""] * len(lines)
    quoted = 0
    for token in tokens:
        quoted += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if quoted or token.map is None:
            continue
        first, end = token.map
        if token.type == "inline":
            own[first:end] = lines[first:end]
        elif token.type == PASTED:
            for line, around in token.meta.items():
                own[line] = around
        elif token.type == STRAY:
            own[:first] = [""] * first
            own[first] = token.content
    if (torn := _torn_fence(tokens, lines)) is not None:
        own[torn:] = [""] * (len(own) - torn)
    return "\n".join(own)


def _torn_fence(tokens: list[Token], lines: list[str]) -> int | None:
    """The line of a fence whose text has fences of its own, so that one of them has ended it; None where none is torn.

    Then the last fence of the message is opened by the sign that was meant to close the first.
    """
    fences = [token for token in tokens if token.type == "fence" and token.map is not None]
    if not fences or fences[-1].map is None or fences[-1].info.strip():
        return None
    first, end = fences[-1].map
    if end - first > 1 and _BARE_FENCE.fullmatch(lines[end - 1]):
        return None
    for token in fences[:-1]:
        inner = re.search(rf"(?m)^[ \t]*{re.escape(token.markup)}[^\n]", token.content)
        if inner is not None and token.map is not None:
            return token.map[0]
    return None
