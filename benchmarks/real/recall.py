"""Measures how much of a question's evidence one answer of the tool `recall` holds."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from amplifier_module_tool_context_recall import mount
from benchmarks.sessions import Question, Session
from benchmarks.tokens import Row, text_of
from benchmarks.words import places
from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider

_WORDS, _CHARACTERS = 60, 390
"""Of a question; a query has room for no more."""
_PIECE = 100
"""Characters of a source that an answer must hold in one piece, or all of it."""


def recalled(session: Session) -> dict[str, int]:
    """Counts questions with sources, answers that quote a source, and answers that hold all gold values."""
    return asyncio.run(_recalled(session))


async def _recalled(session: Session) -> dict[str, int]:
    manager, tools = SummarizingContextManager(config={"cache": "memory"}), dict[str, Any]()

    async def mounted(point: str, tool: Any, name: str = "") -> None:
        tools[name or point] = tool

    await mount(SimpleNamespace(get=lambda point: manager, mount=mounted))
    await manager.set_messages([dict(row) for row in session.rows])
    await manager.get_messages_for_request(provider=ScriptedProvider())  # answers keep to the limits of a request
    found = {"recalls": 0, "recall_any": 0, "recall_gold": 0, "recall_gold_asked": 0}
    for question in session.questions:
        if question.sources:
            answer = await tools["recall"].execute({"words": _query(question)})
            text = str(answer.output)
            found["recalls"] += 1
            found["recall_any"] += any(_quotes(text, session.rows[at]) for at in question.sources)
            found["recall_gold_asked"] += bool(question.golds)
            found["recall_gold"] += bool(question.golds) and all(places(text, gold) for gold in question.golds)
    await manager.close()
    return found


def _query(question: Question) -> str:
    """Returns the question, without the end that a query has no room for."""
    words = question.text.split()[:_WORDS]
    while len(" ".join(words)) > _CHARACTERS:
        words.pop()
    return " ".join(words)


def _quotes(answer: str, row: Row) -> bool:
    flat, whole = " ".join(answer.split()), " ".join(text_of(row).split())
    starts = range(0, max(1, len(whole) - _PIECE + 1), 10)
    return bool(whole) and any(whole[at : at + _PIECE] in flat for at in starts)
