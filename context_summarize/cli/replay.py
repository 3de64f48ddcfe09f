"""`context-summarize replay`: runs a recorded session through the module and checks every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from context_summarize.cli.options import MAX_OUTPUT, WINDOW, json_option, read_config, session_options
from context_summarize.cli.replay_output import as_data, print_result
from context_summarize.cli.terminal import Refused, guarded, plain, print_json, printing, stderr, working
from context_summarize.config import Config
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.installed import mounted_provider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.providers.openai_compatible import KEY_ENV, NAME, make_provider
from context_summarize.replay.player import Setup, replay
from context_summarize.replay.result import ReplayResult
from context_summarize.replay.session_files import read_session
from context_summarize.session.host import Window, provider_window
from context_summarize.tokens.counter import TokenCounter

OFFLINE = OfflineProvider.name


@dataclass(frozen=True, slots=True)
class _Asked:
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


@click.command("replay", short_help="Replay a recorded session and check every request.")
@session_options(", or the named provider's own")
@click.option(
    "--provider",
    default=OFFLINE,
    metavar="NAME",
    show_default=True,
    help="The provider that writes the summaries: `offline` (code, no model, no key); `openai-compatible`, a server "
    "with the Chat Completions API; or the entry-point name of an installed Amplifier provider module, such as "
    "provider-openai.",
)
@click.option("--base-url", metavar="URL", help=f"With {NAME}: the address of the API, including its version.")
@click.option("--model", metavar="NAME", help=f"With {NAME}: the model.")
@click.option(
    "--key-env",
    metavar="VARIABLE",
    help=f"With {NAME}: the environment variable that holds the key.  [default: {KEY_ENV} for https, no key for http]",
)
@click.option("--show-view", is_flag=True, help="Also print the rows of the last request, each on a few lines.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE.html", help="Also write an HTML report.")
@json_option
def replay_command(
    file: Path,
    settings: tuple[str, ...],
    prompts: str | None,
    show_view: bool,
    html: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Replay a recorded session and check every request.

    FILE.jsonl holds one message per line, as Amplifier's loops store them. The command adds them one by one. Before
    every assistant message it asks the module for the request that an agent would send at that point. It sends data
    only to the provider that writes the summaries.

    --json prints an object with file, provider, window, budget, messages, history_tokens, requests, largest_view,
    stable_share, provider_calls, failed_calls, failed_summaries, provider_input_tokens, provider_output_tokens,
    seconds, ok, boundaries (a list), checks (a list) and, with --show-view, last_view (a list). Sizes are in tokens.

    Exit status: 0 all checks passed, 1 a check failed, 2 if the file or an option cannot be used, 130 interrupted.
    """
    who = _Asked(**asked)
    with guarded():
        who.check()
        if html is not None:
            _check_page(html)
        config = read_config(settings, prompts)
        rows = read_session(file)
        with working("Replaying", file.name, len(rows)) as progress:
            result = asyncio.run(_replay(rows, file.name, config, who, progress))
        if html is not None:
            from context_summarize.replay.report import write_report  # only this path needs the page's parts

            write_report(result, html)
    if as_json:
        print_json(as_data(file.name, result, show_view=show_view))
    else:
        with printing() as out:
            print_result(out, file.name, result, show_view=show_view)
    if result.failed is not None:
        problem = plain(f"FAILED: {result.failed.name}: {result.failed.first}")
        stderr().print(Text(problem, style="bold red"), soft_wrap=True)
        click.get_current_context().exit(1)


def _check_page(html: Path) -> None:
    """Refuse a page that cannot be written, as far as this is visible before the replay."""
    folder = html.absolute().parent
    try:
        if not folder.is_dir():
            raise Refused(f"{html} cannot be written: there is no folder {folder}")
        if html.is_dir():
            raise Refused(f"{html} cannot be written: it is a folder; name a file in it")
    except OSError as error:
        raise Refused(f"{html} cannot be written: {error.strerror or error}") from None


async def _replay(
    rows: Sequence[JsonRow], source: str, config: Config, asked: _Asked, progress: Callable[[int, int], None]
) -> ReplayResult:
    async with _provider(asked) as (name, provider):
        budget = None
        if asked.provider not in (OFFLINE, NAME):  # these two already know the window
            budget = await _explicit_budget(provider, config, asked.window, asked.max_output)
        setup = Setup(provider=provider, name=name, source=source, config=config, token_budget=budget)
        return await replay(rows, setup, progress=progress)


@asynccontextmanager
async def _provider(asked: _Asked) -> AsyncIterator[tuple[str, Any]]:
    """(name, provider); closed at the end."""
    if asked.provider == OFFLINE:
        counter = TokenCounter()
        await counter.load()
        output = MAX_OUTPUT if asked.max_output is None else asked.max_output
        yield OFFLINE, OfflineProvider(counter.count, context_window=asked.window or WINDOW, max_output_tokens=output)
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


async def _explicit_budget(provider: Any, config: Config, window: int | None, max_output: int | None) -> int | None:
    """Tokens for a request, from the given options; None if the provider's window decides."""
    if window is None and max_output is not None:
        known = await provider_window(provider)
        window = known.context if known else None
    if window is None:
        return None
    return Window(window, MAX_OUTPUT if max_output is None else max_output).budget(config.safety_margin)
