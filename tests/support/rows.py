"""Rows as hosts store them, made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from context_summarize.testing import JsonRow


def user(text: Any, **more: Any) -> JsonRow:
    """A user row."""
    return {"role": "user", "content": text, **more}


def assistant(text: Any) -> JsonRow:
    """An assistant row without calls."""
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str = "bash", text: str = "", **arguments: Any) -> JsonRow:
    """An assistant row with one call, as Amplifier's loops store it: as a block and in `tool_calls`."""
    return calls((call_id, name, arguments), text=text)


def calls(*made: tuple[str, str, dict[str, Any]], text: str = "") -> JsonRow:
    """An assistant row with several parallel calls (id, name, arguments)."""
    said = [{"type": "text", "text": text}] if text else []
    blocks = [{"type": "tool_call", "id": i, "name": n, "input": dict(a)} for i, n, a in made]
    entries = [{"id": i, "tool": n, "arguments": dict(a)} for i, n, a in made]
    return {"role": "assistant", "content": [*said, *blocks], "tool_calls": entries}


def result(call_id: str, text: Any = "ok", name: str = "bash") -> JsonRow:
    """A tool row."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


def hook(text: str, role: str = "system") -> JsonRow:
    """A row that a hook has added."""
    return {"role": role, "content": text, "metadata": {"source": "hook", "hook_name": "test", "ephemeral": False}}


def tool_session(turns: int, *, size: int = 400, start: int = 0) -> list[JsonRow]:
    """A session of turns with unique ids: a request, a call, its result (about `size` characters) and an answer."""
    rows: list[JsonRow] = []
    for turn in range(start, start + turns):
        body = f"value-{turn}-A{turn:04d}B " * max(1, size // 16)
        rows += [
            user(f"Please look up order ORD{turn:05d} and tell me its state."),
            call(f"call_{turn}", "lookup", order=f"ORD{turn:05d}"),
            result(f"call_{turn}", body, "lookup"),
            assistant(f"Order ORD{turn:05d} was found; its state is shipped-{turn}."),
        ]
    return rows


async def feed(manager: Any, rows: Iterable[JsonRow]) -> Any:
    """The manager, with these rows added one by one."""
    for row in rows:
        await manager.add_message(row)
    return manager
