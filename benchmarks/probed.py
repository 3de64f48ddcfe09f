"""Whom the probes ask: an installed provider module, a server with OpenAI's interface, the local model, or nobody."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.local_model.contestants import CONFIG, MAX_OUTPUT
from benchmarks.local_model.server import Engine, serving
from context_summarize.providers.installed import mounted_provider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.providers.openai_compatible import NAME as OPENAI_COMPATIBLE
from context_summarize.providers.openai_compatible import make_provider
from context_summarize.tokens.counter import TokenCounter

LOCAL = "local-model"
"""The small model that `make model` installs."""
LOCAL_SETTINGS = tuple(f"{key}={value}" for key, value in {**CONFIG, "segment_tokens": 1_024, "keep_recent": 4}.items())
"""Settings of the module that a session of some 5,000 tokens with it needs: calls one by one that may take minutes, and
segments that its window of 4,096 tokens holds several of."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that name a provider."""
    parser.add_argument(
        "--provider",
        required=True,
        metavar="MODULE",
        help=f"an installed Amplifier provider module by its entry point, {OPENAI_COMPATIBLE}, {LOCAL} (it is started "
        "here), or offline (no model: shows what the output looks like)",
    )
    parser.add_argument("--base-url", metavar="URL", help=f"with {OPENAI_COMPATIBLE}: where the API begins")
    parser.add_argument("--model", metavar="NAME", help=f"with {OPENAI_COMPATIBLE}: the model")
    parser.add_argument("--key-env", metavar="VARIABLE", help=f"with {OPENAI_COMPATIBLE}: where the key is")


def settings_of(options: argparse.Namespace) -> list[str]:
    """KEY=VALUE of each setting: those that the provider needs, then those of `--config`, which override them."""
    return [*(LOCAL_SETTINGS if options.provider == LOCAL else ()), *options.config]


@asynccontextmanager
async def asked_provider(options: argparse.Namespace) -> AsyncIterator[tuple[str, Any]]:
    """Name and provider; what was started for it ends with the block.

    Raises:
        ValueError: options are missing.
        EngineError: the local model cannot be started.
    """
    if options.provider == OPENAI_COMPATIBLE:
        if not (options.base_url and options.model):
            raise ValueError(f"--provider {OPENAI_COMPATIBLE} needs --base-url and --model")
        made = make_provider(options.base_url, options.model, key_env=options.key_env)
        try:
            yield f"{OPENAI_COMPATIBLE} ({options.model})", made
        finally:
            await made.close()
    elif options.provider == LOCAL:
        with serving(Engine()) as server:
            local = make_provider(
                server.base_url, server.model, context_window=server.window, max_output_tokens=MAX_OUTPUT
            )
            try:
                yield f"{LOCAL} ({server.model})", local
            finally:
                await local.close()
    elif options.provider == OfflineProvider.name:
        counter = TokenCounter()
        await counter.load()
        yield OfflineProvider.name, OfflineProvider(counter.count, context_window=options.window)
    else:
        async with mounted_provider(options.provider) as (name, mounted):
            yield name, mounted
