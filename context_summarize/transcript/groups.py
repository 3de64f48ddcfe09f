"""The rows of one group as a summariser reads them, whatever comes later: without secrets, reminders and marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from context_summarize.messages.reading import is_call, is_result, result_block_id
from context_summarize.messages.rows import NO_RESULT, Call, Row
from context_summarize.messages.text import ORPHAN, block_text, blocks_or_text, content_text, result_value
from context_summarize.redaction import Redact
from context_summarize.transcript.calls import PartText, call_texts, main_argument, named
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.marks import without_marks

_MARGIN = 64_000
"""This many characters beyond the end of what is shown are searched for secrets too, else half of one would be seen."""


@dataclass(frozen=True, slots=True)
class PartRow:
    """One row as the summariser sees it."""

    title: str
    """What its header says: the role; for a result the tool and its call's main argument."""
    texts: tuple[PartText, ...]


def read_group(
    rows: Iterable[Row],
    answers: Mapping[int, Sequence[Call]],
    missing: Sequence[Call],
    segment_tokens: int,
    redact: Redact | None = None,
) -> list[PartRow]:
    """Returns the rendered rows of one group.

    Args:
        rows: all rows of the group.
        answers: the calls that each row answers, by the row's place in the group.
        missing: calls of the first row that never got a result.
        segment_tokens: length of a segment; of texts that a part cuts, only the two ends are searched for secrets.
    """
    out: list[PartRow] = []
    for at, row in enumerate(rows):
        if row.rendered:
            secrets: list[str] = []
            search = partial(_searched, redact, secrets) if redact and row.part_clean_to < segment_tokens else None
            calls, unanswered = answers.get(at, ()), () if at else missing
            out.append(_read_row(row, calls, unanswered, segment_tokens, search))
            if search and not secrets:
                row.part_clean_to = segment_tokens
    return out


def _searched(redact: Redact, secrets: list[str], text: str) -> str:
    """Returns the text without secrets; if it has some, adds the result to `secrets`."""
    clean = redact(text)
    if clean != text:
        secrets.append(clean)
    return clean


def _read_row(
    row: Row, calls: Sequence[Call], missing: Sequence[Call], segment_tokens: int, redact: Redact | None
) -> PartRow:
    clean = partial(cleaned, redact, longest(segment_tokens))
    clean_result = partial(cleaned, redact, result_bytes(segment_tokens))
    read = _result_texts if row.role == "tool" else _texts
    texts = [text for text in read(row, calls, clean_result, clean) if text.text]
    texts += [PartText("call", f"[call {clean(call.name)}: {NO_RESULT}]") for call in missing]
    return PartRow(_title(row, calls, clean), _together(texts, redact))


def result_bytes(segment_tokens: int) -> int:
    """Returns the UTF-8 bytes of the longest result that is shown whole: half a segment."""
    return 2 * segment_tokens


def longest(segment_tokens: int) -> int:
    """Returns the UTF-8 bytes of any other text that is shown whole: ten segments."""
    return 40 * segment_tokens


def _title(row: Row, calls: Sequence[Call], clean: Redact) -> str:
    if row.role != "tool":
        return row.role
    name = named(calls[0], clean) if calls else " ".join(clean(str(row.raw.get("name") or "")).split())
    return f"tool {name}".strip()


def _result_texts(row: Row, calls: Sequence[Call], clean_result: Redact, _: Redact) -> Iterator[PartText]:
    text = clean_result(without_reminders(content_text(row.raw.get("content"))))
    argument = main_argument(calls[0]) if calls else ""
    alike = "" if "\n" in text else text.replace(argument, "\0") if argument else text
    yield PartText("result", text or "(empty)", "" if calls else ORPHAN.strip(), alike)


def _texts(row: Row, calls: Sequence[Call], clean_result: Redact, clean: Redact) -> Iterator[PartText]:
    unused = {call.id: call for call in calls}
    for block in blocks_or_text(row.raw):
        if is_result(block) and row.result_ids:
            call = unused.pop(result_block_id(block), None)
            label = f"result of {named(call, clean)}:" if call else ORPHAN.strip()
            yield PartText("result", clean_result(without_reminders(content_text(result_value(block)))), label)
        elif not (row.calls and is_call(block)):
            yield PartText("said", clean(block_text(block)))
    for call in row.calls:
        yield from call_texts(call, clean)


def _together(texts: Sequence[PartText], redact: Redact | None) -> tuple[PartText, ...]:
    """Returns the texts of a row; as one text if a secret is split over two of them."""
    if redact and len(texts) > 1:
        whole = "\n".join(text.text for text in texts)
        if (clean := redact(whole)) != whole:
            return (PartText("said", clean),)
    return tuple(texts)


def prose(row: Row) -> str:
    """Returns the text of a row without its calls."""
    texts = (block_text(block) for block in blocks_or_text(row.raw) if not (row.calls and is_call(block)))
    return "\n".join(filter(None, texts))


def without_reminders(text: str) -> str:
    """Returns a result without the reminders that the host has put into it; one without an end stays."""
    pieces: list[str] = []
    while (found := text.partition("<system-reminder>"))[1]:
        _, end, rest = found[2].partition("</system-reminder>")
        if not end:
            break
        pieces.append(found[0].rstrip("\n") if not rest.strip() else found[0])
        text = rest
    return "".join([*pieces, text]) if text.strip() or not pieces else "".join(pieces)


def cleaned(redact: Redact | None, most: int, text: str) -> str:
    """Returns the text without secrets and marks. Of one that is cut far, only the ends are searched, and blanks
    replace the rest."""
    size = most + 2 * _MARGIN
    if redact is None:
        pass
    elif len(text) > 2 * size and min(map(len, ends := (redact(text[:size]), redact(text[-size:])))) >= most + _MARGIN:
        text = re.sub(r"[^\n]", " ", text[size:-size]).join(ends)
    else:
        text = redact(text)
    return escape_marks(without_marks(text))
