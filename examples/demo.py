"""Replays the recorded desk without a model, then asks what was said early: a plain cut, the request, and recall."""

import asyncio
import json
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from context_summarize import Config, SummarizingContextManager
from context_summarize.cli.common import progressing
from context_summarize.exam.views import newest
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.recall import RecallQuery
from context_summarize.replay import ReplayResult, open_recording, render_page, replay, row_text
from context_summarize.testing import measure
from context_summarize.tokens.counter import TokenCounter

HERE = Path(__file__).parent
WINDOW, WIDTH = 40_000, 76


def line_with(facts: list[str], texts: list[str]) -> str | None:
    """The line that holds all facts, which are marked, from shortly before the first one; None if no line does."""
    lines = (line for text in texts for line in text.splitlines())
    found = next((line for line in lines if all(fact in line for fact in facts)), None)
    if found is None:
        return None
    start = max(0, found.index(facts[0]) - WIDTH)
    part = f"… {found[start:].partition(' ')[2]}" if start else found
    for fact in facts:
        part = part.replace(fact, f"»{fact}«")
    return textwrap.shorten(part, 3 * WIDTH, placeholder=" …")


def told(what: str, line: str | None, how: str = "holds it") -> None:
    """Prints whether a view holds the facts, and the line that does."""
    print(f"  {what:14}{how + ':' if line else 'does not hold it'}")
    print("".join(f"      {part}\n" for part in textwrap.wrap(line or "", WIDTH)), end="")


async def play(rows: list[JsonRow], cache: str) -> tuple[ReplayResult, list[dict[str, Any]]]:
    """The replay, and each question with what the three ways to answer it hold."""
    provider = OfflineProvider(TokenCounter().count, context_window=WINDOW, max_output_tokens=4_000)
    config = Config(cache=cache, recall_tool=True)
    with progressing() as progress:
        result = await replay(rows, provider, config=config, progress=progress("Replaying", len(rows)))
    context = SummarizingContextManager(config=config)
    await context.set_messages(rows)  # a session that is resumed: it takes the last compaction up
    request = await context.get_messages_for_request(provider=provider)
    room = sum(map(measure, request)) - measure(rows[0])
    cut = [rows[0], *newest(rows[1:], room, TokenCounter().count)]  # the system prompt, and what there is room for
    questions = json.loads((HERE / "airline-desk.questions.json").read_text("utf-8"))
    for question in questions:
        question["cut"], question["request"] = (
            line_with(question["facts"], [*map(row_text, some)]) for some in (cut, request)
        )
        answer = await context.recall(RecallQuery(words=question["text"]))
        question["recall"] = line_with(question["facts"], [answer.text])
    await context.close()
    return result, questions


def main() -> int:
    """Plays, and prints one screen; 1 if a check of the replay fails."""
    page = Path("demo.html")
    rows = open_recording(str(HERE / "airline-desk.jsonl")).rows
    with tempfile.TemporaryDirectory() as folder:
        result, questions = asyncio.run(play(rows, str(Path(folder) / "summaries.db")))
    page.write_text(render_page(result, "airline-desk.jsonl"), "utf-8")
    print(f"\nA desk serves fifty customers: {len(rows):,} messages, {result.history_tokens:,} tokens.")
    print(f"The model's window has {WINDOW:,}. Code, without a model, wrote the summaries.")
    for question in questions:
        print(f"\n{textwrap.fill(question['text'], WIDTH)}")
        told("a plain cut", question["cut"])
        told("this request", question["request"])
        told("recall", question["recall"], f"reads message {question['message']} back")
    whole = sum(request.history_tokens for request in result.requests)
    sent = sum(request.tokens for request in result.requests)
    prices = result.prices.name if result.prices else "no prices"
    print(f"\n{len(result.requests):,} requests{'tokens':>22}{'dollars':>10}  ({prices})")
    print(f"  whole history {whole:>18,}{result.dollars_whole_history:>10.2f}  more than the window, in the end")
    print(f"  this module   {sent:>18,}{result.dollars:>10.2f}  with its {result.totals.calls} summaries")
    failed = result.problem
    print(f"\n{failed or 'Every promise was checked before every request, and kept.'}")
    print(f"The report is in {page}; a browser opens it.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
