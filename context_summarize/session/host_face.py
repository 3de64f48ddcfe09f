"""What a session is put together from, and what hosts, their loops and their hooks look for beside its rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from context_summarize.config import Config
from context_summarize.core.frames import show_node
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.view_state import ShownNode
from context_summarize.events import Outbox
from context_summarize.history_file import HistoryFile, session_path
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.recall import RecallService
from context_summarize.redaction import build_redactor
from context_summarize.session.conversation import Conversation, new_conversation
from context_summarize.session.host import Providers
from context_summarize.session.limits import Host, LimitsReader, RequestOptions
from context_summarize.session.steering import Steering
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.stores import LayeredStore, MemoryStore, SummaryStore, open_store
from context_summarize.summaries.call import Summarizer, own_call
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services, Statistics
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter

if TYPE_CHECKING:
    from amplifier_core.models import HookResult


class HostFace:
    """The part of the manager that hosts find by name; it passes on what they say.

    To put it together opens nothing and asks nobody.
    """

    def __init__(
        self,
        coordinator: Any | None,
        config: Config,
        store: SummaryStore | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        counter, meter, providers = TokenCounter(), Meter(), Providers(coordinator, config)
        prompts, count, own_id = load_prompts(config.prompts), counter.count, getattr(coordinator, "session_id", None)

        def show(builder: NodeBuilder, node: Node, summary: Summary) -> ShownNode:
            return show_node(builder.history, node, summary, prompts.frame.fill, count)

        self._config = config
        self._providers = providers
        self._services = Services(
            config=config,
            prompts=prompts,
            store=_store(config, store),
            outbox=Outbox(getattr(coordinator, "hooks", None), config.redact),
            totals=Statistics(),
            count=count,
            clock=clock,
            sleep=sleep,
        )
        system = SystemPrompt(count, config.redact, providers.is_cancelled)
        self._host = Host(
            limits=LimitsReader(config, providers, system, meter),
            system=system,
            meter=meter,
            counter=counter,
            is_cancelled=providers.is_cancelled,
            session_id=own_id if isinstance(own_id, str) else None,
        )
        self._summarizer = Summarizer(self._services)
        self._tasks = SummaryRegistry(self._services, self._summarizer, show, providers.is_cancelled)
        self._requests = Steering(self._services, self._tasks, self._host, providers.operations)
        self._redact = build_redactor(config.redact)
        self._recall = RecallService(count)
        path = session_path(str(config.persistence["path"]), coordinator) if config.persistence else None
        self._file = HistoryFile(path, self._take) if path else None
        self._requests.begin(self._new_conversation())

    @property
    def conversation(self) -> Conversation:
        """History, segments and view as they are now: a frozen value, to be read and not to be changed."""
        return self._requests.chat

    def _new_conversation(self) -> Conversation:
        services, recall = self._services, self._providers.offers_recall()
        return new_conversation(services.config, services.prompts, self._redact, services.count, recall=recall)

    def _take(self, rows: Iterable[JsonRow]) -> None:
        """Append normalised rows to the history."""
        for raw in rows:
            self.conversation.history.add(analyse(raw))

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
            RequestOptions(token_budget=token_budget, provider=provider, retained=retained, hard_fit=hard_fit)
        )

    async def _served(self, wanted: RequestOptions) -> list[JsonRow]:
        await self._loaded()
        rows = await self._requests.rows(wanted)
        if self._file is not None:
            await self._file.sync()  # every row of the view, also one that came while summaries were made
        await self._services.outbox.flush()
        self._recall.follow(self.conversation.history)
        return rows

    async def undo(self) -> int:
        """Take the last compaction back without a call; the tokens that the request grows by.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit; nothing has changed.
        """
        await self._loaded()
        return await self._requests.undo()

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keep messages verbatim from the next compaction on; the numbers of all pinned ones. See `Steering.pin`."""
        await self._loaded()
        return await self._requests.pin(messages)

    async def unpin(self, messages: int | Iterable[int] | None = None) -> tuple[int, ...]:
        """Let go of these pins, or of all; the numbers of those left. See `Steering.unpin`."""
        await self._loaded()
        return await self._requests.unpin(messages)

    @property
    def _system_prompt_factory(self) -> Callable[[], Awaitable[str]] | None:
        """Who is asked for the system prompt. Hooks read it under this name, wrap it, and set it again."""
        return self._host.system.factory

    @_system_prompt_factory.setter
    def _system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        self._host.system.set_factory(factory)

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        """Ask `factory` for the system prompt, once per view; stored system rows are hidden then, hook rows aside.

        Reminder blocks in the prompt that change from one request to the next end the request instead.
        """
        self._host.system.set_factory(factory)

    async def observe_response(self, event: str, data: dict[str, Any]) -> HookResult:
        """Hear an `llm:response`: figures correct our measuring, and a refusal for length makes requests smaller."""
        from amplifier_core.models import HookResult

        if event == "llm:response" and isinstance(data, dict) and not own_call.get():
            self._host.limits.refusals.heard(data)
            if data.get("status", "ok") == "ok":
                if isinstance(data.get("provider"), str):
                    self._summarizer.answered_elsewhere(data["provider"])
                if isinstance(usage := data.get("usage"), dict):
                    self._host.meter.observe(usage)
        return HookResult(action="continue")

    def claim_foreground_usage(self) -> Callable[..., bool]:
        """For loops that know which response was for the view: see `Meter.claim`."""
        return self._host.meter.claim()

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._requests.is_compacting

    async def stop_waiting(self) -> None:
        """The host has cancelled: a request that waits for summaries is answered now, the work goes on."""
        self._tasks.stop_waiting()

    async def prepare(self) -> None:
        """All modules are mounted: say where `summary_provider` is none of them, and look for the tool `recall`."""
        self._providers.check()
        if not len(self.conversation.history):
            self._requests.begin(self._new_conversation())


def _store(config: Config, given: SummaryStore | None) -> SummaryStore:
    """The store of a session. Memory stands before one of the host's own: one that hangs holds nobody up."""
    if given is None:
        return open_store(config.cache) if config.cache else MemoryStore()
    if isinstance(given, MemoryStore | LayeredStore):
        return given
    return LayeredStore(MemoryStore(), given, name=type(given).__name__)
