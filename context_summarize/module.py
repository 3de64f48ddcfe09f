"""`mount()` and `on_session_ready()`: config → objects → coordinator. Opens nothing and uses no network."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from amplifier_core import ModuleCoordinator

from context_summarize.config import Config
from context_summarize.events import ALL_EVENTS, OBSERVED
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.stores import open_store

logger = logging.getLogger(__name__)

NAME = "context-summarize"
_CAPABILITIES = ("compact", "preview", "show", "statistics", "undo", "pin", "unpin", "request_retention")
"""Methods of the manager that are registered as `context.…`, for the tool `context`; the last one is for loops."""


async def mount(
    coordinator: ModuleCoordinator, config: Mapping[str, Any] | None = None
) -> Callable[[], Awaitable[None]]:
    """Mounts a `SummarizingContextManager` as the session's context.

    Returns:
        An async function that ends all work under way; the host awaits it at session end.

    Raises:
        ConfigError: a setting is wrong.
        TemplateError: the prompt set is incomplete.
    """
    checked = Config.from_mapping(config)
    manager = SummarizingContextManager(coordinator, config=checked, store=open_store(checked.cache))
    await coordinator.mount("context", manager)
    coordinator.register_contributor("observability.events", NAME, lambda: _own_events(coordinator, manager))
    observe, hooks = manager.observe_response, coordinator.hooks
    unregister = [hooks.register(name, observe, name=f"{NAME}-meter") for name in OBSERVED]
    for name in _CAPABILITIES:
        coordinator.register_capability(f"context.{name}", getattr(manager, name))
    coordinator.register_capability("context.foreground_usage", manager.claim_foreground_usage)
    coordinator.register_capability("context.compacting", lambda: manager.is_compacting)
    # Tools that read a transcript ask for the whole history if the context says that the history is the host's own.
    coordinator.register_capability("context.history", manager.get_messages)
    coordinator.register_capability("context.history_authority", "host")

    async def cleanup() -> None:
        for end in filter(callable, unregister):
            end()
        await manager.close()

    return cleanup


def _own_events(coordinator: ModuleCoordinator, manager: SummarizingContextManager) -> list[str]:
    """Returns the events that the kernel does not declare: some hooks log an event twice if it is declared twice.

    Only the mounted manager declares events, even if `mount()` ran more than once.
    """
    from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS

    return [name for name in ALL_EVENTS if name not in KERNEL_EVENTS] if coordinator.get("context") is manager else []


async def on_session_ready(coordinator: ModuleCoordinator) -> None:
    """Once all modules are mounted, mounts the tool `recall` where it is wanted, and checks the summariser's settings.

    amplifier-core runs cleanups in reverse order of their registration, so the cleanup that is registered here runs
    before those of the providers.
    """
    manager = coordinator.get("context")
    if isinstance(manager, SummarizingContextManager):
        await manager.prepare()
        coordinator.register_cleanup(manager.finish)
