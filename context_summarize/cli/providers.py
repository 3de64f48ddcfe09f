"""The provider that a command names with --provider and --model: offline, the address of a server, or a module."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import reduce
from importlib.metadata import entry_points
from typing import Any

import click
from amplifier_core import ModuleCoordinator

from context_summarize.errors import CommandError
from context_summarize.host_types import Provider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.providers.openai_compatible import make_provider
from context_summarize.replay.prices import SOL, Prices, prices_of
from context_summarize.tokens.counter import TokenCounter

_WINDOW = 40_000
_PROVIDER_HELP = (
    "An address with the Chat Completions API, such as http://localhost:11434/v1 (for https the key is that of the "
    "environment's OPENAI_API_KEY); or an installed module, such as provider-openai; or offline, code without a model."
)
_WINDOW_HELP = f"Context window of the model; an installed module has its own.  [default: {_WINDOW}]"


def provider_options(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that gives a command the options `provider`, `model` and `window`."""
    default = "" if required else "  [default: offline]"
    options = (
        click.option("--provider", metavar="PROVIDER", required=required, help=_PROVIDER_HELP + default),
        click.option("--model", metavar="NAME", help="The model of that provider, such as qwen3."),
        click.option("--window", type=click.IntRange(min=1), metavar="TOKENS", help=_WINDOW_HELP),
    )
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


@asynccontextmanager
async def opened(provider: str | None, model: str | None, window: int | None) -> AsyncIterator[tuple[str, Provider]]:
    """Yields name and provider, and closes it at the end.

    Raises:
        CommandError: it is none of the three forms, has no model or a window of its own, or cannot be mounted.
        ConfigError: the address is none, or httpx is missing.
    """
    if provider is None or provider == OfflineProvider.name:
        if model:
            raise CommandError(f"--model {model} has no provider that could run it; {provider_forms()}")
        yield OfflineProvider.name, OfflineProvider(TokenCounter().count, context_window=window or _WINDOW)
    elif "://" in provider:
        if not model:
            raise CommandError(f"--provider {provider} needs --model, the name by which that server knows the model")
        server = make_provider(provider, model, context_window=window or _WINDOW, max_output_tokens=_WINDOW // 10)
        try:
            yield model, server
        finally:
            await server.close()
    elif ":" in provider:
        raise CommandError(f"--provider {provider} lacks the scheme; write http://{provider}")
    elif window:
        raise CommandError(
            f"{provider} has a window of its own; leave --window out, or set --config max_tokens={window}"
        )
    else:
        from amplifier_core.testing import MockCoordinator

        coordinator = MockCoordinator()  # type: ignore[no-untyped-call]
        try:
            yield await _mounted(provider, coordinator, {"default_model": model} if model else {})
        finally:
            await coordinator.cleanup()
            await asyncio.sleep(0.2)  # a process that ends sooner may crash in a thread of amplifier-core's kernel


def prices_for(name: str, provider: Provider) -> Prices | None:
    """Returns the list prices of a provider's model; without a model those of a current one; None if unknown."""
    if name == OfflineProvider.name:
        return SOL
    return prices_of(str(getattr(provider, "default_model", name)))


async def _mounted(module: str, coordinator: ModuleCoordinator, settings: dict[str, Any]) -> tuple[str, Provider]:
    """Returns (name, provider) of an installed Amplifier provider module, such as `provider-openai`."""
    found = {entry.name: entry for entry in entry_points(group="amplifier.modules")}
    if module not in found:
        raise CommandError(f"no provider module {module!r} in this Python environment; {provider_forms()}")
    try:
        cleanup = await found[module].load()(coordinator, settings)
    except Exception as error:
        raise CommandError(f"{module} cannot be mounted: {type(error).__name__}: {error}") from error
    if callable(cleanup):
        coordinator.register_cleanup(cleanup)
    mounted: dict[str, Provider] = coordinator.get("providers")
    if not mounted:
        raise CommandError(f"{module} mounted no provider; is its key set in the environment?")
    return next(iter(mounted.items()))


def provider_forms() -> str:
    """Returns a sentence with all forms of --provider."""
    names = (entry.name for entry in entry_points(group="amplifier.modules"))
    installed = ", ".join(sorted(name for name in names if name.startswith("provider-"))) or "none"
    return (
        "give an address and a model, as in --provider http://localhost:11434/v1 --model qwen3; or an installed "
        f"provider module (installed: {installed}); or offline, which is code without a model"
    )
