"""Mounts installed provider modules outside a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from context_summarize.errors import ProviderUnavailable

PROVIDER_GROUP = "amplifier.modules"
BUILT_IN = ("offline", "openai-compatible")
"""Names of the providers that need no installed module."""
_PREFIX = "provider-"
_KERNEL_SECONDS = 0.2
"""If a process ends sooner after the loop, it may crash in a thread of amplifier-core's kernel."""


def _unknown(name: str, installed: Sequence[str]) -> str:
    """What a provider may be called, and how to get one."""
    module = name if name.startswith(_PREFIX) else _PREFIX + name
    offline, server = BUILT_IN
    near = [module] if module in installed else get_close_matches(name, [*BUILT_IN, *installed], 1, 0.7)
    meant = f" (did you mean {near[0]}?)" if near else ""
    example = module if not near else f"{_PREFIX}openai"
    return (
        f"no provider module {name!r}{meant}; expected {offline} (code, no model), {server} (a server with the Chat "
        "Completions API, by its address and model), or the entry-point name of an Amplifier provider module that is "
        f"installed in this Python environment, such as {example}; installed: {', '.join(installed) or 'none'}. "
        "Install the module, set the environment variable that holds its key, and give its name"
    )


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
        raise ProviderUnavailable(_unknown(name, sorted(entry for entry in found if entry.startswith(_PREFIX))))

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
