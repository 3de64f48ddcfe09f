"""Who plays with the real model: this module with the provider itself, and peers whose summariser asks the same one."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from amplifier_core.llm_errors import ContextLengthError
from amplifier_core.message_models import ChatRequest, Message

from benchmarks.local_model.calls import Noted, answer_of
from benchmarks.peers import Contestant, DoesNotFit, LoopClock, Row, Terms
from context_summarize import SummarizingContextManager
from context_summarize.stores.memory import MemoryStore

MAX_OUTPUT = 1_024
"""Tokens of the longest answer."""
CONFIG: Mapping[str, Any] = {
    "prompts": "small",
    "segment_tokens": 2_048,
    "max_concurrency": 1,
    "request_timeout": 240,
    "wait_seconds": 240,
}
"""On two idle cores the engine reads some 250 and writes some 100 tokens a second, on busy ones a tenth of that: few
summaries, one at a time, so that the session keeps the engine's other slot and its prompt cache."""
PEERS: Mapping[str, str] = {"langchain": "LangChainWhole", "pydantic-ai": "PydanticAIWhole"}
"""The two peers that keep most facts in `make bench-field`, by their short names."""
OURS = "ours"
_SUMMARIZER = "context_summarize.summaries.summarizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTerms(Terms):
    """Terms whose answers come from a real model."""

    provider: Noted = field()
    """Who answers requests for summaries."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """This module's settings beside `CONFIG`."""

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """The model's answer to a peer.

        Raises:
            DoesNotFit: the input does not fit the model's window.
        """
        system = [Message(role="system", content=instructions)] if instructions else []
        room = min(max_output or MAX_OUTPUT, MAX_OUTPUT)
        request = ChatRequest(messages=[*system, Message(role="user", content=shown)], max_output_tokens=room)
        try:
            return answer_of(await self.provider.complete(request))
        except ContextLengthError as error:
            raise DoesNotFit(str(error)) from error


def terms_of(
    provider: Noted, count: Callable[[str], int], budget: int, mean_row: float, config: Mapping[str, Any] | None = None
) -> ModelTerms:
    """What every contestant gets alike."""

    async def answer(shown: str, max_output: int | None) -> str:
        raise NotImplementedError("peers ask by `ask`")

    return ModelTerms(
        answer=answer,
        count=count,
        budget=budget,
        mean_row=mean_row,
        clock=LoopClock(),
        provider=provider,
        config=config or {},
    )


class Watched:
    """A host that counts this module's events, and a log handler that counts the answers that validation refuses."""

    def __init__(self) -> None:
        self.summaries = 0
        self.failures: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.hooks = self
        self._handler = _Refusals(self.refused)
        self._log = logging.getLogger(_SUMMARIZER)
        self._level = self._log.level

    def __enter__(self) -> Watched:
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self._handler)
        self._log.setLevel(self._level)

    def get(self, mount_point: str) -> dict[str, Any]:
        """Nothing is mounted: the provider comes with each request."""
        del mount_point
        return {}

    async def emit(self, event: str, data: Mapping[str, Any]) -> None:
        """Count an event."""
        if event == "context-summarize:summary":
            self.summaries += 1
        elif event == "context-summarize:failure":
            self.failures[str(data["kind"])] += 1


class _Refusals(logging.Handler):
    def __init__(self, counted: Counter[str]) -> None:
        super().__init__(logging.INFO)
        self._counted = counted

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("summary refused") and isinstance(record.args, tuple):
            self._counted[str(record.args[1])] += 1


class OursWithModel:
    """This module with the real provider."""

    title = "context-summarize"
    settings = ""
    packages: ClassVar[tuple[str, ...]] = ("amplifier-module-context-summarize", "amplifier-core")
    frame = ""

    def __init__(self, terms: ModelTerms) -> None:
        self._terms = terms
        self.settings = ", ".join(f"{key}: {value}" for key, value in {**CONFIG, **terms.config}.items())
        self._watched = Watched().__enter__()
        same = {"compact_threshold": terms.trigger, "keep_recent": terms.keep}
        self._manager = SummarizingContextManager(
            self._watched, config={**same, **CONFIG, **terms.config}, store=MemoryStore()
        )

    async def add(self, row: Row) -> None:
        """Append a row."""
        await self._manager.add_message(row)

    async def view(self) -> list[Row]:
        """The next request."""
        return await self._manager.get_messages_for_request(self._terms.budget, self._terms.provider)

    async def told(self) -> dict[str, Any]:
        """What this module says of the session."""
        statistics = await self._manager.statistics()
        return {
            "summaries": self._watched.summaries,
            "refused": dict(self._watched.refused),
            "failures": dict(self._watched.failures),
            "in_view": statistics.summaries,
            "fallbacks": statistics.digests,
        }

    async def close(self) -> None:
        """Let go of everything."""
        try:
            await self._manager.close()
        finally:
            self._watched.__exit__()


def make(name: str, terms: ModelTerms) -> OursWithModel | Contestant:
    """A contestant by its short name.

    Raises:
        ImportError: the peer is not installed.
        KeyError: there is none of that name.
    """
    if name == OURS:
        return OursWithModel(terms)
    made: Contestant = getattr(import_module("benchmarks.peers"), PEERS[name])(terms)
    return made


async def closed(contestant: OursWithModel | Contestant, seconds: float = 30.0) -> None:
    """Close a contestant; one that hangs is left alone."""
    try:
        await asyncio.wait_for(contestant.close(), seconds)
    except TimeoutError:
        logging.getLogger(__name__).warning("%s did not close in %.0f s", contestant.title, seconds)
