"""Simulates Anthropic's prompt cache: what a session writes into it and reads from it, by `summary_role`.

python -m benchmarks.hosts.blocks

A request has tools, a system block and messages. The cache holds each beginning that ended at a breakpoint. A request
reads the longest of them that ends at most 20 blocks before one of its own breakpoints, and writes the rest. Entries
never expire here, as in a session without long pauses. amplifier-module-provider-anthropic (commit 45147da) joins
system rows, and sets breakpoints behind tools, system block, last message, and the last message of the request before.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.peers import Ours, variant
from benchmarks.report import Figures, table
from benchmarks.run import play
from benchmarks.sessions import reader
from benchmarks.tokens import Row, count

PROMPT, TOOLS = 28_000, 19_000
"""Tokens of the system prompt and of the tools that amplifier-foundation gives to a session."""
BUDGETS = 80_000, 180_000
"""Tokens for rows."""
_LOOKBACK = 20
_WRITE, _READ = 1.25, 0.1
"""Prices of input that is written into the cache and read from it, as multiples of the plain price."""
COLUMNS = ("budget", "role", "requests", "prompt written", "cached", "written", "price")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a request, and whether a breakpoint follows it."""

    text: str
    is_end: bool = False


@dataclass(slots=True)
class BlockCache:
    """A provider's cache, and how many tokens requests have read from it and written into it."""

    read: int = 0
    written: int = 0
    _kept: set[int] = field(default_factory=set)
    """Hashes of beginnings of requests that ended at a breakpoint."""

    def send(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Takes a request, and returns the blocks that it wrote."""
        beginnings = [*itertools.accumulate((block.text for block in blocks), lambda *both: hash(both), initial=0)][1:]
        ends = [at for at, block in enumerate(blocks) if block.is_end]
        known = (at for end in ends for at in range(max(0, end - _LOOKBACK), end + 1) if beginnings[at] in self._kept)
        found = max(known, default=-1) + 1
        self._kept.update(beginnings[end] for end in ends)
        self.read += sum(_size(block.text) for block in blocks[:found])
        self.written += sum(_size(block.text) for block in blocks[found:])
        return blocks[found:]


def laid_out(rows: Sequence[Row]) -> list[Block]:
    """Returns a view's rows as the provider sends them, with its breakpoints."""
    system = "\n\n".join(str(row["content"]) for row in rows if row["role"] == "system")
    talk = [row for row in rows if row["role"] != "system"]
    said = [at for at, row in enumerate(talk) if row["role"] == "assistant"]
    ends = {len(talk) - 1, *(at - 1 for at in said[-1:])}
    messages = (Block(json.dumps([row["role"], row["content"]]), at in ends) for at, row in enumerate(talk))
    return [Block(_filler("tool", TOOLS), is_end=True), Block(system, is_end=True), *messages]


def play_role(budget: int, role: str) -> Figures:
    """Plays an agent that reads files, and returns its figures."""
    cache, written = BlockCache(), list[bool]()
    prompt, session = _filler("rule", PROMPT), reader(budget, reads=budget // 200)

    def look(fed: int, view: Sequence[Row]) -> None:
        del fed
        written.append(any(prompt in block.text for block in cache.send(laid_out(view))))

    rows = ({"role": "system", "content": prompt}, *session.rows)
    play(variant(role, Ours, summary_role=role), replace(session, rows=rows), look=look)
    return {
        "budget": budget,
        "role": role,
        "requests": len(written),
        "prompt written": sum(written),
        "cached": cache.read / (cache.read + cache.written),
        "written": cache.written,
        "price": round(_WRITE * cache.written + _READ * cache.read),
    }


@functools.cache
def _size(text: str) -> int:
    return count(text)


@functools.cache
def _filler(word: str, tokens: int) -> str:
    """Returns a text of about so many tokens."""
    return "\n".join(f"{word} {number}: do as it says." for number in range(tokens // 9))


if __name__ == "__main__":
    print(table([play_role(budget, role) for budget in BUDGETS for role in ("system", "user")], COLUMNS))
