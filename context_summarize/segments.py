"""Groups, rendered text, segments, node addresses and keys: everything that decides where a history is cut. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence

from .digest import render_rows
from .messages import render_parts
from .types import Call, Group, Node, RenderedRow, Row, Segment

SCHEMA_VERSION = "1"
MOST_GROWTH = 6
"""A merged summary is at most so many times as long as a segment's."""
Redact = Callable[[str], str]

INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f"
)
"""Characters that take no room, for a class of a pattern."""
LINE_END = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""Whatever some reader takes for the end of a line, for a class of a pattern."""
BLANK = r" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Blanks within a line, for a class of a pattern."""
_MARK_LIKE = re.compile(
    rf"([{LINE_END}])(?=[{INVISIBLE}]*(?:"
    # the header of a row; a word with letters beyond ASCII may look like a role
    rf"[#\ufe5f\uff03][{INVISIBLE}]*\d[\d{INVISIBLE}]*[{BLANK}][{BLANK}{INVISIBLE}]*"
    r"(?:(?i:user|assistant|tool|system|developer|function)\b|[A-Za-z]{0,9}[^\x00-\x7f])"
    # our fence, and the heading of a summary in a merge
    rf"|[=\u2550\ua78a\ufe66\uff1d][=\u2550\ua78a\ufe66\uff1d{BLANK}{INVISIBLE}]*(?i:transcript)"
    rf"|[#\ufe5f\uff03]{{2}}[{BLANK}{INVISIBLE}]*(?i:summary)[{BLANK}{INVISIBLE}]*\d))"
)


# --- groups ---------------------------------------------------------------------------------------------------------


class Grouper:
    """Turns rows, fed one at a time, into closed groups. A closed group never changes again."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Row]] = []
        self._unanswered: list[Call] = []
        self._answers: list[tuple[int, str]] = []

    def feed(self, index: int, row: Row) -> list[Group]:
        """The groups that this row closes, oldest first; most often one, the row itself."""
        if not self._open:
            return self._start(index, row)
        if row.rendered and row.result_ids:
            self._open.append((index, row))
            for call_id in row.result_ids:
                self._answer(index, call_id)
            return [self._close(index + 1)] if not self._unanswered else []
        if row.rendered and row.role in ("user", "assistant"):
            return [*self.pass_over(), *self._start(index, row)]
        self._open.append((index, row))
        return []

    @property
    def open_start(self) -> int | None:
        """History index of the assistant row whose calls are open; None when there is none."""
        return self._open[0][0] if self._open else None

    def open_groups(self) -> list[Group]:
        """The open run as it stands, without closing it: its calls may still be answered."""
        if not self._open:
            return []
        return [Group(self._open[0][0], self._open[-1][0] + 1, True, False, tuple(self._answers), open=True)]

    def pass_over(self) -> list[Group]:
        """Close the open run as abandoned: calls without a result stay without one."""
        if not self._open:
            return []
        rows, last = self._open, self._answers[-1][0] if self._answers else self._open[0][0]
        closed = self._close(last + 1)
        return [closed, *(_single(index, row) for index, row in rows if index > last)]

    def _start(self, index: int, row: Row) -> list[Group]:
        if not row.calls:
            return [_single(index, row)]
        self._open, self._unanswered, self._answers = [(index, row)], list(row.calls), []
        return []

    def _answer(self, index: int, call_id: str) -> None:
        """A result belongs to the nearest earlier unanswered call with its id."""
        for position in range(len(self._unanswered) - 1, -1, -1):
            if self._unanswered[position].id == call_id:
                del self._unanswered[position]
                self._answers.append((index, call_id))
                return

    def _close(self, end: int) -> Group:
        group = Group(self._open[0][0], end, True, False, tuple(self._answers), missing=tuple(self._unanswered))
        self._open, self._unanswered, self._answers = [], [], []
        return group


def _single(index: int, row: Row) -> Group:
    return Group(index, index + 1, row.rendered, row.user)


# --- rendered text --------------------------------------------------------------------------------------------------


def escape_marks(text: str) -> str:
    """The text with one blank before each line that looks like a row's header, our fence or a summary's heading.

    Look-alikes count, and so does every character that some reader takes for the end of a line.
    """
    return _MARK_LIKE.sub(r"\1 ", f"\n{text}")[1:] if "#" in text or not text.isascii() or "=" in text else text


def after_cut(text: str, at: int) -> str:
    """What follows a cut; the rest of a line that was cut in two must not pass for a mark."""
    first, line_end, others = text[at:].partition("\n")
    return text[at:] if text[at - 1 : at] == "\n" else f"{escape_marks(first)}{line_end}{others}"


def cut_middle(text: str, limit_bytes: int) -> str:
    """Two thirds head, one third tail, and a count of what was left out; unchanged when it is short enough."""
    if len(text) * 4 <= limit_bytes or len(text.encode("utf-8", "surrogatepass")) <= limit_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    head = data[: limit_bytes * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - limit_bytes // 3 :].decode("utf-8", "ignore")
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} of {len(text):,} characters left out …]\n{after_cut(text, len(text) - len(tail))}"


def _row_text(
    row: Row, names: dict[str, str], missing: Sequence[Call], limit_bytes: int | None, redact: Redact | None
) -> str:
    texts: list[str] = []
    for result, part in render_parts(row, names, missing):
        # Before anything is cut: half a secret is no longer known for one.
        clean = redact(part) if redact else part
        texts.append(cut_middle(clean, limit_bytes) if result and limit_bytes else clean)
    return escape_marks("\n".join(texts))


def render_group(
    rows: Sequence[Row], group: Group, *, number: int, segment_tokens: int | None, redact: Redact | None = None
) -> list[RenderedRow]:
    """The rendered rows of one group, numbered from `number`.

    `rows` is the whole history. A tool result longer than half a segment is cut to head and tail; with
    `segment_tokens=None` nothing is cut.
    """
    limit = segment_tokens * 4 // 2 if segment_tokens else None
    called = list(rows[group.start].calls)
    answered: dict[int, dict[str, str]] = {}
    for index, call_id in group.answers:
        # The nearest call with its id is the one that a result belongs to, as in `Grouper`.
        at = max(at for at, call in enumerate(called) if call.id == call_id)
        answered.setdefault(index, {})[call_id] = called.pop(at).name
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = answered.get(index, {})
        text = _row_text(row, names, group.missing if index == group.start else (), limit, redact)
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        out.append(RenderedRow(number + len(out), row.role, name, text))
    return out


def _header_name(name: object, redact: Redact | None) -> str | None:
    """A tool's name as a header shows it: on one line, whatever ends it has."""
    if not isinstance(name, str):
        return None
    return " ".join((redact(name) if redact else name).split()) or None


def cut_length(rendered: Sequence[RenderedRow]) -> int:
    """Length for cutting: the UTF-8 byte length of the rendered text; four bytes make one token."""
    # Header line, line break and blank line: the number's width is left out, so that a group has one length
    # wherever it stands.
    return sum(
        len(row.text.encode("utf-8", "surrogatepass"))
        + len(row.role)
        + len((row.name or "").encode("utf-8", "replace"))
        + 6
        for row in rendered
    )


# --- segments -------------------------------------------------------------------------------------------------------


def derive_segment_tokens(budget: int) -> int:
    """The power of two nearest (in log2, ties down) to budget / 8, within 512…16,384."""
    exponent = math.log2(max(budget, 1) / 8)
    nearest = math.ceil(exponent - 0.5)
    return int(min(16_384, max(512, 2**nearest)))


def derive_summary_tokens(segment_tokens: int) -> int:
    """A tenth of a segment, within 100…1,600 tokens."""
    return min(1_600, max(100, segment_tokens // 10))


class Segmenter:
    """Cuts rendered groups, fed one at a time, into segments. What is cut stays cut, whatever is fed later.

    A segment closes at the first group boundary at or past `segment_tokens`, or at the first user turn within the
    next quarter of that length; it is closed only once that turn, or the whole quarter, stands behind it.
    """

    def __init__(self, segment_tokens: int, summary_tokens: int, *, first_group: int = 0, first_index: int = 0) -> None:
        self.segment_tokens = segment_tokens
        self.summary_tokens = summary_tokens
        self._start = first_group
        self._index = first_index
        self._fed: list[tuple[int, bool]] = []
        self._total = 0
        self._cut: int | None = None
        self._cut_total = 0

    @property
    def start(self) -> int:
        """First rendered group that is in no closed segment yet."""
        return self._start

    @property
    def next_group(self) -> int:
        """The rendered group that must be fed next."""
        return self._start + len(self._fed)

    def feed(self, length: int, user: bool) -> list[Segment]:
        """Feed the next group: its `cut_length` in bytes, and whether it is a user message."""
        self._fed.append((length, user))
        size = self.segment_tokens * 4
        if self._cut is None:
            self._total += length
            if self._total >= size:
                self._cut, self._cut_total = len(self._fed), self._total
            return []
        if user:
            return self._close(len(self._fed) - 1)
        self._total += length
        if self._total - self._cut_total >= size // 4:
            return self._close(self._cut)
        return []

    def _close(self, cut: int) -> list[Segment]:
        segment = Segment(self._index, self._start, self._start + cut, self.segment_tokens, self.summary_tokens)
        rest = self._fed[cut:]
        self._index += 1
        self._start += cut
        self._fed, self._total, self._cut = [], 0, None
        out = [segment]
        for length, user in rest:
            out += self.feed(length, user)
        return out


# --- keys -----------------------------------------------------------------------------------------------------------


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def segment_key(
    rendered: Sequence[RenderedRow], template_digest: str, summary_tokens: int, focus: str | None = None
) -> str:
    """The key of a level-0 summary: nothing but what its text may depend on."""
    extra = () if focus is None else (focus,)
    return _key(SCHEMA_VERSION, template_digest, str(summary_tokens), render_rows(rendered), *extra)


def merge_key(children: Sequence[Node], template_digest: str, summary_tokens: int) -> str:
    """The key of a merged summary: the merge template, its length and the keys of its children."""
    return _key(SCHEMA_VERSION, template_digest, str(summary_tokens), *(child.key for child in children))


def merge_node(children: Sequence[Node], *, template_digest: str, summary_tokens: int, index: int) -> Node:
    """The address of the summary that stands for these neighbours; `index` -1 makes it a rest node."""
    level = max(child.level for child in children) + 1
    # A merge halves what it joins, or it would make no room.
    below = sum(child.summary_tokens for child in children)
    tokens = min(MOST_GROWTH * summary_tokens, max(summary_tokens, below // 2))
    key = merge_key(children, template_digest, tokens)
    first, end = children[0].first_group, children[-1].end_group
    return Node(key, level, index, first, end, tokens, 0, tuple(children))


def group_hash(rendered: Sequence[RenderedRow]) -> bytes:
    """What one group adds to the running hash of the rendered rows, uncut."""
    digest = hashlib.sha256()
    for row in rendered:
        for part in (row.role, row.name or "", row.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.digest()
