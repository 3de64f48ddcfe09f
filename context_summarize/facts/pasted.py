"""A Markdown rule for what hosts and users paste between marks: tags of hosts, triple quotes, forwarded mail."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from markdown_it.rules_block import StateBlock

PASTED, STRAY = "pasted", "stray_close"
"""Types of the rule's tokens: something pasted, and the end of something whose beginning was not seen."""
GAP = "[…]"
"""Stands for what was pasted within a line."""

_NAMES = frozenset([
    "abstract", "article", "artifact", "attachment", "body", "blockquote", "chunk", "clipboard", "code", "code_block",
    "codeblock", "comment", "commit", "content", "context", "conversation", "csv", "data", "dataset", "detail",
    "diff", "doc", "document", "email", "example", "excerpt", "file", "history", "html", "input", "issue", "json",
    "listing", "log", "mail", "markdown", "md", "memory", "observation", "output", "page", "passage", "paste",
    "patch", "pdf", "pre", "quotation", "quote", "readme", "reminder", "resource", "response", "result", "retrieval",
    "screenshot", "script", "search", "selection", "snippet", "source", "stderr", "stdin", "stdout", "svg",
    "terminal", "text", "trace", "traceback", "transcript", "webpage", "website", "xml", "yaml",
    "cite", "knowledge", "message", "post", "q", "thread",
])  # fmt: skip
"""Last words of tags around material. Others, such as `<rules>` and `<output_format>`, are the user's own structure."""
_HOSTS = frozenset([
    "bash", "command", "editor", "environment", "external", "function", "ide", "local", "mcp", "open", "system",
    "tool", "untrusted", "web",
])  # fmt: skip
"""First words of tags that hosts add: `<system-reminder>`, `<command-message>`, `<ide_opened_file>`."""
_SPOKEN = frozenset(["content", "input", "message", "prompt", "query", "request", "text"])
"""Last words of tags that hosts put around what the user has typed: `<user_query>`."""
_BRACKETS = frozenset([
    "attachment", "code", "context", "document", "file", "quote",
])  # fmt: skip
"""Tags that also occur in square brackets. They need an end: `[file]` alone is a word."""
_TAG = re.compile(
    r"(?P<open>[<\uff1c\[])\s{0,3}(?P<end>/?)\s{0,3}(?P<name>[A-Za-z][\w:.-]{0,60})(?=[\s/>\uff1e\]=]|$)"
    r"(?P<rest>[^<>\uff1c\uff1e\]]{0,2000}[>\uff1e\]])?"
)
_MARK = re.compile(r"(?P<ticks>`+)|(?P<triple>\"{3}|'{3})|(?P<other><!--|<!\[CDATA\[)|" + _TAG.pattern)
_MENTION = re.compile(r"\s+(?:tags?|elements?|blocks?|sections?|markers?|quotes|strings?)\b", re.I)
_FORWARDED = re.compile(
    r"(?i)\s{0,3}(?:[-_=*]{2,40}\s*(?:original message|forwarded message|weitergeleitete nachricht|message transf)"
    r"|begin forwarded message\s*:)"
)
_BEGIN = re.compile(
    r"(?i)[ \t]*(?:#\+begin_(\w{1,40})|\\begin\{(\w{1,40})\}|([-=*#]{2,40})[ \t]*begin\b|(?-i:BEGIN [A-Z]))"
)
_QUOTED = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,8}){0,4}>")
"""Begins a line of a block quote, which is nobody's own voice, before a list is looked into too."""
_QUOTES = "\"'“”\u2018\u2019«»"


@dataclass(frozen=True, slots=True)
class _Opening:
    start: int
    after: int
    """Position after the opening mark."""
    close: str
    """A pattern of the end; "" for the end of the text."""
    name: str = ""
    """Of a tag, whose end is found by its name."""


def host_tag(name: str) -> bool:
    """True for the name of a tag in which hosts and users put material, not the user's own words."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rpartition(":")[2])
    words = [word for word in re.split(r"[\W_]+", spaced.casefold()) if word]
    if not words or (words[0] == "user" and words[-1] in _SPOKEN):
        return False
    if words[0] in _HOSTS and (len(words) > 1 or words[0] in ("system", "untrusted")):
        return True
    return "_".join(words) in _NAMES or words[-1] in _NAMES or words[-1].removesuffix("s") in _NAMES


def pasted_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A block rule of markdown-it: a line on which something pasted begins, up to the line on which it ends.

    The token's `meta` is what stands around it, by line: {line: text}; its `info` the names of its tags.
    """
    first, limit = state.bMarks[start] + state.tShift[start], state.eMarks[end - 1]
    opening = _whole_line(state.src, first, state.eMarks[start]) or _next(state, first, state.eMarks[start], limit)
    if opening is None:
        return _stray(state, start, silent)
    if silent:
        return True
    around: dict[int, str] = {}
    names: list[str] = []
    at, line = first, start
    while opening is not None:
        names.append(opening.name)
        around[line] = around.get(line, "") + state.src[at : opening.start]
        at = _end_of(state.src, opening, limit)
        last = min(bisect_left(state.eMarks, at), end - 1)
        if last == line:
            around[line] += GAP
        line = last
        opening = _next(state, at, state.eMarks[line], limit)
    around[line] = around.get(line, "") + state.src[at : state.eMarks[line]]
    token = state.push(PASTED, "", 0)
    own = {
        at: "" if _QUOTED.match(state.src, state.bMarks[at], state.eMarks[at]) else text for at, text in around.items()
    }
    token.map, token.meta, token.info = [start, line + 1], own, " ".join(names)
    state.line = line + 1
    return True


def _next(state: StateBlock, start: int, edge: int, limit: int) -> _Opening | None:
    """The first opening in src[start:edge]; what opens may end before `limit`. Inline code opens nothing."""
    src, at = state.src, start
    while (mark := _MARK.search(src, at, edge)) is not None:
        at = mark.end()
        if ticks := mark["ticks"]:
            at = max(_ticks_end(src, ticks, mark.end(), edge), at)
        elif triple := mark["triple"]:
            closing = src.find(triple, mark.end(), limit)
            if 0 <= closing < edge:
                at = closing + 3  # a quotation within the line
            elif closing >= 0 or _alone(src, start, mark, edge):
                return _Opening(mark.start(), mark.end(), re.escape(triple))
        elif mark["other"]:
            return _Opening(mark.start(), mark.end(), "-->" if mark["other"] == "<!--" else "]]>")
        elif (opening := _tag_opening(state, mark, limit)) is not None:
            return opening
    return None


def _ticks_end(src: str, ticks: str, at: int, edge: int) -> int:
    """Position after the backticks that end the inline code; -1 where there are none on the line."""
    while (found := src.find(ticks, at, edge)) >= 0:
        end = found + len(ticks)
        while end < edge and src[end] == "`":
            end += 1
        if end - found == len(ticks):
            return end
        at = end
    return -1


def _alone(src: str, start: int, mark: re.Match[str], edge: int) -> bool:
    """True for a mark with nothing before it on its line, or nothing after it."""
    return not src[start : mark.start()].strip(" \t-*+>") or not src[mark.end() : edge].strip()


def _whole_line(src: str, start: int, edge: int) -> _Opening | None:
    """A line that opens something by its form: forwarded mail, `#+begin_quote`, `--- BEGIN notes ---`."""
    if _FORWARDED.match(src, start, edge):
        return _Opening(start, edge, "")
    found = _BEGIN.match(src, start, edge)
    if found is None:
        return None
    if found[1]:
        return _Opening(start, edge, rf"#\+end_{found[1]}[^\n]*")
    if found[2]:
        return _Opening(start, edge, rf"\\end\{{{found[2]}\}}")
    sign = r"[-=*#]{2,40}[ \t]*end" if found[3] else "(?-i:END)"
    return _Opening(start, edge, rf"(?m:^){sign}\b[^\n]*")


def _tag_opening(state: StateBlock, mark: re.Match[str], limit: int) -> _Opening | None:
    name, src = mark["name"], state.src
    rest = mark["rest"] or ""
    if mark["end"] or rest[:-1].rstrip().endswith("/") or not host_tag(name):
        return None
    if src[mark.start() - 1 : mark.start()] in set(_QUOTES) and src[mark.end() : mark.end() + 1] in set(_QUOTES):
        return None  # the tag itself is quoted
    low = name.casefold()
    if mark["open"] == "[":
        if low not in _BRACKETS or not rest.endswith("]") or _last(state, f"[/{low}]") < mark.end():
            return None
    elif _last(state, f"/{low}") < mark.end():
        part_of_word = mark.start() > 0 and src[mark.start() - 1].isalnum()
        if part_of_word or not rest or rest[-1] not in ">\uff1e" or _MENTION.match(src, mark.end(), limit):
            return None  # `List<File>`, "a <file tag", "in a <file> tag"
    return _Opening(mark.start(), mark.end(), "", low)


def _last(state: StateBlock, text: str) -> int:
    """Position of the last occurrence in any case, found once a message."""
    low: str = state.env.setdefault("low", state.src.lower())
    found: dict[str, int] = state.env.setdefault("last", {})
    if text not in found:
        found[text] = low.rfind(text)
    return found[text]


def _end_of(src: str, opening: _Opening, limit: int) -> int:
    """Position after the end of what was opened; `limit` where it has no end. Tags of one name may be nested."""
    if not opening.name:
        found = re.compile(opening.close, re.I).search(src, opening.after, limit) if opening.close else None
        return found.end() if found else limit
    depth = 1
    for mark in _TAG.finditer(src, opening.after, limit):
        if mark["name"].casefold() != opening.name:
            continue
        if mark["end"]:
            depth -= 1
        elif not (mark["rest"] or "")[:-1].rstrip().endswith("/"):
            depth += 1
        if not depth:
            return mark.end()
    return limit


def _stray(state: StateBlock, start: int, silent: bool) -> bool:
    """A line with the end of a host's tag that nothing has opened, at the beginning or end of the line."""
    first, edge = state.bMarks[start] + state.tShift[start], state.eMarks[start]
    found = None
    for mark in _TAG.finditer(state.src, first, edge):
        at_edge = not state.src[first : mark.start()].strip() or not state.src[mark.end() : edge].strip()
        if mark["end"] and at_edge and mark["open"] != "[" and host_tag(mark["name"]):
            found = mark
    if found is None or silent:
        return found is not None
    token = state.push(STRAY, "", 0)
    token.map, token.content = [start, start + 1], state.src[found.end() : edge]
    token.info = found["name"].casefold()
    state.line = start + 1
    return True
