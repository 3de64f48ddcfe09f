"""What hosts, their loops and their hooks look for on a context manager beyond its rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from context_summarize.history_file import HistoryFile
from context_summarize.messages.rows import JsonRow
from context_summarize.recall import RecallService
from context_summarize.session.limits import Wanted
from context_summarize.session.parts import Parts
from context_summarize.summaries.call import own_call


class HostFace:
    """The part of the manager that hosts find by name; it passes on what they say."""

    _parts: Parts
    _file: HistoryFile | None
    _recall: RecallService

    async def _loaded(self) -> None:
        """Until the history's file has been read, if there is one."""
        if self._file is not None:
            await self._file.ready()

    async def request_retention(
        self,
        *,
        retain_contents: Iterable[str],
        provider: Any | None = None,
        token_budget: int | None = None,
        hard_fit: bool = False,
    ) -> list[JsonRow]:
        """The rows for the next request, with reminders that the host cannot do without.

        Hosts find it as the capability `context.request_retention`.

        Args:
            retain_contents: contents of user rows marked ephemeral and persisted. What a compaction has summarised
                stands whole behind the summaries.
            provider, token_budget: as in `get_messages_for_request`.
            hard_fit: the provider finds the rows that were served last too large; they become fewer.
        """
        retained = tuple(content for content in retain_contents if isinstance(content, str))
        return await self._served(
            Wanted(token_budget=token_budget, provider=provider, retained=retained, hard_fit=hard_fit)
        )

    async def _served(self, wanted: Wanted) -> list[JsonRow]:
        await self._loaded()
        rows = await self._parts.requests.rows(wanted)
        if self._file is not None:
            await self._file.sync()  # every row of the view, also one that came while summaries were made
        await self._parts.services.outbox.flush()
        self._recall.follow(self._parts.requests.chat.history)
        return rows

    async def undo(self) -> int:
        """Take the last compaction back without a call; the tokens that the request grows by.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit; nothing has changed.
        """
        await self._loaded()
        return await self._parts.requests.undo()

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keep messages verbatim from the next compaction on; the numbers of all pinned ones. See `Steering.pin`."""
        await self._loaded()
        return await self._parts.requests.pin(messages)

    async def unpin(self, messages: int | Iterable[int] | None = None) -> tuple[int, ...]:
        """Let go of these pins, or of all; the numbers of those left. See `Steering.unpin`."""
        await self._loaded()
        return await self._parts.requests.unpin(messages)

    @property
    def _system_prompt_factory(self) -> Callable[[], Awaitable[str]] | None:
        """Who is asked for the system prompt. Hooks read it under this name, wrap it, and set it again."""
        return self._parts.host.system.factory

    @_system_prompt_factory.setter
    def _system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        self._parts.host.system.factory = factory

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        """Ask `factory` for the system prompt, once per view; stored system rows are hidden then, hook rows aside.

        Reminder blocks in the prompt that change from one request to the next end the request instead.
        """
        self._parts.host.system.factory = factory

    async def observe_response(self, event: str, data: dict[str, Any]) -> None:
        """Hear an `llm:response`: the provider's own figures correct our measuring."""
        del event
        if own_call.get() or not isinstance(data, dict) or data.get("status", "ok") != "ok":
            return
        if isinstance(data.get("provider"), str):
            self._parts.summarizer.answered_elsewhere(data["provider"])
        usage = data.get("usage")
        if isinstance(usage, dict):
            self._parts.host.meter.observe(usage)

    def claim_foreground_usage(self) -> Callable[..., bool]:
        """For loops that know which response was for the view: see `Meter.claim`."""
        return self._parts.host.meter.claim()

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._parts.requests.is_compacting

    async def stop_waiting(self) -> None:
        """The host has cancelled: a request that waits for summaries is answered now, the work goes on."""
        self._parts.tasks.stop_waiting()

    def check_providers(self) -> None:
        """Say in the log when `summary_provider` names nothing mounted."""
        self._parts.providers.check()
