"""`python -m benchmarks.day`: what a day costs at list prices: the recorded desk four times over, in one session."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import takewhile

from benchmarks.sessions import recorded
from benchmarks.tokens import Row, count, measure
from context_summarize import SummarizingContextManager
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay import row_text

COPIES, WINDOW = 4, 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars a million tokens, as listed in October 2026."""

    name: str
    input: float
    write: float
    read: float
    output: float
    long: int
    """Tokens of a request above which all its tokens cost `times` as much."""
    times: float


MODELS = (
    Prices("GPT-6.2 Sol", 2.0, 2.5, 0.1, 10.0, 272_000, 2.0),
    Prices("Claude Haiku 5.5", 0.1, 0.125, 0.01, 0.5, 100_000, 5.0),
)


def dollars(prices: Prices, requests: list[tuple[int, int]]) -> float:
    """The price of requests, each as (tokens that the previous one had sent, others)."""
    return sum(
        (prices.times if read + write > prices.long else 1.0) * (read * prices.read + write * prices.write) / 1e6
        for read, write in requests
    )


def whole(rows: list[Row]) -> list[tuple[int, int]]:
    """Requests that send the whole history each time."""
    found, total, sent = [], 0, 0
    for row in rows:
        if row["role"] == "assistant":
            found.append((sent, total - sent))
            sent = total
        total += measure(row, count)
    return found


async def compacted(rows: list[Row]) -> tuple[list[tuple[int, int]], SummarizingContextManager]:
    """Requests of this module, with its defaults; code without a model stands in for the summariser."""
    context = SummarizingContextManager()
    provider = OfflineProvider(count, context_window=WINDOW, max_output_tokens=4_000)
    found: list[tuple[int, int]] = []
    before: list[str] = []
    sizes: dict[str, int] = {}
    for row in rows:
        if row["role"] == "assistant":
            view = await context.get_messages_for_request(provider=provider)
            await context.settle()
            texts = [row_text(shown) for shown in view]
            sizes |= {text: measure(shown, count) for text, shown in zip(texts, view, strict=True) if text not in sizes}
            same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(before, texts, strict=False))])
            found.append((sum(sizes[text] for text in texts[:same]), sum(sizes[text] for text in texts[same:])))
            before = texts
        await context.add_message(row)
    return found, context


async def main() -> None:
    rows = recorded(COPIES)
    ours, context = await compacted(rows)
    used = await context.statistics()
    await context.close()
    print(f"{len(ours):,} requests, {sum(measure(row, count) for row in rows):,} tokens of messages,", end=" ")
    print(f"{used.compactions} compactions, {used.calls} calls with {used.input_tokens:,} tokens in", end=" ")
    print(f"and {used.output_tokens:,} out; the largest request {max(map(sum, ours)):,}")
    for prices in MODELS:
        calls = (used.input_tokens * prices.input + used.output_tokens * prices.output) / 1e6
        sent = dollars(prices, ours)
        print(f"{prices.name}: requests {sent:.2f}, summaries {calls:.2f}, together {sent + calls:.2f};", end=" ")
        print(f"the whole history each time {dollars(prices, whole(rows)):.2f}")


if __name__ == "__main__":
    asyncio.run(main())
