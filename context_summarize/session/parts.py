"""Puts the parts of one session together. Nothing is opened and nothing is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from context_summarize.config import Config
from context_summarize.core.frames import show_node
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.view_state import ShownNode
from context_summarize.events import Outbox
from context_summarize.history_file import HistoryFile, session_path
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import Redact, build_redactor
from context_summarize.session.conversation import Conversation, new_conversation
from context_summarize.session.host import Providers, active_operations, is_cancelled
from context_summarize.session.limits import Host, LimitsReader
from context_summarize.session.steering import Steering
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.stores import MemoryStore, SummaryStore, open_store
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services, Totals
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one session."""

    services: Services
    host: Host
    providers: Providers
    summarizer: Summarizer
    tasks: SummaryRegistry
    requests: Steering
    redact: Redact | None
    history_path: str | None
    """File that the history is kept in; None = memory."""

    def new_conversation(self) -> Conversation:
        """A conversation without rows."""
        services = self.services
        recall = self.providers.offers_recall()
        return new_conversation(services.config, services.prompts, self.redact, services.count, recall=recall)

    def session_file(self, take: Callable[[Sequence[JsonRow]], None]) -> HistoryFile | None:
        """The history's file, if the settings name one; `take` appends rows to the history."""
        return HistoryFile(self.history_path, take) if self.history_path else None


def build_parts(
    coordinator: Any | None,
    config: Config,
    store: SummaryStore | None,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> Parts:
    """The parts of a session with these settings.

    Raises:
        TemplateError: the prompt set is incomplete.
    """
    counter = TokenCounter()
    services = Services(
        config=config,
        prompts=load_prompts(config.prompts),
        store=_store(config) if store is None else store,
        outbox=Outbox(getattr(coordinator, "hooks", None), config.redact),
        totals=Totals(),
        count=counter.count,
        clock=clock,
        sleep=sleep,
    )
    summarizer = Summarizer(services)
    providers = Providers(coordinator, config)
    host = _host(coordinator, config, counter, providers)
    tasks = SummaryRegistry(services, summarizer, _show_by(services), host.is_cancelled)
    requests = Steering(services, tasks, host, lambda: active_operations(coordinator))
    return Parts(
        services=services,
        host=host,
        providers=providers,
        summarizer=summarizer,
        tasks=tasks,
        requests=requests,
        redact=build_redactor(config.redact),
        history_path=session_path(str(config.persistence["path"]), coordinator) if config.persistence else None,
    )


def _store(config: Config) -> SummaryStore:
    return MemoryStore() if config.cache is None else open_store(config.cache)


def _host(coordinator: Any | None, config: Config, counter: TokenCounter, providers: Providers) -> Host:
    def cancelled() -> bool:
        return is_cancelled(coordinator)

    meter, system = Meter(), SystemPrompt(counter.count, config.redact, cancelled)
    return Host(
        limits=LimitsReader(config, providers, system, meter),
        system=system,
        meter=meter,
        counter=counter,
        is_cancelled=cancelled,
        session_id=session_id if isinstance(session_id := getattr(coordinator, "session_id", None), str) else None,
    )


def _show_by(services: Services) -> Callable[[NodeBuilder, Node, Summary], ShownNode]:
    """Makes the row of a summary with the frame of the settings."""
    frame, count = services.prompts.frame.fill, services.count
    return lambda builder, node, summary: show_node(builder.history, node, summary, frame, "system", count)
