"""What hosts save of a history, and load again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from context_summarize.testing import JsonRow


def saved(rows: Iterable[JsonRow]) -> list[JsonRow]:
    """As amplifier-app-cli: no system or developer row, no None, no opaque field; through JSON."""
    lean = [row for row in rows if row["role"] not in ("system", "developer")]
    return list(json.loads(json.dumps([_without_none(_kept(row)) for row in lean], ensure_ascii=False)))


def _kept(row: JsonRow) -> JsonRow:
    kept = {key: value for key, value in row.items() if key not in ("thinking_block", "content_blocks")}
    block = row.get("thinking_block")
    return {**kept, "thinking_text": block["text"]} if isinstance(block, dict) and "text" in block else kept


def _without_none(value: Any) -> Any:
    """amplifier-foundation's `sanitize_for_json`, without its care for foreign objects."""
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value
