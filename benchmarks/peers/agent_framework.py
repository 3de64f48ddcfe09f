"""agent-framework's `SummarizationStrategy` as a contestant."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from .base import Peer, Row, Terms, calls_of, result, spoken, text_of


class AgentFramework(Peer):
    """`SummarizationStrategy` under `apply_compaction`.

    It counts rows, not tokens: its threshold is the number of rows that hold the trigger's tokens on average.
    By its defaults the summariser reads at most 8,000 tokens.
    """

    packages = ("agent-framework-core",)
    system_apart = False

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._af = import_module("agent_framework")
        self.too_long = import_module("agent_framework.exceptions").ChatClientInvalidRequestException
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

    async def view(self) -> list[Row]:
        shown = await self._af.apply_compaction(self._messages, strategy=self._strategy, tokenizer=self._tokenizer)
        return self._rows(shown)

    def _there(self, messages: list[Any], row: Row) -> None:
        content, text, extra = self._af.Content, text_of(row), {}
        if row["role"] == "tool":
            extra["tool_name"] = row["name"]
            parts = [content.from_function_result(row["tool_call_id"], result=text)]
        else:
            parts = [content.from_text(text)] if text or not calls_of(row) else []
            for call in calls_of(row):
                parts.append(content.from_function_call(call["id"], call["tool"], arguments=call["arguments"]))
        messages.append(self._af.Message(role=row["role"], contents=parts, additional_properties=extra))

    def _back(self, message: Any) -> Sequence[Row]:
        told = [part for part in message.contents if part.type == "function_result"]
        if told:
            return [result(told[0].call_id, message.additional_properties["tool_name"], told[0].result)]
        made = [part for part in message.contents if part.type == "function_call"]
        calls = [(part.call_id, part.name, part.arguments) for part in made]
        text = "\n".join(part.text for part in message.contents if part.type == "text")
        return [spoken(str(message.role), text, calls)]

    def _client(self) -> Any:
        af, ask = self._af, self._ask

        class Client:
            async def get_response(self, messages: list[Any], **kwargs: Any) -> Any:
                shown = "\n\n".join(message.text for message in messages if message.role != "system")
                instructions = "\n\n".join(message.text for message in messages if message.role == "system")
                limit = (kwargs.get("options") or {}).get("max_tokens")
                said = await ask(shown, instructions, limit)
                return af.ChatResponse(messages=[af.Message(role="assistant", contents=[said])])

        return Client()


class AgentFrameworkBudget(AgentFramework):
    """`SummarizationStrategy` inside `TokenBudgetComposedStrategy`: the framework's way to a trigger in tokens."""

    def _new(self) -> Any:
        return self._af.TokenBudgetComposedStrategy(
            token_budget=self._terms.trigger_tokens,
            tokenizer=self._tokenizer,
            strategies=[self._summarization(threshold=0)],
        )
