"""Options that name the provider of the summaries, and the provider that they name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import click

from context_summarize.cli.options import MAX_OUTPUT, WINDOW, Command, decorated, given, lowered_output
from context_summarize.cli.terminal import Refused
from context_summarize.config import Config
from context_summarize.providers.installed import mounted_provider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.providers.openai_compatible import KEY_ENV, NAME, make_provider
from context_summarize.replay.player import Setup
from context_summarize.session.host import Window, provider_window
from context_summarize.tokens.counter import loaded_counter

OFFLINE = OfflineProvider.name


def provider_options() -> Callable[[Command], Command]:
    """Options for the provider that writes the summaries; `Asked` takes them and those of the window."""
    return decorated(
        click.option(
            "--provider",
            default=OFFLINE,
            metavar="NAME",
            show_default=True,
            help="The provider that writes the summaries: `offline` (code, no model, no key); `openai-compatible`, a "
            "server with the Chat Completions API; or the entry-point name of an installed Amplifier provider module, "
            "such as provider-openai.",
        ),
        click.option("--base-url", metavar="URL", help=f"With {NAME}: the address of the API, including its version."),
        click.option("--model", metavar="NAME", help=f"With {NAME}: the model."),
        click.option(
            "--key-env",
            metavar="VARIABLE",
            help=f"With {NAME}: the environment variable that holds the key.  "
            f"[default: {KEY_ENV} for https, no key for http]",
        ),
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """The provider that writes the summaries, and the window."""

    provider: str
    window: int | None
    max_output: int | None
    base_url: str | None
    model: str | None
    key_env: str | None

    def check(self) -> None:
        """Refuse server options without the server provider, and the server provider without them."""
        server = {"--base-url": self.base_url, "--model": self.model, "--key-env": self.key_env}
        given = [option for option, value in server.items() if value is not None]
        if self.provider != NAME and given:
            raise Refused(f"{given[0]} needs --provider {NAME}")
        missing = [option for option in ("--base-url", "--model") if not server[option]]
        if self.provider == NAME and missing:
            raise Refused(
                f"--provider {NAME} needs {' and '.join(missing)}, such as "
                "--base-url http://127.0.0.1:8000/v1 --model NAME"
            )

    @asynccontextmanager
    async def setup(self, source: str, config: Config) -> AsyncIterator[Setup]:
        """The setup of one replay; the provider is closed at the end.

        Args:
            source: what is replayed, as a report names it.
        """
        async with _provider(self) as (name, provider):
            window = await self._window(provider)
            yield Setup(
                provider=provider,
                name=name,
                source=source,
                config=config,
                token_budget=window.budget(config.safety_margin) if window and not self._is_known else None,
                window=window,
                notes=lowered_output(window, config.safety_margin) if window else (),
            )

    @property
    def _is_known(self) -> bool:
        """True if the provider itself tells the window that counts: two were given the options, else none was given."""
        return self.provider in (OFFLINE, NAME) or (self.window is None and self.max_output is None)

    async def _window(self, provider: Any) -> Window | None:
        """The window, by the options and what the provider says; None if neither gives one."""
        known = await provider_window(provider)
        if self._is_known:
            return known
        context = self.window or (known.context if known else None)
        return Window(context, given(self.max_output, MAX_OUTPUT)) if context else None


@asynccontextmanager
async def _provider(asked: Asked) -> AsyncIterator[tuple[str, Any]]:
    """(name, provider); closed at the end."""
    if asked.provider == OFFLINE:
        count, output = (await loaded_counter()).count, given(asked.max_output, MAX_OUTPUT)
        yield OFFLINE, OfflineProvider(count, context_window=given(asked.window, WINDOW), max_output_tokens=output)
    elif asked.provider == NAME:
        provider = make_provider(
            asked.base_url or "",
            asked.model or "",
            context_window=asked.window,
            max_output_tokens=asked.max_output,
            key_env=asked.key_env,
        )
        try:
            yield f"{NAME} ({asked.model})", provider
        finally:
            await provider.close()
    else:
        async with mounted_provider(asked.provider) as (name, mounted):
            yield name, mounted
