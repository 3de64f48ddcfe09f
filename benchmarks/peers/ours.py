"""This module as a contestant: with its defaults, or other settings."""

from __future__ import annotations

from amplifier_core.llm_errors import ContextLengthError
from amplifier_core.message_models import ChatRequest

from benchmarks.summarisers import MAX_OUTPUT
from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider

from .base import Contestant, DoesNotFit, Row, Terms, text_of


class Ours(Contestant):
    """This module, without a host. Its settings say when it compacts, not the trigger of the terms."""

    packages = ("amplifier-module-context-summarize", "amplifier-core")

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._provider = ScriptedProvider(
            then=self._answer, context_window=terms.budget + MAX_OUTPUT, max_output_tokens=MAX_OUTPUT
        )
        same = {} if "keep_recent" in self.options else {"keep_recent": terms.keep}
        self.manager = SummarizingContextManager(
            config={"cache": "memory", **same, **self.options}, clock=terms.clock.now, sleep=terms.clock.sleep
        )

    async def add(self, row: Row) -> None:
        await self.manager.add_message(row)

    async def view(self) -> list[Row]:
        return await self.manager.get_messages_for_request(self._terms.budget, self._provider)

    async def close(self) -> None:
        await self.manager.close()

    async def _answer(self, request: ChatRequest) -> str:
        # The provider keeps every request, which a measurement of memory would count as ours.
        self._provider.requests.clear()
        texts = [(message.role, text_of(message.model_dump())) for message in request.messages]
        shown = "\n\n".join(text for role, text in texts if role != "system")
        instructions = "\n\n".join(text for role, text in texts if role == "system")
        try:
            return await self._terms.summariser.ask(shown, instructions, request.max_output_tokens)
        except DoesNotFit as error:
            raise ContextLengthError(str(error)) from error
