"""Counts the tokens of texts and rows, the same way for every contestant and every version of ours."""

from __future__ import annotations

import base64
import functools
import json
import lzma
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tiktoken

import context_summarize

Row = dict[str, Any]
Count = Callable[[str], int]

_RANKS = Path(context_summarize.__file__).parent / "tokens" / "data" / "o200k_base.tiktoken.xz"
_ROW_OVERHEAD = 3
"""Tokens that wrap one message, as OpenAI states for its chat models."""
_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@functools.cache
def encoding() -> tiktoken.Encoding:
    """Returns `o200k_base` from the package's ranks; it takes some 90 MB, so a process has one."""
    lines = (line.split() for line in lzma.decompress(_RANKS.read_bytes()).splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding("benchmarks", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})


def count(text: str) -> int:
    """Counts the tokens of a text."""
    return len(encoding().encode_ordinary(text))


class Counting:
    """A contestant's counter, with a cache of its own or none; it adds up the CPU seconds that counting takes."""

    def __init__(self, *, cached: bool) -> None:
        self.cpu = 0.0
        self._count = functools.lru_cache(maxsize=200_000)(count) if cached else count

    def __call__(self, text: str) -> int:
        started = time.thread_time()
        tokens = self._count(text)
        self.cpu += time.thread_time() - started
        return tokens


def text_of(row: Row) -> str:
    """Returns the text of a row, without its calls."""
    content = row["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if block["type"] == "text")


def calls_of(row: Row) -> list[Row]:
    return row.get("tool_calls") or []


def said(row: Row) -> str:
    """Returns all that a row says: its text, and the arguments of its calls."""
    return "\n".join([text_of(row), *(arguments_of(call) for call in calls_of(row))]).strip()


def arguments_of(call: Row) -> str:
    """Returns the arguments of a call as they are counted and searched."""
    return json.dumps(call["arguments"], ensure_ascii=False, separators=(",", ":"))


def measure(row: Row, counted: Count) -> int:
    """Counts the tokens of a row: its text, its calls, and the wrapping."""
    texts = [text_of(row)]
    for call in calls_of(row):
        texts += [call["tool"], arguments_of(call)]
    return _ROW_OVERHEAD + sum(counted(text) for text in texts if text)


def broken_pairs(rows: Sequence[Row]) -> int:
    """Counts calls without their result and results without their call; calls at the very end may be open."""
    broken, waiting = 0, set[str]()
    for row in rows:
        if row["role"] == "tool":
            broken += row["tool_call_id"] not in waiting
            waiting.discard(row["tool_call_id"])
        else:
            broken += len(waiting)
            waiting = {call["id"] for call in calls_of(row)}
    return broken
