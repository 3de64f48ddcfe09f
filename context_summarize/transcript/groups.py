"""The rows of one group as a summariser reads them: without secrets and reminders, edits as diffs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from context_summarize.messages.reading import is_call, is_result, result_block_id, result_value
from context_summarize.messages.rows import NO_RESULT, Call, Row, compact_json, saved_json
from context_summarize.messages.text import ORPHAN, block_text, blocks_or_text, call_line, content_text
from context_summarize.redaction import Redact, redact_known
from context_summarize.transcript.escaping import escape_marks

_PAIRS = (("old", "new"), ("search", "replace"), ("find", "replace"), ("before", "after"), ("from", "to"))
"""Words that tell the names of an old and a new text: `old_string` and `new_string`."""
_SHORT = 80
"""Characters of texts on one line that stay in the JSON, and of the argument that names a call."""
_NEAR = 2
"""Unchanged lines that a diff shows before and behind the changed ones."""
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


@dataclass(frozen=True, slots=True)
class PartText:
    """One text of a row, redacted, without marks."""

    kind: Literal["said", "call", "label", "diff", "result"]
    """A label is our own line before a text, such as `content:`."""
    text: str
    alike: str = ""
    """A result of one line, with a sign in place of what its call was for: acknowledgements are alike."""


class PartRow(NamedTuple):
    """One row as the summariser sees it."""

    title: str
    """What its header says: the role; for a result the tool and its call's main argument."""
    texts: tuple[PartText, ...]


def read_group(
    rows: Iterable[Row], answers: Mapping[int, Sequence[Call]], missing: Sequence[Call], redact: Redact | None
) -> list[PartRow]:
    """Returns the rendered rows of one group, which no other row changes.

    Args:
        rows: all rows of the group.
        answers: the calls that each row answers, by the row's place in the group.
        missing: calls of the first row that never got a result.
    """
    out = list[PartRow]()
    is_alone = sum(map(len, answers.values())) + len(missing) == 1
    for at, row in enumerate(rows):
        if row.rendered:
            is_known, secrets = redact is redact_known, list[str]()
            search = partial(_searched, redact, secrets) if redact and not (is_known and row.is_clean) else _unchanged
            out.append(_read_row(row, answers.get(at, ()), () if at else missing, search, is_alone=is_alone))
            row.is_clean = row.is_clean or (is_known and not secrets)
    return out


def _searched(redact: Redact, secrets: list[str], text: str) -> str:
    """Returns the text without secrets; if it has some, adds the result to `secrets`."""
    clean = redact(text)
    if clean != text:
        secrets.append(clean)
    return clean


def _unchanged(text: str) -> str:
    return text


def _read_row(row: Row, calls: Sequence[Call], missing: Sequence[Call], redact: Redact, *, is_alone: bool) -> PartRow:
    texts = [text for text in _texts(row, calls, redact) if text.text]
    texts += [PartText("call", f"[call {redact(call.name)}: {NO_RESULT}]") for call in missing]
    if len(texts) > 1 and (clean := redact(whole := "\n".join(text.text for text in texts))) != whole:
        texts = [PartText("said", clean)]  # a secret is split over two of them
    escaped = [PartText(one.kind, escape_marks(one.text), one.alike) for one in texts]
    title = row.role
    if title == "tool":
        name = calls[0].name if calls else str(row.raw.get("name") or "")
        title = f"tool {named(calls[0], redact) if calls and not is_alone else redact(name)}"
    return PartRow(escape_marks(" ".join(title.split())), tuple(escaped))


def _texts(row: Row, calls: Sequence[Call], redact: Redact) -> Iterator[PartText]:
    if row.role == "tool":
        if not calls:
            yield PartText("label", ORPHAN.strip())
        yield _result(row.raw.get("content"), calls[:1], redact)
        return
    unused = {call.id: call for call in calls}
    for block in blocks_or_text(row.raw):
        if is_result(block) and row.result_ids:
            call = unused.pop(result_block_id(block), None)
            yield PartText("label", f"result of {named(call, redact)}:" if call else ORPHAN.strip())
            yield _result(result_value(block), (), redact)
        elif not (row.calls and is_call(block)):
            yield PartText("said", redact(block_text(block)))
    for call in row.calls:
        yield from _call_texts(call, redact)


def _result(content: Any, calls: Sequence[Call], redact: Redact) -> PartText:
    text = _without_reminders(redact(content_text(content))) or "(empty)"
    argument = main_argument(calls[0]) if calls else ""
    alike = "" if "\n" in text else text.replace(argument, "\0") if argument else text
    return PartText("result", text, alike)


def _without_reminders(text: str) -> str:
    """Returns a result without the reminders that the host has put into it; one without an end stays."""
    first, *others = text.split(_REMINDER)
    ends = (other.partition(_REMINDER_END) for other in others)
    kept = "".join([first, *(rest if end else f"{_REMINDER}{said}" for said, end, rest in ends)])
    return kept.rstrip("\n") if others else text


def main_argument(call: Call) -> str:
    """Returns the first text among a call's arguments: agents write the parameter first that says what for."""
    values = call.arguments.values() if isinstance(call.arguments, Mapping) else [call.arguments]
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def named(call: Call, redact: Redact) -> str:
    """Returns a call's tool and main argument on one line; of a long one both ends."""
    line = redact(" ".join(main_argument(call).strip().split("\n", 1)[0].split()))
    short = line if len(line) <= _SHORT else f"{line[: _SHORT // 2]}…{line[-_SHORT // 2 :]}"
    return f"{' '.join(redact(call.name).split())} {short}".strip()


def _call_texts(call: Call, redact: Redact) -> Iterator[PartText]:
    """Yields the line of a call, then the texts among its arguments that have several lines, and its diffs."""
    data = saved_json(call.arguments)
    clean = redact(data)
    arguments, texts = call.arguments if clean == data else _parsed(clean), list[PartText]()
    left = _taken_out(arguments, "", redact, texts)
    shown = left if isinstance(left, str) else compact_json({} if left is None else left)
    yield PartText("call", call_line(redact(call.name), shown))
    yield from texts


def _parsed(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _taken_out(value: Any, where: str, redact: Redact, texts: list[PartText]) -> Any:
    """Returns arguments without None and without their long texts, which go to `texts`; None if nothing is left."""
    if isinstance(value, str) and "\n" in value:
        texts += [PartText("label", where and f"{where}:"), PartText("said", redact(value))]
        return None
    if isinstance(value, Mapping):
        pairs = dict(_pairs(value))
        for old, new in pairs.items():
            shown = diff(redact(value[old]), redact(value[new]))
            texts += [PartText("label", where and f"{where}:"), PartText("diff", "\n".join(shown) or " (no change)")]
        items = [(key, item) for key, item in value.items() if key not in pairs and key not in pairs.values()]
        left = {key: _taken_out(item, f"{where} {key}".strip(), redact, texts) for key, item in items}
        return {key: item for key, item in left.items() if item is not None} or (None if texts else {})
    if isinstance(value, list | tuple):
        kept = [_taken_out(item, f"{where} {at}".strip(), redact, texts) for at, item in enumerate(value, 1)]
        return [item for item in kept if item is not None] or None
    return value


def _pairs(arguments: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yields the names of an old and of its new text, unless both are short."""
    texts = {key: value for key, value in arguments.items() if isinstance(key, str) and isinstance(value, str)}
    for key, old in texts.items():
        for word, other in _PAIRS:
            new = key.replace(word, other, 1)
            if word in key and new in texts and ("\n" in old + texts[new] or len(old + texts[new]) > _SHORT):
                yield key, new


def diff(old: str, new: str) -> list[str]:
    """Returns the lines between the common beginning and the common end of two texts, with a sign, and those near."""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    shorter, head, tail = min(len(before), len(after)), 0, 0
    while head < shorter and before[head] == after[head]:
        head += 1
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
    if not gone and not come:
        return []
    near = [f" {line}" for line in before[max(0, head - _NEAR) : head + len(gone) + _NEAR]]
    first = min(_NEAR, head)
    changed = [*(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
    return [*near[:first], *changed, *near[first + len(gone) :]]
