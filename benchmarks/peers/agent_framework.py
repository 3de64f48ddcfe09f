"""agent-framework's `SummarizationStrategy` as a contestant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

from .base import DoesNotFit, Row, Terms, calls_of, result, spoken, text_of


class AgentFramework:
    """`SummarizationStrategy` under `apply_compaction`.

    It counts rows, not tokens: its threshold is the number of rows that hold the trigger's tokens on average.
    By its defaults the summariser reads at most 8,000 tokens.
    """

    packages: tuple[str, ...] = ("agent-framework-core",)
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, terms: Terms) -> None:
        self._af: Any = import_module("agent_framework")
        self._overflow = import_module("agent_framework.exceptions").ChatClientInvalidRequestException
        self._messages: list[Any] = []
        self._terms = terms
        self._tokenizer = SimpleNamespace(count_tokens=terms.count)
        self._strategy = self._new()

    def _new(self) -> Any:
        terms = self._terms
        room = terms.trigger_tokens - terms.size([spoken("system", terms.system)])
        return self._summarization(max(0, int(room / terms.mean_row) - terms.keep))

    def _summarization(self, threshold: int) -> Any:
        return self._af.SummarizationStrategy(
            client=self._client(),
            target_count=self._terms.keep,
            threshold=threshold,
            tokenizer=self._tokenizer,
            **self.options,
        )

    async def add(self, row: Row) -> None:
        self._messages.append(self._there(row))

    async def view(self) -> list[Row]:
        shown = await self._af.apply_compaction(self._messages, strategy=self._strategy, tokenizer=self._tokenizer)
        return [self._back(message) for message in shown]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        return [self._back(self._there(row)) for row in rows]

    async def close(self) -> None:
        pass

    def _there(self, row: Row) -> Any:
        content, text = self._af.Content, text_of(row)
        extra = {"metadata": row["metadata"]} if "metadata" in row else {}
        if row["role"] == "tool":
            extra["tool_name"] = row["name"]
            parts = [content.from_function_result(row["tool_call_id"], result=text)]
        else:
            parts = [content.from_text(text)] if text or not calls_of(row) else []
            for call in calls_of(row):
                parts.append(content.from_function_call(call["id"], call["tool"], arguments=call["arguments"]))
        return self._af.Message(role=row["role"], contents=parts, additional_properties=extra)

    def _back(self, message: Any) -> Row:
        extra = message.additional_properties
        meta = extra.get("metadata")
        told = [part for part in message.contents if part.type == "function_result"]
        if told:
            return result(told[0].call_id, extra["tool_name"], told[0].result, meta)
        made = [part for part in message.contents if part.type == "function_call"]
        calls = [(part.call_id, part.name, part.arguments) for part in made]
        text = "\n".join(part.text for part in message.contents if part.type == "text")
        return spoken(str(message.role), text, calls, meta)

    def _client(self) -> Any:
        af, terms, overflow = self._af, self._terms, self._overflow

        class Client:
            async def get_response(self, messages: list[Any], **kwargs: Any) -> Any:
                shown = "\n\n".join(message.text for message in messages if message.role != "system")
                instructions = "\n\n".join(message.text for message in messages if message.role == "system")
                limit = (kwargs.get("options") or {}).get("max_tokens")
                try:
                    text = await terms.ask(shown, instructions, limit)
                except DoesNotFit as error:
                    raise overflow(str(error)) from error
                return af.ChatResponse(messages=[af.Message(role="assistant", contents=[text])])

        return Client()


class AgentFrameworkBudget(AgentFramework):
    """`SummarizationStrategy` inside `TokenBudgetComposedStrategy`: the framework's way to a trigger in tokens."""

    def _new(self) -> Any:
        return self._af.TokenBudgetComposedStrategy(
            token_budget=self._terms.trigger_tokens,
            tokenizer=self._tokenizer,
            strategies=[self._summarization(threshold=0)],
        )
