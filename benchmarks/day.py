"""`python -m benchmarks.day`: what does a day cost at list prices? The recorded desk, four times in one session."""

from __future__ import annotations

import asyncio
from itertools import takewhile

from benchmarks.prices import MODELS
from benchmarks.run import Request
from benchmarks.sessions import recorded
from benchmarks.tokens import Row, count, measure
from context_summarize import SummarizingContextManager
from context_summarize.providers.offline import OfflineProvider

COPIES, WINDOW = 4, 1_000_000


def whole(rows: list[Row]) -> list[Request]:
    """Returns requests that send the whole history each time."""
    found, total, sent = [], 0, 0
    for row in rows:
        if row["role"] == "assistant":
            found.append(Request(fed=0, tokens=total, cached=sent))
            sent = total
        total += measure(row, count)
    return found


async def compacted(rows: list[Row]) -> tuple[list[Request], SummarizingContextManager]:
    """Returns the requests of this module with its defaults; code without a model writes the summaries."""
    context = SummarizingContextManager()
    provider = OfflineProvider(count, context_window=WINDOW, max_output_tokens=4_000)
    found: list[Request] = []
    before: list[Row] = []
    sizes: list[int] = []
    for row in rows:
        if row["role"] == "assistant":
            view = await context.get_messages_for_request(provider=provider)
            await context.settle()
            same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(before, view, strict=False))])
            sizes = sizes[:same] + [measure(shown, count) for shown in view[same:]]
            found.append(Request(fed=0, tokens=sum(sizes), cached=sum(sizes[:same])))
            before = view
        await context.add_message(row)
    return found, context


async def main() -> None:
    rows = recorded(COPIES)
    ours, context = await compacted(rows)
    used = await context.statistics()
    await context.close()
    print(f"{len(ours):,} requests, {sum(measure(row, count) for row in rows):,} tokens of messages,", end=" ")
    print(f"{used.compactions} compactions, {used.calls} calls with {used.input_tokens:,} tokens in", end=" ")
    print(f"and {used.output_tokens:,} out; the largest request {max(one.tokens for one in ours):,}")
    for prices in MODELS.values():
        calls = prices.of_calls(used.input_tokens, used.output_tokens)
        sent, sent_whole = (
            prices.of_requests((one.tokens, one.cached) for one in some) for some in (ours, whole(rows))
        )
        print(f"{prices.name}: requests {sent:.2f}, summaries {calls:.2f}, together {sent + calls:.2f};", end=" ")
        print(f"the whole history each time {sent_whole:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
