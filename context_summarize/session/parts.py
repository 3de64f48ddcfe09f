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
from context_summarize.session.host import Providers
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
    counter, meter, providers = TokenCounter(), Meter(), Providers(coordinator, config)
    prompts, count, session_id = load_prompts(config.prompts), counter.count, getattr(coordinator, "session_id", None)
    system = SystemPrompt(count, config.redact, providers.is_cancelled)
    services = Services(
        config=config,
        prompts=prompts,
        store=store or (open_store(config.cache) if config.cache else MemoryStore()),
        outbox=Outbox(getattr(coordinator, "hooks", None), config.redact),
        totals=Totals(),
        count=count,
        clock=clock,
        sleep=sleep,
    )
    host = Host(
        limits=LimitsReader(config, providers, system, meter),
        system=system,
        meter=meter,
        counter=counter,
        is_cancelled=providers.is_cancelled,
        session_id=session_id if isinstance(session_id, str) else None,
    )

    def show(builder: NodeBuilder, node: Node, summary: Summary) -> ShownNode:
        return show_node(builder.history, node, summary, prompts.frame.fill, count)

    summarizer = Summarizer(services)
    tasks = SummaryRegistry(services, summarizer, show, host.is_cancelled)
    return Parts(
        services=services,
        host=host,
        providers=providers,
        summarizer=summarizer,
        tasks=tasks,
        requests=Steering(services, tasks, host, providers.operations),
        redact=build_redactor(config.redact),
        history_path=session_path(str(config.persistence["path"]), coordinator) if config.persistence else None,
    )
