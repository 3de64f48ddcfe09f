"""How many user directives are found, kept and taken back: `python -m benchmarks.directives`.

Sentences: made ones in two halves, one to tune on and one to test on, and the 15 constraints of COMPINT (MIT; see
`compint.json`) in its four forms. False ones: user turns of the recording in `examples/` and of chats in a folder
(`--chats`, files as `benchmarks.real.fetch` writes them). Kept: directives said early in a real conversation that goes
on for ten compactions and more, with a restart after each third, and a summariser that keeps nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.facts.directive_sentences import find_directives
from context_summarize.facts.directives import merge_directives
from context_summarize.messages.text import content_text
from context_summarize.replay.session_files import read_session
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import ScriptedProvider, assistant, user
from context_summarize.transcript.rows import RenderedRow

HERE = Path(__file__).parent
RECORDING = HERE.parent / "examples" / "airline-desk.jsonl"
WORDS = load_prompts("default").directive_words
HALVES = ("tuning", "test")
EMPTY = ScriptedProvider(then="Goal: something was asked for. State: it was done.")


def found(text: str) -> tuple[str, ...]:
    """The directives in what one user message says."""
    return find_directives([[RenderedRow(1, "user", None, text)]], WORDS)


def sentences() -> dict[str, Any]:
    """The made sentences, a list a kind."""
    made: dict[str, Any] = json.loads((HERE / "directives.json").read_text("utf-8"))
    return made


def constraints() -> list[str]:
    """COMPINT's constraints, each in each of its forms."""
    given = json.loads((HERE / "compint.json").read_text("utf-8"))
    return [_opened(opening, one) for opening in given["openings"] for one in given["constraints"]]


def _opened(opening: str, constraint: str) -> str:
    return f"{opening}{constraint[0].lower()}{constraint[1:]}" if opening else constraint


def turns(chats: Path | None) -> list[str]:
    """User turns without a directive: of the recording and of chats; a chat's own instructions are left out."""
    said = [content_text(row["content"]) for row in read_session(RECORDING) if row["role"] == "user"]
    for path in sorted(chats.glob("*.json")) if chats else ():
        chat = json.loads(path.read_text("utf-8"))
        texts = (row["content"] for row in chat["messages"] if row["role"] == "user")
        said += [text for text in texts if not (text.startswith("Always ") and " when I ask about " in text)]
    return said


def false_ones(said: Iterable[str]) -> list[tuple[str, ...]]:
    """What is taken for a directive in turns that hold none."""
    return [taken for text in said if (taken := found(text))]


def still_in_force(pairs: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """The pairs (directive, what takes it back) whose directive is not found, or stands after both were merged."""
    return [
        (first, second)
        for first, second in pairs
        if not found(first) or set(found(first)) & set(merge_directives([found(first), found(second)]))
    ]


def _filler() -> Iterator[dict[str, Any]]:
    rows = [row for row in read_session(RECORDING) if row["role"] in ("user", "assistant")]
    texts = [text for row in rows if (text := content_text(row["content"])) and not found(text)]
    for at, text in enumerate(cycle(texts)):
        yield user(f"({at}) {text}") if at % 2 else assistant(f"({at}) {text}")


async def kept(said: Sequence[str], budget: int, compactions: int = 12) -> tuple[int, int, int]:
    """(directives in the last view, compactions, highest level of a summary) for directives that are said early."""
    store = MemoryStore()
    filler = _filler()
    manager = SummarizingContextManager(store=store)
    await manager.add_message(user("Hello, let us begin."))
    for one in said:
        await manager.add_message(assistant("Yes?"))
        await manager.add_message(user(one))
    made = 0
    before: list[Any] = []
    while made < compactions:
        for row in islice(filler, 40):
            await manager.add_message(row)
        view = await manager.get_messages_for_request(budget, provider=EMPTY)
        now = [row["metadata"]["key"] for row in view if "key" in row.get("metadata", {})]
        made += now != before
        if now != before and made % 3 == 0:
            rows = await manager.get_messages()
            await manager.close()
            manager = SummarizingContextManager(store=store)
            await manager.set_messages(rows)
            view = await manager.get_messages_for_request(budget, provider=EMPTY)
            now = [row["metadata"]["key"] for row in view if "key" in row.get("metadata", {})]
        before = now
    shown = "\n".join(content_text(row["content"]) for row in view if row["role"] == "system")
    level = max(row["metadata"]["level"] for row in view if "level" in row.get("metadata", {}))
    await manager.close()
    return sum(all(part in shown for part in found(one) or ["\0"]) for one in said), made, level


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.directives", description=__doc__)
    parser.add_argument("--chats", type=Path, help="a folder of chats whose user turns are looked at for false ones")
    parser.add_argument("--missed", action="store_true", help="print what is missed and what is taken by mistake")
    options = parser.parse_args()
    made = sentences()
    said = turns(options.chats)
    print(f"{'':34}{HALVES[0]:>12}{HALVES[1]:>12}")
    for kind in ("direct", "paraphrased", "languages"):
        missed = [[one for one in made[kind][half::2] if not found(one)] for half in (0, 1)]
        _line(
            f"{kind} found",
            [(len(made[kind][half::2]) - len(missed[half]), len(made[kind][half::2])) for half in (0, 1)],
        )
        _tell(missed, options.missed)
    wrong = [still_in_force(made["withdrawn"][half::2]) for half in (0, 1)]
    _line(
        "taken back, not in force",
        [(len(made["withdrawn"][h::2]) - len(wrong[h]), len(made["withdrawn"][h::2])) for h in (0, 1)],
    )
    _tell(wrong, options.missed)
    taken = [false_ones(said[half::2]) for half in (0, 1)]
    _line("user turns taken by mistake", [(len(taken[half]), len(said[half::2])) for half in (0, 1)])
    _tell(taken, options.missed)
    forms = constraints()
    print(f"COMPINT's constraints found: {sum(bool(found(one)) for one in forms)} of {len(forms)}")
    for name, early in (
        ("COMPINT's 15", forms[:15]),
        ("30 direct", made["direct"][:30]),
        ("30 paraphrased", made["paraphrased"][:30]),
    ):
        for budget in (8_000, 40_000):
            here, times, level = asyncio.run(kept(early, budget))
            print(f"{name}, {budget:,} tokens: {here} of {len(early)} after {times} compactions, level {level}")


def _line(name: str, counts: Sequence[tuple[int, int]]) -> None:
    print(f"{name:34}" + "".join(f"{f'{part}/{whole}':>12}" for part, whole in counts))


def _tell(halves: Sequence[Sequence[object]], wanted: bool) -> None:
    for half in halves if wanted else ():
        for one in half:
            print(f"    {one}")


if __name__ == "__main__":
    main()
