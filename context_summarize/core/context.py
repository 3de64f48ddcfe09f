"""What a summariser reads around its part: the request in force, the agent's last words, and the next row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from context_summarize.core.log import Log
from context_summarize.messages.rows import Row
from context_summarize.messages.text import prose
from context_summarize.redaction import Redact, redact_known
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.groups import named

_MOST, _SHARE = 3_000, 0.2
"""Characters of all rows around a part: at most so many, and so many for each token of a segment (a twentieth)."""
_WORDS, _AFTER = 0.2, 0.1
"""Shares of the agent's last words, and of the next row; the requests get the others."""
_SHORT = 100
"""A request of fewer characters, such as "yes", is shown with the one before it."""
_NEAR = 64
"""Rendered rows before the part in which the agent's last words are looked for; hosts save no others."""


def rows_around(log: Log, first_group: int, end_group: int | None) -> tuple[list[int], list[int]]:
    """Returns the rows before and behind a part: the request in force and the agent's last words; the next row.

    Args:
        end_group: the rendered group behind the part, which is closed; None for a part that ends early: what comes
            behind it is not read, so that its key is the same whenever it is made.
    """
    start = log.row_of(first_group)
    users = [log.rendered_group(at).start for at in log.users[: bisect_left(log.users, first_group)][-2:]]
    requests = users if users and len(prose(log.rows[users[-1]])) < _SHORT else users[-1:]
    near = islice((at for at in range(start - 1, -1, -1) if log.rows[at].rendered), _NEAR)
    words = (at for at in near if log.rows[at].role == "assistant" and prose(log.rows[at]).strip())
    return sorted({*requests, *islice(words, 1)}), [] if end_group is None else [log.row_of(end_group)]


def context(
    log: Log, around: tuple[Sequence[int], Sequence[int]], segment_tokens: int, redact: Redact | None
) -> tuple[str, str]:
    """Returns the text before and the text behind a part, its rows marked from `b1` on."""
    before, after = around
    room = min(_MOST, segment_tokens * _SHARE)
    left, texts = room * (1 - _WORDS - _AFTER), list[str]()
    for at in reversed(before):
        is_request = log.rows[at].role == "user"
        texts.insert(0, _said(log.rows[at], redact, left if is_request else room * _WORDS))
        left = max(0.0, left - len(texts[0])) if is_request else left
    texts += [_said(log.rows[at], redact, room * _AFTER) for at in after]
    roles = [log.rows[at].role for at in (*before, *after)]
    rows = [f"[b{number}] {role}\n{text}" for number, (role, text) in enumerate(zip(roles, texts, strict=True), 1)]
    return "\n\n".join(rows[: len(before)]), "\n\n".join(rows[len(before) :])


def _said(row: Row, redact: Redact | None, most: float) -> str:
    """Returns what a row says and what it calls; of a longer text the beginning (two thirds) and the end."""
    clean: Redact = redact if redact and not (row.is_clean and redact is redact_known) else str
    text = escape_marks(clean("\n".join([prose(row), *(f"call {named(call, clean)}" for call in row.calls)]))).strip()
    if len(text) <= most:
        return text
    return f"{text[: int(most) * 2 // 3]} […] {text[len(text) - int(most) // 3 :]}"
