"""The public text of rows and blocks, in one step or, of large data, in many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_summarize.background import Steps, finished, with_pauses
from context_summarize.messages.images import image_note, is_image
from context_summarize.messages.json_text import saved_json_steps
from context_summarize.messages.reading import block_type, blocks_of, id_of, is_result, is_unparsed, result_block_id
from context_summarize.messages.rows import CALL_BLOCKS, NO_RESULT, PRIVATE_BLOCKS, TEXT_BLOCKS, Call, Row
from context_summarize.transcript.calls import ORPHAN, call_line


def content_text(content: Any) -> str:
    """The public text of a content value: a string, blocks, or data. Thinking is left out, images become a note."""
    return content if isinstance(content, str) else finished(content_steps(content))


def content_steps(content: Any) -> Steps[str]:
    """The same as `content_text`, a block or a piece of one a step."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return "".join((yield from saved_json_steps(content)))
    parts: list[str] = []
    for block in content:
        if part := (yield from block_steps(block)):
            parts.append(part)
    return "\n".join(parts)


def block_text(block: Any) -> str:
    """The public text of one block; an unknown block becomes JSON."""
    return finished(block_steps(block))


def block_steps(block: Any) -> Steps[str]:
    """The same as `block_text` in steps."""
    if isinstance(block, str):
        return block
    kind = block_type(block)
    if kind in TEXT_BLOCKS:
        return (yield from content_steps(block.get("text")))
    if is_image(block):
        return image_note(block)
    if kind in PRIVATE_BLOCKS:
        return ""
    if is_result(block):
        return (yield from content_steps(result_value(block)))
    return "".join((yield from saved_json_steps(block)))


def own_texts(row: Row) -> tuple[str, ...] | None:
    """The texts that a user row holds beside results and attachments; None where its whole content is such text."""
    if isinstance(row.raw.get("content"), str):
        return None
    return tuple(block_text(block) for block in blocks_of(row.raw) if _is_own(block))


def _is_own(block: Any) -> bool:
    return isinstance(block, str) or (block_type(block) in TEXT_BLOCKS and isinstance(block.get("text"), str))


def result_value(block: Mapping[str, Any]) -> Any:
    """What a result block holds, in either shape."""
    return block["output"] if "output" in block else block.get("content")


def render_parts(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> list[tuple[bool, str]]:
    """The text of a row as the summariser sees it, as (is a tool result, text) parts.

    `names` maps the call ids that this row answers to tool names; a result whose id is not in it is an orphan.
    """
    return [part for part in parts_of(row, names, missing) if part[1]]


def parts_of(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> Iterator[tuple[bool, str]]:
    """The same, one after the other: a row may hold thousands of calls. Parts without text are pauses in a long one."""
    raw = row.raw
    content = raw.get("content")
    if row.role == "tool":
        orphan = "" if row.result_ids[0] in names else ORPHAN
        text = yield from with_pauses(content_steps(content), _PAUSE)
        yield True, orphan + text
        return
    if isinstance(content, list | tuple):
        yield from _block_parts(row, content, dict(names))
    else:
        text = yield from with_pauses(content_steps(content), _PAUSE)
        yield False, text
    for call in row.calls:
        arguments = yield from with_pauses(argument_steps(call.arguments), _PAUSE)
        yield False, call_line(call.name, *arguments)
    for call in missing:
        yield False, f"[call {call.name}: {NO_RESULT}]"


def _block_parts(row: Row, content: Sequence[Any], names: dict[str, str]) -> Iterator[tuple[bool, str]]:
    """Parts of the blocks of a row, calls aside."""
    for block in content:
        if is_result(block) and row.result_ids:
            call_id = result_block_id(block)
            label = f"result of {names.pop(call_id)}: " if call_id in names else ORPHAN
            text = yield from with_pauses(content_steps(result_value(block)), _PAUSE)
            yield True, label + text
        elif not (row.calls and block_type(block) in CALL_BLOCKS and id_of(block.get("id"))):
            text = yield from with_pauses(block_steps(block), _PAUSE)
            yield False, text


def argument_steps(arguments: Any) -> Steps[list[str]]:
    """A call's arguments as JSON, a piece a step; a text that is too long to be parsed stands as it is."""
    if is_unparsed(arguments):
        return [arguments]
    return (yield from saved_json_steps(arguments))


_PAUSE = (False, "")
