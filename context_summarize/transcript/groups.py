"""The rows of one group as all read them: summarisers, the thread, recall, fallbacks. Without reminders, with diffs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from context_summarize.messages.reading import is_call, is_of_user, is_result, result_block_id, result_value
from context_summarize.messages.rows import NO_RESULT, Call, JsonRow, Row, compact_json, equal_prefix, saved_json
from context_summarize.messages.text import block_text, blocks_or_text, call_line, content_text, is_text
from context_summarize.redaction import Redact, redact_known
from context_summarize.transcript.escaping import escape_marks

_PAIRS = (("old", "new"), ("search", "replace"), ("find", "replace"), ("before", "after"), ("from", "to"))
"""Words that tell the names of an old and a new text: `old_string` and `new_string`."""
_SHORT = 80
"""Characters of texts on one line that stay in the JSON, and of the argument that names a call."""
_ORPHAN = "[result without a call] "
"""Beginning of a result whose call is not in the history."""
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


@dataclass(frozen=True, slots=True)
class PartText:
    """One text of a row, redacted, without marks."""

    kind: Literal["said", "attached", "call", "argument", "label", "diff", "result"]
    """What is attached is no text, or not the user's. A label is our own line before a text, such as `content:`."""
    text: str
    alike: str = ""
    """A result of one line, with a sign in place of what its call was for: acknowledgements are alike."""
    call: Call | None = None
    """The call that is shown, with all its arguments."""


class PartRow(NamedTuple):
    """One row as its readers see it."""

    role: str
    name: str
    """For a result the tool, and its call's main argument if the group has several calls."""
    texts: tuple[PartText, ...]

    @property
    def title(self) -> str:
        """What its header says."""
        return f"{self.role} {self.name}".strip()

    @property
    def text(self) -> str:
        """All its texts."""
        return "\n".join(text.text for text in self.texts)

    @property
    def said(self) -> str:
        """What the user says here, or the agent."""
        return "\n".join(text.text for text in self.texts if text.kind == "said")


def read_group(
    rows: Iterable[Row],
    answers: Mapping[int, Sequence[Call]],
    missing: Sequence[Call],
    redact: Redact | None,
    first_user: JsonRow | None,
) -> list[PartRow]:
    """Returns the rendered rows of one group, which no other row changes.

    Args:
        rows: all rows of the group.
        answers: the calls that each row answers, by the row's place in the group.
        missing: calls of the first row that never got a result.
        first_user: the first user message of the history.
    """
    out = list[PartRow]()
    is_alone = sum(map(len, answers.values())) + len(missing) == 1
    for at, row in enumerate(rows):
        if row.rendered:
            is_known, secrets = redact is redact_known, list[str]()
            search: Redact = partial(_searched, redact, secrets) if redact and not (is_known and row.is_clean) else str
            calls, unanswered = answers.get(at, ()), () if at else missing
            texts = [text for text in _texts(row, calls, search, first_user) if text.text]
            texts += [PartText("call", f"[call {search(call.name)}: {NO_RESULT}]") for call in unanswered]
            name = _tool_name(row, calls, search, is_alone=is_alone) if row.role == "tool" else ""
            out.append(PartRow(row.role, name, tuple(_escaped(texts, search))))
            row.is_clean = row.is_clean or (is_known and not secrets)
    return out


def _searched(redact: Redact, secrets: list[str], text: str) -> str:
    """Returns the text without secrets; if it has some, adds the result to `secrets`."""
    clean = redact(text)
    if clean != text:
        secrets.append(clean)
    return clean


def _tool_name(row: Row, calls: Sequence[Call], redact: Redact, *, is_alone: bool) -> str:
    if calls:
        name = redact(calls[0].name) if is_alone else named(calls[0], redact)
    else:
        name = redact(str(row.raw.get("name") or ""))
    return escape_marks(" ".join(name.split()))


def _escaped(texts: Sequence[PartText], redact: Redact) -> list[PartText]:
    """Returns the texts of a row without marks, and as one text if a secret is split over two of them."""
    if len(texts) > 1 and (clean := redact(whole := "\n".join(text.text for text in texts))) != whole:
        texts = [PartText(texts[0].kind if len({text.kind for text in texts}) == 1 else "attached", clean)]
    return [replace(one, text=escape_marks(one.text)) for one in texts]


def _texts(row: Row, calls: Sequence[Call], redact: Redact, first_user: JsonRow | None) -> Iterator[PartText]:
    if row.role == "tool":
        yield _result(row.raw.get("content"), calls[0] if calls else None, redact)
        return
    unused = {call.id: call for call in calls}
    is_own = row.role != "user" or is_of_user(row.raw, first_user)
    for block in blocks_or_text(row.raw):
        if is_result(block) and row.result_ids:
            call = unused.pop(result_block_id(block), None)
            if call:
                yield PartText("label", f"result of {named(call, redact)}:")
            yield _result(result_value(block), call, redact)
        elif not (row.calls and is_call(block)):
            yield PartText("said" if is_own and is_text(block) else "attached", redact(block_text(block)))
    for call in row.calls:
        yield from _call_texts(call, redact)


def _result(content: Any, call: Call | None, redact: Redact) -> PartText:
    text = _without_reminders(redact(content_text(content))) or "(empty)"
    if call is None:
        return PartText("result", _ORPHAN + text)
    argument = main_argument(call)
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
    arguments, texts = call.arguments if clean == data else parsed(clean), list[PartText]()
    left = _taken_out(arguments, "", redact, texts)
    shown = left if isinstance(left, str) else compact_json({} if left is None else left)
    name = redact(call.name)
    yield PartText("call", call_line(name, shown), call=Call(call.id, name, arguments))
    yield from texts


def parsed(data: str) -> Any:
    """Returns the value of JSON; what is no JSON as it is."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _taken_out(value: Any, where: str, redact: Redact, texts: list[PartText]) -> Any:
    """Returns arguments without None and without their long texts, which go to `texts`; None if nothing is left."""
    if isinstance(value, str) and "\n" in value:
        texts += [PartText("label", where and f"{where}:"), PartText("argument", redact(value))]
        return None
    if isinstance(value, Mapping):
        pairs = dict(_pairs(value))
        for old, new in pairs.items():
            shown = "\n".join(diff(redact(value[old]), redact(value[new])))
            texts += [PartText("label", where and f"{where}:"), PartText("diff", shown)]
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
    """Returns the lines of two texts with a sign: those gone, those that came; the ends that both share only once."""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    head = equal_prefix(before, after)
    tail = equal_prefix(before[head:][::-1], after[head:][::-1])
    lines = [f" {line}" for line in before[:head]]
    lines += [f"-{line}" for line in before[head : len(before) - tail]]
    lines += [f"+{line}" for line in after[head : len(after) - tail]]
    return [*lines, *(f" {line}" for line in before[len(before) - tail :])]
