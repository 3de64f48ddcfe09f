"""Mounts an installed provider module outside a session, for replays with the provider that sessions use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from typing import Any

from context_summarize.errors import ProviderUnavailable

_KERNEL_SECONDS = 0.2
"""If a process ends sooner after the loop, it may crash in a thread of amplifier-core's kernel."""


@asynccontextmanager
async def mounted_provider(name: str) -> AsyncIterator[tuple[str, Any]]:
    """(name, provider) of an installed Amplifier provider module, cleaned up at the end.

    Args:
        name: the module's entry point in the group `amplifier.modules`, such as `provider-openai`.

    Raises:
        ProviderUnavailable: the module is not installed, cannot be loaded, or mounts no provider.
    """
    from amplifier_core.testing import MockCoordinator

    found = {entry.name: entry for entry in entry_points(group="amplifier.modules")}
    if name not in found:
        known = ", ".join(sorted(entry for entry in found if entry.startswith("provider-"))) or "none"
        raise ProviderUnavailable(f"no provider module {name!r} in this Python environment; installed: {known}")
    coordinator = MockCoordinator()  # type: ignore[no-untyped-call]
    try:
        try:
            cleanup = await found[name].load()(coordinator, {})
        except Exception as error:
            raise ProviderUnavailable(f"{name} cannot be mounted: {type(error).__name__}: {error}") from error
        if callable(cleanup):
            coordinator.register_cleanup(cleanup)
        if not (mounted := coordinator.get("providers")):
            raise ProviderUnavailable(f"{name} mounted no provider; is its key set in the environment?")
        yield next(iter(mounted.items()))
    finally:
        await coordinator.cleanup()
        await asyncio.sleep(_KERNEL_SECONDS)
