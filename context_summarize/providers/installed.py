"""Mounts installed provider modules outside a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from typing import Any

from context_summarize.errors import ProviderUnavailable

PROVIDER_GROUP = "amplifier.modules"
BUILT_IN = ("offline", "openai-compatible")
"""Names of the providers that need no installed module."""
_KERNEL_SECONDS = 0.2
"""If a process ends sooner after the loop, it may crash in a thread of amplifier-core's kernel."""


@asynccontextmanager
async def mounted_provider(name: str) -> AsyncIterator[tuple[str, Any]]:
    """(name, provider) of an installed Amplifier provider module, mounted outside a session and cleaned up at the end.

    Args:
        name: the module's entry point in the group `amplifier.modules`, such as `provider-openai`.

    Raises:
        ProviderUnavailable: the module is not installed, cannot be loaded, or mounts no provider.
    """
    found = {entry.name: entry for entry in entry_points(group=PROVIDER_GROUP)}
    if name not in found:
        installed = ", ".join(sorted(entry for entry in found if entry.startswith("provider-")))
        raise ProviderUnavailable(
            f"no provider module {name!r}; built in: {', '.join(BUILT_IN)}; installed: {installed or 'none'}"
        )

    from amplifier_core.testing import MockCoordinator

    coordinator = MockCoordinator()  # type: ignore[no-untyped-call]
    try:
        try:
            mount = found[name].load()
            cleanup = await mount(coordinator, {})
        except Exception as error:
            raise ProviderUnavailable(f"{name} does not mount: {type(error).__name__}: {error}") from error
        if callable(cleanup):
            coordinator.register_cleanup(cleanup)
        mounted = coordinator.get("providers") or {}
        if not mounted:
            raise ProviderUnavailable(f"{name} mounted no provider; is its key set in the environment?")
        yield next(iter(mounted.items()))
    finally:
        await coordinator.cleanup()
        await asyncio.sleep(_KERNEL_SECONDS)
