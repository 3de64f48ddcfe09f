"""Anthropic's API with its rules, and a view's rows on their way to it as the newest provider-anthropic sends them.

Read at commits 026525f and 5a8689a: leading system rows are one block, later ones stand between the messages, tool
results are batched, an assistant row is sent as its `wire_content`, and up to two breakpoints are in the messages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from context_summarize.testing import JsonRow

_LOOKBACK = 20
"""Blocks before a breakpoint at which the cache is looked for."""
_THINKING = ("thinking", "redacted_thinking")
_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


class Refused(Exception):
    """The API's answer 400."""


def wire(rows: Sequence[JsonRow]) -> tuple[str, list[JsonRow], set[int]]:
    """Returns system block, messages, and the messages that a breakpoint ends."""
    first = next((at for at, row in enumerate(rows) if row["role"] not in ("system", "developer")), len(rows))
    messages, waiting = list[JsonRow](), list[JsonRow]()
    for at, row in enumerate(rows[first:], first):
        if row["role"] == "system":
            waiting.append({"role": "system", "content": [{"type": "text", "text": row["content"]}]})
        elif row["role"] == "tool" and rows[at - 1]["role"] == "tool":
            messages[-1]["content"].append(_result(row))
        else:
            messages.append({"role": "assistant" if row["role"] == "assistant" else "user", "content": _blocks(row)})
        after = next((later["role"] for later in rows[at + 1 :] if later["role"] != "system"), "assistant")
        if row["role"] in ("user", "tool") and after == "assistant":
            messages += waiting
            waiting = []
    system = "\n\n".join(row["content"] for row in rows[:first])
    return system, [*messages, *waiting], _breakpoints(rows[first:], messages)


def _blocks(row: JsonRow) -> list[JsonRow]:
    content, exact = row["content"], row["metadata"].get("anthropic", {}).get("wire_content")
    if row["role"] == "tool":
        return [_result(row)]
    if row["role"] == "assistant" and exact:
        return list(exact)
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    use = ("type", "id", "name", "input")
    return [
        {key: "tool_use" if key == "type" else block[key] for key in use} if block["type"] == "tool_call" else block
        for block in blocks
    ]


def _result(row: JsonRow) -> JsonRow:
    return {"type": "tool_result", "tool_use_id": row["tool_call_id"], "content": row["content"]}


def _breakpoints(rows: Sequence[JsonRow], messages: Sequence[JsonRow]) -> set[int]:
    """Returns where the provider puts them: at the last lasting message, and before the user's last turn."""
    talk = [row for row in rows if row["role"] != "system"]
    if len(messages) < 2 or not any(row["metadata"] for row in talk):
        return set()
    unstable = 0
    for walked, row in enumerate(reversed(talk), 1):
        if row["role"] == "tool":
            break
        if row["metadata"].get("ephemeral") and not row["metadata"].get("persisted"):
            unstable = walked
    newest = _safe(messages, len(messages) - 1 - unstable)
    asked = (at for at in range(newest, -1, -1) if messages[at]["role"] == "user")
    turn = next((at for at in asked if not _of_type(messages[at], "tool_result")), 0)
    earlier = _safe(messages, turn - 1 if turn else newest - 2)
    return {at for at in (newest, earlier) if at >= 0}


def _safe(messages: Sequence[JsonRow], at: int) -> int:
    """Returns the last message up to this one that may have a breakpoint; -1 without one."""
    while at >= 0:
        splits = at + 1 < len(messages) and _of_type(messages[at], "tool_use")
        if not splits and messages[at]["role"] != "system" and messages[at]["content"][-1]["type"] not in _THINKING:
            return at
        at -= 1
    return -1


def _of_type(message: JsonRow, *kinds: str) -> list[JsonRow]:
    return [block for block in message["content"] if block["type"] in kinds]


class Api:
    """Refuses what Anthropic's API refuses, signs thinking, and counts what it reads from its cache."""

    def __init__(self) -> None:
        self.drops = False
        """True to drop stale thinking; else a request with some is refused."""
        self._kept: set[str] = set()
        """Each beginning of a request that ended at a breakpoint, as in the API's cache; entries never expire."""
        self.requests, self.stale, self.unmarked, self.lost = 0, 0, 0, 0
        """Requests; stale blocks; requests without a breakpoint; requests that wrote again what the last one wrote."""
        self._before: list[str] = []
        """The texts of the last request, up to its last breakpoint."""

    def send(self, rows: Sequence[JsonRow]) -> str:
        """Takes a request; returns the signature for the thinking of the answer."""
        self.requests += 1
        system, messages, marked = wire(rows)
        self._check_shape(messages)
        texts, prefix = [system, *map(_canonical, messages)], hashlib.sha256(system.encode())
        for message, text in zip(messages, texts[1:], strict=True):
            stale = [block for block in _of_type(message, *_THINKING) if _signature(block) != prefix.hexdigest()]
            self.stale += len(stale)
            if stale and not self.drops:
                raise Refused("the block is bound to a different conversation")
            prefix.update(text.encode())
        read = self._read(texts, [0, *(at + 1 for at in sorted(marked))])
        continues = texts[: len(self._before)] == self._before
        self.lost += continues and read < len(self._before)
        self.unmarked += not marked and len(messages) > 1
        self._before = texts[: max(marked, default=-1) + 2]
        return prefix.hexdigest()

    def _read(self, texts: Sequence[str], ends: Sequence[int]) -> int:
        """Returns how many of these blocks the cache has; breakpoints are behind those at `ends`."""
        running, beginnings = hashlib.sha256(), list[str]()
        for text in texts:
            running.update(f"{text}\0".encode())
            beginnings.append(running.hexdigest())
        near = (at for end in ends for at in range(max(0, end - _LOOKBACK), end + 1))
        read = max((at + 1 for at in near if beginnings[at] in self._kept), default=0)
        self._kept.update(beginnings[end] for end in ends)
        return read

    def _check_shape(self, messages: Sequence[JsonRow]) -> None:
        talk = [message for message in messages if message["role"] != "system"]
        if talk[0]["role"] != "user" or talk[-1]["role"] != "user":
            raise Refused("messages: the first and the last are the user's")
        called: list[str] = []
        for at, message in enumerate(messages):
            inline, before = message["role"] == "system", messages[at - 1]["role"] if at else ""
            if inline and before == "assistant":
                raise Refused(f"messages.{at}: a system message follows a user message")
            if not message["content"] or any(not block["text"].strip() for block in _of_type(message, "text")):
                raise Refused(f"messages.{at}: empty text")
            results = [block["tool_use_id"] for block in _of_type(message, "tool_result")]
            if sorted(results) != sorted(called) and not (inline and not called):
                raise Refused(f"messages.{at}: results {results} for calls {called}")
            called = [block["id"] for block in _of_type(message, "tool_use")]
            if before == "assistant" == message["role"]:
                raise Refused(f"messages.{at}: roles do not alternate")


def _signature(block: JsonRow) -> str:
    return str(block.get("signature", block.get("data")))
