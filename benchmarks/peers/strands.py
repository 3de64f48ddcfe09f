"""strands' `SummarizingConversationManager` as a contestant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from importlib import import_module
from typing import Any
from unittest.mock import patch

from .base import DoesNotFit, Peer, Row, Terms, calls_of, result, spoken, text_of


class Strands(Peer):
    """`SummarizingConversationManager` with proactive compression, called as the agent's loop calls it.

    Before a request the agent fires `BeforeModelCallEvent`. If the model refuses the request as too long, the agent
    calls `reduce_context` and tries again. Its loop has no bound: with a summary as long as its input it can end in
    `RecursionError`. Here the refusal reaches the host after `TRIES`, so that a run ends.

    `reduce_context` is synchronous and runs its model in a thread with an event loop of its own. Here the model stays
    in this thread, whose loop keeps the time.
    """

    TRIES = 10

    packages = ("strands-agents",)

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        managers = "strands.agent.conversation_manager"
        self._module = import_module(f"{managers}.summarizing_conversation_manager")
        self._event = import_module("strands.hooks").BeforeModelCallEvent
        self.too_long = import_module("strands.types.exceptions").ContextWindowOverflowException
        self._names: dict[str, str] = {}
        """The tool of each call, which a result of strands does not name."""
        self._manager = import_module(managers).SummarizingConversationManager(
            preserve_recent_messages=terms.keep,
            proactive_compression={"compression_threshold": terms.trigger},
            **self.options,
        )
        self._agent = import_module("strands").Agent(
            model=self._model(),
            conversation_manager=self._manager,
            system_prompt=terms.system or None,
            callback_handler=None,
        )

    async def add(self, row: Row) -> None:
        self._append(self._agent.messages, row)

    async def view(self) -> list[Row]:
        with patch.object(self._module, "run_async", _run):
            for _ in range(self.TRIES):
                event = self._event(agent=self._agent, projected_input_tokens=self._terms.size(self._shown()))
                self._agent.hooks.invoke_callbacks(event)
                rows = self._shown()
                if self._terms.size(rows) <= self._terms.budget:
                    return rows
                self._manager.reduce_context(self._agent, e=self._refused())
        raise self._refused()

    def _refused(self) -> Exception:
        return self.too_long("the request is longer than the context window")

    def _shown(self) -> list[Row]:
        return [*self._terms.system_rows, *self._rows(self._agent.messages)]

    def _there(self, messages: list[Any], row: Row) -> None:
        """Appends a row; results of parallel calls share one user message."""
        if row["role"] != "tool":
            text = text_of(row)
            content: list[Row] = [{"text": text}] if text or not calls_of(row) else []
            for call in calls_of(row):
                content.append({"toolUse": {"toolUseId": call["id"], "name": call["tool"], "input": call["arguments"]}})
            messages.append({"role": row["role"], "content": content})
            return
        self._names[row["tool_call_id"]] = row["name"]
        told = {"toolUseId": row["tool_call_id"], "status": "success", "content": [{"text": row["content"]}]}
        if messages and "toolResult" in messages[-1]["content"][-1]:
            messages[-1]["content"].append({"toolResult": told})
        else:
            messages.append({"role": "user", "content": [{"toolResult": told}]})

    def _back(self, message: Any) -> Iterator[Row]:
        told = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        for one in told:
            name = self._names[one["toolUseId"]]
            yield result(one["toolUseId"], name, "".join(part["text"] for part in one["content"]))
        if not told:
            text = "\n".join(block["text"] for block in message["content"] if "text" in block)
            uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
            yield spoken(message["role"], text, [(use["toolUseId"], use["name"], use["input"]) for use in uses])

    def _text(self, message: Any) -> str:
        said = []
        for row in self._back(message):
            said += [text_of(row), *(json.dumps(call["arguments"]) for call in calls_of(row))]
        return "\n".join(said)

    def _model(self) -> Any:
        base: Any = import_module("strands.models").Model
        contestant = self

        class Model(base):  # type: ignore[misc]
            def get_config(self) -> Any:
                return {"context_window_limit": contestant._terms.budget}

            def update_config(self, **config: Any) -> None:
                pass

            def structured_output(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            async def stream(
                self, messages: list[Any], tool_specs: Any = None, system_prompt: str | None = None, **_: Any
            ) -> AsyncIterator[Any]:
                shown = "\n\n".join(map(contestant._text, messages))
                try:
                    text = contestant._terms.summariser.ask_blocking(shown, system_prompt or "")
                except DoesNotFit as error:
                    raise contestant.too_long(str(error)) from error
                yield {"messageStart": {"role": "assistant"}}
                if text:
                    yield {"contentBlockDelta": {"delta": {"text": text}}}
                    yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "end_turn"}}

        return Model()


def _run(function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Returns the result of a coroutine that never has to wait."""
    try:
        function().send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waits for something else than the model")
