"""Message shapes on the way in: checks, text, calls, results, images, marks. `outgoing` has the way out.

Shapes that occur (roles as `amplifier_core.message_models.Message` has them):

* user: a string, or blocks `text`, `image`, `image_url`, `tool_result` (Anthropic's shape)
* assistant: a string, or blocks `text`, `thinking`, `redacted_thinking`, `reasoning`, `tool_call`, `tool_use`,
  beside or instead of `tool_calls` entries `{id, tool, arguments}` or `{id, type, function: {name, arguments}}`
* tool: `{role, tool_call_id, name?, content}`, one row a result
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from .errors import MessageError
from .types import Call, JsonRow, Row

ROLES = ("system", "developer", "user", "assistant", "function", "tool")
MAX_DEPTH = 200
"""Nesting that is kept; deeper rows break the JSON encoder of every host."""
_MAX_INT_BITS = 14_000  # json.dumps refuses integers of more than 4,300 digits
SOURCE = "context-summarize"
"""`metadata.source` of the rows that this package makes."""
NO_RESULT = "no result recorded"

_SCALARS = (str, int, float, bool, type(None))
_CONTAINERS = (dict, list, tuple)
Shape: TypeAlias = "tuple[tuple[Any, Shape | None], ...]"
"""(key or position, shape) of each container within a container; None for a tuple, which is rare."""
CALL_BLOCKS = ("tool_call", "tool_use")
_TEXT_BLOCKS = ("text", "input_text", "output_text")


# --- the way in -----------------------------------------------------------------------------------------------------


def copy_json(value: Any) -> Any:
    """Copy dicts and lists at every depth; text and numbers are shared. For values that `normalise` has passed."""
    if isinstance(value, dict):
        return {k: copy_json(v) if isinstance(v, _CONTAINERS) else v for k, v in value.items()}
    if isinstance(value, list):
        return [copy_json(v) if isinstance(v, _CONTAINERS) else v for v in value]
    if isinstance(value, tuple):
        return tuple(copy_json(v) for v in value)
    return value


def shape_of(value: JsonRow | list[Any]) -> Shape:
    """Where the containers within a dict or list stand, so that `copy_shaped` need not look for them again."""
    items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    found = ((key, item) for key, item in items if isinstance(item, _CONTAINERS))
    return tuple((key, None if isinstance(item, tuple) else shape_of(item)) for key, item in found)


def copy_shaped(value: Any, shape: Shape) -> Any:
    """The same as `copy_json` of a value whose shape is known, without a look at every value in it."""
    copy = value.copy()
    for key, inner in shape:
        copy[key] = copy_json(value[key]) if inner is None else copy_shaped(value[key], inner)
    return copy


def _checked_copy(value: Any, where: str, depth: int) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is float:
        return value
    if depth > MAX_DEPTH:
        raise MessageError(f"{where} is nested deeper than {MAX_DEPTH} levels; flatten it or pass it as a JSON string")
    if isinstance(value, Mapping):
        out: dict[Any, Any] = {}
        for key, item in value.items():
            # Rows from JSON bring their own copy of every key; a day of them is worth sharing.
            name = sys.intern(key) if type(key) is str else _checked_key(key, where)
            out[name] = _checked_copy(item, f"{where}.{str(name)[:40]}" if depth < 4 else where, depth + 1)
        return out
    if isinstance(value, list):
        return [_checked_copy(item, where, depth + 1) for item in value]
    if isinstance(value, tuple):
        return tuple(_checked_copy(item, where, depth + 1) for item in value)
    if isinstance(value, int):
        return _checked_int(value, where)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return value
    if isinstance(value, BaseModel):
        return _checked_copy(_dumped(value, where), where, depth + 1)
    raise MessageError(f"{where} is a {kind.__name__}, which cannot become JSON; pass text, numbers, lists or dicts")


def _checked_key(key: Any, where: str) -> Any:
    if not isinstance(key, _SCALARS):
        raise MessageError(f"{where} has a key of type {type(key).__name__}; JSON keys are strings")
    return _checked_int(key, f"a key of {where}") if isinstance(key, int) else key


def _checked_int(value: int, where: str) -> int:
    if value.bit_length() > _MAX_INT_BITS:
        raise MessageError(f"{where} is an integer of {value.bit_length()} bits; pass it as a string")
    return value


def _dumped(model: BaseModel, where: str) -> Any:
    """A pydantic block as data. Its serialisers are foreign code and may raise anything that is a `ValueError`."""
    try:
        return model.model_dump(mode="json")
    except (ValueError, TypeError, RecursionError) as error:
        raise MessageError(f"{where} is a {type(model).__name__} that cannot become JSON: {error}") from None


def normalise(message: Any) -> JsonRow:
    """Check a row and copy it deeply; pydantic blocks become dicts.

    Raises:
        MessageError: no dict, no or an unknown role, a tool row without id, or what cannot become JSON.
    """
    if not isinstance(message, Mapping):
        raise MessageError(f"a message must be a dict, got {type(message).__name__}")
    role = message.get("role")
    if role is None:
        raise MessageError(f"a message must have a role; expected one of {', '.join(ROLES)}")
    if not isinstance(role, str) or role not in ROLES:
        shown = repr(role)[:60] if isinstance(role, str) else f"of type {type(role).__name__}"
        hint = f"; did you mean {role.lower()!r}?" if isinstance(role, str) and role.lower() in ROLES else ""
        raise MessageError(f"unknown role {shown}; expected one of {', '.join(ROLES)}{hint}")
    given = message.get("tool_call_id")
    if role == "tool" and not id_of(given):
        shown = repr(given)[:60] if given is None or isinstance(given, str) else f"a {type(given).__name__}"
        raise MessageError(f"a tool message needs the id of its call in tool_call_id, got {shown}")
    try:
        row: JsonRow = _checked_copy(message, "message", 0)
    except RecursionError:
        raise MessageError(f"message is nested deeper than {MAX_DEPTH} levels; flatten it") from None
    row["role"] = sys.intern(row["role"])
    return row


def analyse(raw: JsonRow, *, preserve_system: bool = True) -> Row:
    """What the rest of the package needs to know of a normalised row."""
    role = raw["role"]
    metadata = raw.get("metadata")
    marks: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    hook = is_hook(raw)
    ephemeral = is_ephemeral(raw)
    critical = marks.get("critical") is True or raw.get("critical") is True
    host_system = role in ("system", "developer") and not hook and not ephemeral
    rendered = not (role in ("system", "developer") or hook or ephemeral)
    calls = tuple(_calls(raw)) if rendered and role == "assistant" else ()
    result_ids = tuple(_result_ids(raw)) if rendered and role in ("tool", "user") else ()
    return Row(
        raw=raw,
        role=role,
        rendered=rendered,
        user=rendered and role == "user" and not any(block_type(block) == "tool_result" for block in _blocks(raw)),
        pinned=(host_system and preserve_system) or (critical and not hook and not ephemeral),
        ephemeral=ephemeral,
        calls=calls,
        result_ids=result_ids,
    )


def is_hook(raw: JsonRow) -> bool:
    """True for a row that a hook has put in: hosts do not save it."""
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and metadata.get("source") == "hook"


def is_ephemeral(raw: JsonRow) -> bool:
    """True for a row of the moment, which hosts do not save: `ephemeral` is true, in the row or in its metadata."""
    metadata = raw.get("metadata")
    return raw.get("ephemeral") is True or (isinstance(metadata, dict) and metadata.get("ephemeral") is True)


def id_of(value: Any) -> str:
    """A call id as text; "" where there is none. Numbers occur in hand-written transcripts."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _MAX_INT_BITS:
        return str(value)
    return ""


def _blocks(raw: JsonRow) -> Sequence[Any]:
    content = raw.get("content")
    return content if isinstance(content, list | tuple) else ()


def block_type(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def arguments_of(value: Any) -> Any:
    """Arguments as data: the OpenAI shape carries them as a JSON string."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return {} if value is None else value


def entry_call(entry: Any) -> Call | None:
    """One `tool_calls` entry; None where it has no usable id."""
    if not isinstance(entry, dict) or not id_of(entry.get("id")):
        return None
    function = entry.get("function")
    if isinstance(function, dict):
        return Call(id_of(entry["id"]), str(function.get("name") or ""), arguments_of(function.get("arguments")))
    name = entry.get("tool") or entry.get("name") or ""
    given = entry.get("arguments") if "arguments" in entry else entry.get("input")
    return Call(id_of(entry["id"]), str(name), arguments_of(given))


def _calls(raw: JsonRow) -> Iterator[Call]:
    """Calls of an assistant row; one that stands both as block and in `tool_calls` is one call."""
    in_blocks: list[str] = []
    for block in _blocks(raw):
        if block_type(block) in CALL_BLOCKS and id_of(block.get("id")):
            call_id = id_of(block["id"])
            in_blocks.append(call_id)
            yield Call(call_id, str(block.get("name") or ""), arguments_of(block.get("input")))
    entries = raw.get("tool_calls")
    for entry in entries if isinstance(entries, list | tuple) else ():
        call = entry_call(entry)
        if call is None:
            continue
        if call.id in in_blocks:
            in_blocks.remove(call.id)
        else:
            yield call


def _result_ids(raw: JsonRow) -> Iterator[str]:
    if raw["role"] == "tool":
        yield id_of(raw["tool_call_id"])
        return
    for block in _blocks(raw):
        if block_type(block) == "tool_result" and result_block_id(block):
            yield result_block_id(block)


def result_block_id(block: Mapping[str, Any]) -> str:
    return id_of(block.get("tool_call_id")) or id_of(block.get("tool_use_id"))


# --- text -----------------------------------------------------------------------------------------------------------


def compact_json(value: Any) -> str:
    """JSON with sorted keys, so that equal data gives equal text on every machine."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def saved_json(value: Any) -> str:
    """The same without None, which hosts do not save: a key must not change with it."""
    text = compact_json(value)
    try:
        return compact_json(_without_none(value)) if "null" in text else text
    except RecursionError:
        return text


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value


def image_source(block: Mapping[str, Any]) -> tuple[str, str]:
    """(media type, base64 data or URL) of an image block in any shape."""
    source = block.get("source")
    if isinstance(source, dict):
        kind = str(source.get("media_type") or "image")
        return kind, str(source.get("data") or source.get("url") or "")
    given = block.get("image_url")
    url = given.get("url") if isinstance(given, dict) else given
    url = url if isinstance(url, str) else ""
    if url.startswith("data:") and "," in url:
        head, _, data = url.partition(",")
        return head[5:].partition(";")[0] or "image", data
    return "image", url


def _image_note(block: Mapping[str, Any]) -> str:
    kind, data = image_source(block)
    if data.startswith(("http://", "https://")):
        return f"[image: {kind}, {data}]"
    return f"[image: {kind}, {len(data) * 3 // 4:,} bytes]"


def is_image(block: Any) -> bool:
    """True for an image block in any of the shapes."""
    return block_type(block) in ("image", "image_url", "input_image")


def content_text(content: Any) -> str:
    """The public text of a content value: a string, blocks, or data. Thinking is left out, images become a note."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return saved_json(content)
    parts = (block_text(block) for block in content)
    return "\n".join(part for part in parts if part)


def block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    kind = block_type(block)
    if kind in _TEXT_BLOCKS:
        text = block.get("text")
        return text if isinstance(text, str) else content_text(text)
    if is_image(block):
        return _image_note(block)
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return ""
    if kind == "tool_result":
        return content_text(result_value(block))
    return saved_json(block)


def result_value(block: Mapping[str, Any]) -> Any:
    return block["output"] if "output" in block else block.get("content")


def render_parts(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> list[tuple[bool, str]]:
    """The text of a row as the summariser is shown it, as (is a tool result, text) parts.

    `names` maps the call ids that this row answers to tool names; a result whose id is not in it is an orphan.
    """
    raw = row.raw
    if row.role == "tool":
        orphan = "" if row.result_ids[0] in names else "[result without a call] "
        return [(True, orphan + content_text(raw.get("content")))]
    names = dict(names)
    parts: list[tuple[bool, str]] = []
    content = raw.get("content")
    if isinstance(content, list | tuple):
        for block in content:
            if block_type(block) == "tool_result" and row.result_ids:
                call_id = result_block_id(block)
                label = f"result of {names.pop(call_id)}: " if call_id in names else "[result without a call] "
                parts.append((True, label + content_text(result_value(block))))
            elif not (row.calls and block_type(block) in CALL_BLOCKS and id_of(block.get("id"))):
                parts.append((False, block_text(block)))
    else:
        parts.append((False, content_text(content)))
    parts.extend((False, f"call {call.name}({saved_json(call.arguments)})") for call in row.calls)
    parts.extend((False, f"[call {call.name}: {NO_RESULT}]") for call in missing)
    return [part for part in parts if part[1]]


def countable(raw: JsonRow) -> tuple[list[str], list[Mapping[str, Any]]]:
    """(texts, image blocks) that a provider is charged for; a call that is stored twice is given once."""
    texts: list[str] = []
    images: list[Mapping[str, Any]] = []
    content = raw.get("content")
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, list | tuple):
        for block in content:
            _countable_block(block, texts, images)
    elif content is not None:
        texts.append(compact_json(content))
    if raw["role"] == "assistant" and raw.get("tool_calls"):
        in_blocks = [id_of(b.get("id")) for b in _blocks(raw) if block_type(b) in CALL_BLOCKS]
        for call in _calls({**raw, "content": None}):
            if call.id in in_blocks:
                in_blocks.remove(call.id)
            else:
                texts.extend((call.name, compact_json(call.arguments)))
    return texts, images


def _countable_block(block: Any, texts: list[str], images: list[Mapping[str, Any]]) -> None:
    kind = block_type(block)
    if is_image(block):
        images.append(block)
    elif kind in CALL_BLOCKS:
        texts.extend((str(block.get("name") or ""), compact_json(arguments_of(block.get("input")))))
    elif kind == "thinking":
        texts.append(content_text(block.get("thinking")))
    elif kind == "redacted_thinking":
        texts.append(content_text(block.get("data")))
    elif kind == "reasoning":
        texts.append(compact_json(block.get("summary") or block.get("content")))
    elif kind == "tool_result":
        value = result_value(block)
        images.extend(b for b in value if is_image(b)) if isinstance(value, list | tuple) else None
        texts.append(content_text([b for b in value if not is_image(b)] if isinstance(value, list | tuple) else value))
    else:
        texts.append(block_text(block))
