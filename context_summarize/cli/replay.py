"""`context-summarize replay`: runs a recorded session through the module and checks every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from context_summarize.cli.common import (
    MAX_OUTPUT,
    WINDOW,
    Name,
    Refused,
    facts,
    guarded,
    heading,
    json_option,
    opened,
    plain,
    print_json,
    printing,
    read_config,
    sentence,
    session_command,
    table,
    told,
    working,
)
from context_summarize.config import Config
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.installed import mounted_provider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.providers.openai_compatible import NAME, make_provider
from context_summarize.replay import (
    Check,
    Compaction,
    ReplayResult,
    check_page,
    figures,
    replay,
    row_text,
    write_page,
)
from context_summarize.session.host import Window
from context_summarize.tokens.counter import loaded_counter
from context_summarize.transcript.rows import counted

NO_SUMMARY = 3
"""Exit status where the provider was asked and wrote no summary."""
_SERVER_HELP = "A server with the Chat Completions API, with its version: http://127.0.0.1:8000/v1."
_KEY_HELP = "With --base-url: the environment variable that holds the key."
_PROVIDER_HELP = (
    "The entry-point name of an installed Amplifier provider module, such as provider-openai.  [default: offline, code "
    "without a model]"
)
_OFFLINE = (
    "Provider: offline. It is not a model: code copies words, ids and results from the messages, without a key or a "
    "network. A model writes better summaries (--base-url, --provider)."
)
_COMPACTIONS = (
    "Each of these requests passed the threshold (filling) or did not fit the budget (must fit), so summaries replaced "
    "older messages. Message: the assistant message that answers the request. Segments: runs of messages that were "
    "summarised. Merged: new summaries, each made from several older ones. Cached: summaries that needed no call. "
    "Fallbacks: summaries by code, because the provider gave none. Waited: how long the request waited for summaries."
)
_COLUMNS = ("Message", "Before → after", "Segments", "Merged", "Cached", "Fallbacks", "Waited", "Why")


@session_command("replay", "Replay a recorded session and check every request.")
@click.option("--base-url", type=Name(), metavar="URL", help=_SERVER_HELP)
@click.option("--model", type=Name(), metavar="NAME", help="With --base-url: the model.")
@click.option("--key-env", type=Name(), metavar="VARIABLE", help=_KEY_HELP)
@click.option("--provider", type=Name(), metavar="NAME", help=_PROVIDER_HELP)
@click.option("--show-view", is_flag=True, help="Also print the rows of the last request, as the model reads them.")
@click.option("--html", type=Name(), metavar="FILE.html", help="Also write the replay as an HTML page.")
@json_option
def replay_command(
    session: str, settings: tuple[str, ...], show_view: bool, html: str | None, as_json: bool, **asked: Any
) -> None:
    """Replay a recorded session and check every request.

    The command adds the messages of SESSION one by one. Before every assistant message it asks the module for the
    request that an agent would send at that point. It sends data only to the provider that writes the summaries.

    --json prints an object with file, provider, window, budget, messages, history_tokens, requests, largest_view,
    stable_share, provider_calls, failed_summaries, provider_input_tokens, provider_output_tokens,
    seconds, ok, compactions (a list), checks (a list) and, with --show-view, last_view (a list). Sizes are in tokens.

    Exit status: 0 all checks passed, 1 a check failed, 2 if the session or an option cannot be used, 3 if the provider
    was asked for summaries and every one failed, 130 interrupted.
    """
    with guarded():
        if html is not None:
            check_page(Path(html))
        config = read_config(settings)
        recording = opened(session)
        with working("Replaying", len(recording.rows)) as progress:
            result = asyncio.run(_played(recording.rows, config, progress, asked))
        if html is not None:
            write_page(result, Path(html), recording.name)
            told(f"The report is in {html}; a browser opens it.", "green")
    if as_json:
        view = {"last_view": result.last_view} if show_view else {}
        print_json({"file": recording.name, **result.as_data(), **view})
    else:
        with printing() as out:
            _print(out, recording.name, result, show_view=show_view)
    if result.problem is not None:
        told(result.problem, "red")
        click.get_current_context().exit(1 if result.failed else NO_SUMMARY)


async def _played(
    rows: Sequence[JsonRow], config: Config, progress: Callable[[int], None], asked: Mapping[str, Any]
) -> ReplayResult:
    async with _provider(config, **asked) as (name, provider, budget):
        return await replay(rows, provider, name=name, config=config, token_budget=budget, progress=progress)


@asynccontextmanager
async def _provider(
    config: Config, *, provider: str | None, window: int | None, max_output: int | None, **server: Any
) -> AsyncIterator[tuple[str, Any, int | None]]:
    """(name, provider, tokens of a request where the provider does not name them); closed at the end.

    Raises:
        Refused: the options do not go together.
    """
    url, model = server["base_url"], server["model"]
    if (provider == NAME or any(server.values())) and not (url and model and provider in (None, NAME)):
        raise Refused(f"{NAME} needs both --base-url and --model, and no other --provider")
    if url and model:
        made = make_provider(url, model, context_window=window, max_output_tokens=max_output, key_env=server["key_env"])
        try:
            yield f"{NAME} ({model})", made, None
        finally:
            await made.close()
    elif provider in (None, OfflineProvider.name):
        count = (await loaded_counter()).count
        sizes = {"context_window": window or WINDOW, "max_output_tokens": max_output or MAX_OUTPUT}
        yield OfflineProvider.name, OfflineProvider(count, **sizes), None
    else:
        budget = Window(window, max_output or MAX_OUTPUT).budget(config.safety_margin) if window else None
        async with mounted_provider(provider) as (name, mounted):
            yield name, mounted, budget


# --- what it prints ---------------------------------------------------------------------------------------------------


def _print(out: Console, name: str, result: ReplayResult, *, show_view: bool) -> None:
    """Print a replay: what was replayed, the last view if asked for, compactions, totals, checks."""
    through = f"requests of at most {result.budget:,} tokens"
    if result.window is not None:
        through = f"a window of {result.window:,} tokens, {result.budget:,} of them for a request"
    messages = counted(len(result.rows), "message")
    sentence(out, f"\n{name}: {messages}, {result.history_tokens:,} tokens in total, replayed with {through}.")
    sentence(out, _OFFLINE if result.provider == OfflineProvider.name else f"Provider: {result.provider}.")
    if show_view and result.last_view:
        heading(out, "Last request", "Row by row, as the model reads it.")
        for at, row in enumerate(result.last_view, 1):
            out.print(Text(f"── {at} {row['role']} ──", style="bold"))
            out.print(Text(plain(row_text(row))), soft_wrap=True)
    heading(out, "Compactions", _COMPACTIONS)
    if result.compactions:
        out.print(table(_COLUMNS, map(_cells, result.compactions)))
    elif not result.requests:
        sentence(out, "None. The recording has no assistant message, so there was no request.")
    else:
        largest = f"The largest of {counted(len(result.requests), 'request')} holds {result.largest_view:,} tokens."
        sentence(out, f"None. {largest} With a smaller --window there are some.")
    heading(out, "Totals", "The whole session. An agent makes one request for each assistant message.")
    out.print(facts(figures(result)))
    heading(out, "Checks", "Promises of the module. If one is broken, the command exits with 1.")
    out.print(facts(map(_verdict, result.checks)))


def _cells(line: Compaction) -> tuple[object, ...]:
    size = f"{line.before_tokens:,} → {line.after_tokens:,}"
    counts = (line.segments, line.merged, line.from_cache, line.fallbacks)
    return (line.message or "–", size, *counts, f"{line.wait_ms:,} ms", line.why)


def _verdict(check: Check) -> tuple[str, str, str]:
    unit = check.unit.removesuffix("s") if check.checked == 1 else check.unit
    count = f"ok  {check.checked:,}" if check.ok else f"FAILED  {check.broken:,} of {check.checked:,}"
    return check.name, f"{count} {unit}", check.meaning
