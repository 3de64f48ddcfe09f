"""Anthropic's prompt cache, simulated: what a session writes into it and reads from it, by where its summaries stand.

python -m benchmarks.hosts.blocks [--budgets 40000 80000]

A request is tools, system blocks and messages, with at most four breakpoints. The cache holds whatever ended at a
breakpoint; a request reads the longest such beginning that ends at most 20 blocks before one of its own breakpoints,
and writes the rest. Entries never end here, so a session without long pauses is what is shown. The layouts are those of
amplifier-module-provider-anthropic (commit 45147da): it joins all system rows into one block; where rows are marked
`amplifier:instruction` each has a block of its own, and the breakpoint stands before the first that is marked as live.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.peers import Ours
from benchmarks.report import Figures, table
from benchmarks.run import play
from benchmarks.sessions import reader
from benchmarks.tokens import Row, count
from context_summarize.messages.rows import SOURCE

PROMPT, TOOLS = 28_000, 19_000
"""Tokens of the system prompt and of the tools that amplifier-foundation gives to a session."""
LAYOUTS = {"joined": "system rows, joined", "live": "system rows, marked as live", "user": "user rows"}
"""How summaries and notes stand in a request."""
_LOOKBACK = 20
_WRITE, _READ = 1.25, 0.1
"""Prices of input that is written into the cache and read from it, as parts of the plain price."""
COLUMNS = ("budget", "summaries", "requests", "changes", "prompt written", "read", "written", "price")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a request, and whether a breakpoint stands behind it."""

    text: str
    is_end: bool = False


@dataclass(slots=True)
class BlockCache:
    """What a provider keeps of requests, and what they have read from it and written into it."""

    read: int = 0
    written: int = 0
    _kept: set[int] = field(default_factory=set)
    """Beginnings of requests that ended at a breakpoint."""

    def send(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Takes a request in; the blocks of it that were written."""
        beginnings: list[int] = []
        for block in blocks:
            beginnings.append(hash((beginnings[-1] if beginnings else 0, block.text)))
        ends = [at for at, block in enumerate(blocks) if block.is_end]
        known = (at for end in ends for at in range(max(0, end - _LOOKBACK), end + 1) if beginnings[at] in self._kept)
        found = max(known, default=-1) + 1
        self._kept.update(beginnings[end] for end in ends)
        self.read += sum(_size(block.text) for block in blocks[:found])
        self.written += sum(_size(block.text) for block in blocks[found:])
        return blocks[found:]


def laid_out(rows: Sequence[Row], layout: str) -> list[Block]:
    """A view's rows as the provider sends them, with its breakpoints."""
    own = [row for row in rows if row["role"] == "system" and row["metadata"].get("source") == SOURCE]
    system = [str(row["content"]) for row in rows if row["role"] == "system" and row not in own]
    summaries = [str(row["content"]) for row in own]
    head, live = [*system, *(summaries if layout == "joined" else ())], summaries if layout == "live" else ()
    talk = [json.dumps([row["role"], row["content"]]) for row in rows if row["role"] != "system"]
    messages = [*map(Block, summaries if layout == "user" else ()), *map(Block, talk)]
    said = [at for at, row in enumerate(row for row in rows if row["role"] != "system") if row["role"] == "assistant"]
    for at in {len(messages) - 1, len(messages) - len(talk) + said[-1] - 1 if said else 0} - {-1}:
        messages[at] = replace(messages[at], is_end=True)
    return [Block(_TOOLS, is_end=True), Block("\n\n".join(head), is_end=True), *map(Block, live), *messages]


def play_layouts(budget: int) -> list[Figures]:
    """The figures of an agent that reads files, by layout; the budget is that of rows, tools aside."""
    caches = {layout: BlockCache() for layout in LAYOUTS}
    prompts = dict.fromkeys(LAYOUTS, 0)
    heads: list[str] = []
    session = reader(budget, reads=budget // 200)
    prompt: Row = {"role": "system", "content": _filler("rule", PROMPT)}

    def look(fed: int, view: Sequence[Row]) -> None:
        del fed
        heads.append(json.dumps([row["content"] for row in view if row["role"] == "system"]))
        for layout, cache in caches.items():
            written = cache.send(laid_out(view, layout))
            prompts[layout] += any(str(prompt["content"]) in block.text for block in written)

    play(Ours, replace(session, rows=(prompt, *session.rows)), look=look)
    return [
        {
            "budget": budget,
            "summaries": LAYOUTS[layout],
            "requests": len(heads),
            "changes": sum(before != after for before, after in itertools.pairwise(heads)),
            "prompt written": prompts[layout],
            "read": f"{cache.read / (cache.read + cache.written):.1%}",
            "written": cache.written,
            "price": round(_WRITE * cache.written + _READ * cache.read),
        }
        for layout, cache in caches.items()
    ]


@functools.cache
def _size(text: str) -> int:
    return count(text)


def _filler(word: str, tokens: int) -> str:
    """A text of about so many tokens."""
    return "\n".join(f"{word} {number}: do as it says." for number in range(tokens // 9))


_TOOLS = _filler("tool", TOOLS)


def main() -> None:
    """All layouts with all budgets, as one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts.blocks", description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", type=int, nargs="+", default=[80_000, 180_000], help="of rows (%(default)s)")
    for budget in parser.parse_args().budgets:
        print(table(play_layouts(budget), COLUMNS))


if __name__ == "__main__":
    main()
