"""Reads rows of every shape: marks, calls, results.

Rows have these shapes (roles as in `amplifier_core.message_models.Message`):

* user: a string, or blocks `text`, `image`, `image_url`, `tool_result` (Anthropic's shape)
* assistant: a string, or blocks `text`, `thinking`, `redacted_thinking`, `reasoning`, `tool_call`, `tool_use`,
  together with or instead of `tool_calls` entries `{id, tool, arguments}` or `{id, type, function: {name, arguments}}`
* tool: `{role, tool_call_id, name?, content}`, one row a result
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_summarize.messages.rows import CALL_BLOCKS, MAX_INT_BITS, SOURCE, SYSTEM_ROLES, Call, JsonRow, Row

_INSTRUCTION = "amplifier:instruction"
_OVER = ("retired", "anchor_pruned")
"""Marks of an ended instruction: its author ended it, or the row that it was for is gone."""
_REFERENCE = "amplifier_public_reference_only"
"""Marks a row that newer hosts keep for their own screen."""


def analyse(raw: JsonRow) -> Row:
    """Returns the facts about a normalised row that the rest of the package needs."""
    role, hook, ephemeral = raw["role"], is_hook(raw), is_ephemeral(raw)
    instructs = role in SYSTEM_ROLES or is_instruction(raw)
    hidden = _is_over(raw) or _marks(raw).get(_REFERENCE) is True
    rendered = not (instructs or hook or ephemeral or hidden)
    critical = _marks(raw).get("critical") is True or raw.get("critical") is True
    return Row(
        raw=raw,
        role=role,
        rendered=rendered,
        user=rendered and role == "user" and not is_reminder(raw) and not any(map(is_result, blocks_of(raw))),
        pinned=(instructs or critical) and not (hook or ephemeral or hidden),
        hidden=hidden,
        calls=tuple(row_calls(raw)) if rendered and role == "assistant" else (),
        result_ids=tuple(ids_of_results(raw)) if rendered and role in ("tool", "user") else (),
    )


def _marks(raw: JsonRow) -> Mapping[str, Any]:
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def is_reminder(raw: JsonRow) -> bool:
    """Returns True for a reminder of hooks that the host saves: a user row marked ephemeral and persisted.

    The host adds it again only when its text changes, so the row must last as long as any other user row. A row of a
    view that this package made is none, although it has these marks.
    """
    marks = _marks(raw)
    return (
        marks.get("source") != SOURCE
        and raw["role"] == "user"
        and marks.get("ephemeral") is True
        and marks.get("persisted") is True
    )


def is_instruction(raw: JsonRow) -> bool:
    """Returns True for an instruction that newer hosts keep between the messages; it is never the user's."""
    return _INSTRUCTION in _marks(raw) and raw["role"] in (*SYSTEM_ROLES, "user") and not any(ids_of_results(raw))


def _is_over(raw: JsonRow) -> bool:
    """Returns True for an instruction that has ended."""
    marks = _marks(raw).get(_INSTRUCTION)
    return is_instruction(raw) and isinstance(marks, dict) and marks.get("disposition") in _OVER


def is_of_user(raw: JsonRow, first: JsonRow | None) -> bool:
    """Returns True for a user row that no hook wrote, and that the host marks as a human's or does not mark.

    If `first`, the session's first user row, is a delegation, the user is another agent. Then delegations count too.
    """
    origin = _origin(raw)
    delegated = origin == "delegation" and first is not None and _origin(first) == "delegation"
    return not is_hook(raw) and not is_reminder(raw) and (origin in (None, "human") or delegated)


def _origin(raw: JsonRow) -> object:
    """Returns the host's mark for the author of an input; None without one."""
    marks = _marks(raw).get("amplifier:input")
    return marks.get("origin") if isinstance(marks, dict) else None


def is_hook(raw: JsonRow) -> bool:
    """Returns True for a row that a hook has added and hosts do not save; False for a reminder."""
    return _marks(raw).get("source") == "hook" and not is_reminder(raw)


def is_ephemeral(raw: JsonRow) -> bool:
    """Returns True for a row marked `ephemeral`, which hosts do not save; False for a reminder."""
    return (raw.get("ephemeral") is True or _marks(raw).get("ephemeral") is True) and not is_reminder(raw)


def id_of(value: Any) -> str:
    """Returns a call id as text; "" if there is none. Hand-written transcripts have numbers as ids."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= MAX_INT_BITS:
        return str(value)
    return ""


def blocks_of(raw: JsonRow) -> Sequence[Any]:
    """Returns the blocks of a row's content; none if the content is text or missing."""
    content = raw.get("content")
    return content if isinstance(content, list | tuple) else ()


def block_type(block: Any) -> str:
    """Returns the type of a block; "" if it has none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def arguments_of(value: Any) -> Any:
    """Returns arguments as data. In the OpenAI shape they are a JSON string, of some servers an empty one."""
    if isinstance(value, str) and value:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return {} if value in (None, "") else value


def call_entries(raw: JsonRow) -> list[Any]:
    """Returns the entries of `tool_calls` with a usable id."""
    entries = raw.get("tool_calls")
    listed = entries if isinstance(entries, list | tuple) else ()
    return [entry for entry in listed if isinstance(entry, dict) and id_of(entry.get("id"))]


def _call(entry: Mapping[str, Any]) -> Call:
    """Returns the call of a block, or of an entry of `tool_calls`; OpenAI's custom tools take one text as `input`."""
    function = entry.get("function")
    if isinstance(function, dict):
        return Call(id_of(entry["id"]), str(function.get("name") or ""), arguments_of(function.get("arguments")))
    if isinstance(custom := entry.get("custom"), dict):
        return Call(id_of(entry["id"]), str(custom.get("name") or ""), {"input": custom.get("input")})
    name = entry.get("tool") or entry.get("name") or ""
    given = entry.get("arguments") if "arguments" in entry else entry.get("input")
    return Call(id_of(entry["id"]), str(name), arguments_of(given))


def row_calls(raw: JsonRow) -> Iterator[Call]:
    """Yields the calls of an assistant row. A block and an entry of `tool_calls` with the same id are one call."""
    blocks = [_call(block) for block in blocks_of(raw) if is_call(block)]
    yield from blocks
    twice = Counter(call.id for call in blocks)
    for call in map(_call, call_entries(raw)):
        twice[call.id] -= 1
        if twice[call.id] < 0:
            yield call


def is_call(block: Any) -> bool:
    """Returns True for a block that is a call with a usable id."""
    return block_type(block) in CALL_BLOCKS and bool(id_of(block.get("id")))


def is_result(block: Any) -> bool:
    """Returns True for a block with the result of a call."""
    return block_type(block) == "tool_result"


def ids_of_results(raw: JsonRow) -> Iterator[str]:
    """Yields the ids of the calls that a tool row, or a user row with result blocks, answers."""
    if raw["role"] == "tool":
        yield id_of(raw["tool_call_id"])
        return
    for block in blocks_of(raw):
        if is_result(block) and result_block_id(block):
            yield result_block_id(block)


def result_block_id(block: Mapping[str, Any]) -> str:
    """Returns the id of the call that a result block answers, in either shape; "" if there is none."""
    return id_of(block.get("tool_call_id")) or id_of(block.get("tool_use_id"))


def result_value(block: Mapping[str, Any]) -> Any:
    """Returns the contents of a result block, in either shape."""
    return block["output"] if "output" in block else block.get("content")


def with_results_apart(raw: JsonRow) -> Iterator[JsonRow]:
    """Yields the results in a user row's blocks as rows of their own, then the row with what is left, if anything."""
    blocks = blocks_of(raw) if raw["role"] == "user" else ()
    results = [block for block in blocks if is_result(block) and result_block_id(block)]
    marks = {"metadata": raw["metadata"]} if "metadata" in raw else {}
    for block in results:
        error = {"is_error": True} if block.get("is_error") is True else {}
        content = result_value(block) or ""
        yield {"role": "tool", "tool_call_id": result_block_id(block), "content": content, **error, **marks}
    left = [block for block in blocks if not any(block is result for result in results)]
    if left or not results:
        yield {**raw, "content": left} if results else raw


def rough_size(value: Any) -> int:
    """Returns about how much work a row is to read: the characters of its texts, and some for each value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return 100 + sum(map(rough_size, value.values()))
    return 100 + sum(map(rough_size, value)) if isinstance(value, list | tuple) else 10


def broken_pairs(rows: Sequence[JsonRow]) -> list[str]:
    """Returns a text for each broken pair of call and result in a view; none if every pair is whole.

    A result must follow its call, with only other results between them. Calls at the very end may be open. Replays
    check views with it, and so can tests of other modules.
    """
    problems: list[str] = []
    waiting: list[str] = []
    for at, row in enumerate(rows):
        results = list(ids_of_results(row)) if row["role"] in ("tool", "user") else []
        for call_id in results:
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                problems.append(f"row {at}: result {call_id!r} without its call")
        if not results:
            problems += [f"row {at}: call {call_id!r} has no result" for call_id in waiting]
            waiting = [call.id for call in analyse(row).calls]
    return problems
