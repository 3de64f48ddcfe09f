"""What a summariser reads around its part: the request in force and the agent's last words, then what came next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from context_summarize.messages.rows import Row
from context_summarize.redaction import Redact
from context_summarize.transcript.calls import named
from context_summarize.transcript.groups import cleaned, prose, without_reminders

_REQUEST = 2_000
"""Characters of the request in force, of which more is never shown."""
_LINE = 200
"""Characters of an earlier request, whose line ends here."""
_REQUESTS = 4
_WORDS = 600
"""Characters of the agent's last words."""
_NEAR = 64
"""Rendered rows before the part in which the agent's last words are looked for; hosts save no others."""
_AFTER_ROWS, _AFTER = 2, 300
"""Rows behind the part, and characters of all of them."""


@dataclass(frozen=True, slots=True)
class ContextRow:
    """One row around the part."""

    row: int
    """Its place among all rows: code gives its mark the number of its message."""
    title: str
    text: str


def before(rows: Sequence[Row], start: int, requests: Sequence[int], redact: Redact | None) -> list[ContextRow]:
    """Returns the rows ahead of a part, in their order: the newest requests and the agent's last words.

    The newest request that is longer than a line is shown nearly whole, and those before it in a line each.

    Args:
        rows: all rows; those from `start` on are not read.
        requests: the places of user messages before `start`, in order.
    """
    found: list[ContextRow] = []
    room = _REQUEST
    for at in reversed(requests[-_REQUESTS:]):
        text = _ends(cleaned(redact, _REQUEST, prose(rows[at])), room)
        if room == _LINE:
            text = " ".join(text.split())
        found.append(ContextRow(at, "user, before this part", text))
        room = _LINE if len(text) > _LINE else room
    near = islice((at for at in range(start - 1, -1, -1) if rows[at].rendered), _NEAR)
    words = ((at, prose(rows[at])) for at in near if rows[at].role == "assistant")
    said = next(((at, text) for at, text in words if text.strip()), None)
    if said is not None:
        text = _ends(cleaned(redact, _WORDS, said[1]), _WORDS)
        found.append(ContextRow(said[0], "assistant, before this part", text))
    return sorted(found, key=lambda one: one.row)


def after(rows: Sequence[Row], end: int, bound: int, redact: Redact | None) -> list[ContextRow]:
    """Returns the next rows behind a part.

    Args:
        rows: all rows.
        end: the first row behind the part.
        bound: rows from here on are not read. If the part's end was forced, they came later, and would change its key.
    """
    found: list[ContextRow] = []
    for at in range(end, bound):
        if not awaits(found):
            break
        if rows[at].rendered:
            room = _AFTER - sum(len(one.text) for one in found)
            found.append(ContextRow(at, f"{rows[at].role}, after this part", _after_text(rows[at], redact)[:room]))
    return found


def awaits(found: Sequence[ContextRow]) -> bool:
    """Returns True while another row behind the part would be shown: until then the part is not closed."""
    return len(found) < _AFTER_ROWS and sum(len(one.text) for one in found) < _AFTER


def context_text(rows: Sequence[ContextRow], first: int) -> str:
    """Returns the rows under their headers, marked from `b{first}` on."""
    return "\n\n".join(f"[b{number}] {row.title}\n{row.text}".rstrip() for number, row in enumerate(rows, first))


def _after_text(row: Row, redact: Redact | None) -> str:
    """Returns what a row says, and the names of its calls with what each is for."""
    clean = partial(cleaned, redact, _AFTER)
    texts = [clean(without_reminders(prose(row))), *(f"call {named(call, clean)}" for call in row.calls)]
    return "\n".join(filter(None, texts))


def _ends(text: str, most: int) -> str:
    """Returns the text, or of a longer one the beginning (two thirds) and the end."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]} […] {text[len(text) - most // 3 :]}"
