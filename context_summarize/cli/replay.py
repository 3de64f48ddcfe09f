"""`context-summarize replay` and `report`: run a recorded session through the module and check every request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from context_summarize.cli.asking import Asked, provider_options
from context_summarize.cli.options import SESSION_HELP, json_option, opened, read_config, session_options
from context_summarize.cli.replay_output import as_data, print_result, print_verdict
from context_summarize.cli.terminal import Refused, guarded, notes, plain, print_json, printing, stderr, working
from context_summarize.config import Config
from context_summarize.replay.player import replay
from context_summarize.replay.result import ReplayResult
from context_summarize.replay.session_files import Recording

NO_SUMMARY = 3
"""Exit status where the provider was asked and wrote no summary."""
REPORT = Path("report.html")


@click.command("replay", short_help="Replay a recorded session and check every request.", epilog=SESSION_HELP)
@session_options(", or the named provider's own")
@provider_options()
@click.option("--show-view", is_flag=True, help="Also print the rows of the last request, each on a few lines.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE.html", help="Also write an HTML report.")
@json_option
def replay_command(
    session: str,
    settings: tuple[str, ...],
    prompts: str | None,
    show_view: bool,
    html: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Replay a recorded session and check every request.

    The command adds the messages of SESSION one by one. Before every assistant message it asks the module for the
    request that an agent would send at that point. It sends data only to the provider that writes the summaries.

    --json prints an object with file, provider, window, budget, messages, history_tokens, requests, largest_view,
    stable_share, provider_calls, failed_calls, failed_summaries, unused_summaries, provider_input_tokens,
    provider_output_tokens, seconds, ok, boundaries (a list), checks (a list) and, with --show-view, last_view (a list).
    Sizes are in tokens.

    Exit status: 0 all checks passed, 1 a check failed, 2 if the session or an option cannot be used, 3 if the provider
    was asked for summaries and every one failed, 130 interrupted.
    """
    result = _replayed(session, settings, prompts, html, Asked(**asked))
    if as_json:
        print_json(as_data(result, show_view=show_view))
    else:
        with printing() as out:
            print_result(out, result, show_view=show_view)
    end(result)


@click.command("report", short_help="Replay a recorded session and write the HTML report.", epilog=SESSION_HELP)
@session_options(", or the named provider's own")
@provider_options()
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    default=REPORT,
    show_default=True,
    help="Where the report is written. An existing file is replaced.",
)
def report_command(session: str, settings: tuple[str, ...], prompts: str | None, output: Path, **asked: Any) -> None:
    """Replay a recorded session as `replay` does, and write one HTML file that shows it.

    The file needs no network and loads nothing. It holds texts of the session, without secrets of well-known formats.

    Exit status: as for `replay`.
    """
    result = _replayed(session, settings, prompts, output, Asked(**asked))
    with printing() as out:
        print_verdict(out, result, output)
    end(result)


def _replayed(
    session: str, settings: tuple[str, ...], prompts: str | None, html: Path | None, asked: Asked
) -> ReplayResult:
    with guarded():
        asked.check()
        if html is not None:
            check_page(html)
        config = read_config(settings, prompts)
        recording = opened(session)
        result = play(recording, config, asked)
        if html is not None:
            from context_summarize.replay.report import write_report  # only this path needs the page's parts

            write_report(result, html)
    return result


def play(recording: Recording, config: Config, asked: Asked, verb: str = "Replaying") -> ReplayResult:
    """Replay a recording with a progress bar.

    Args:
        verb: what the progress bar says is done.
    """
    with working(verb, recording.name, len(recording.rows)) as progress:
        return asyncio.run(_play(recording, config, asked, progress))


async def _play(
    recording: Recording, config: Config, asked: Asked, progress: Callable[[int, int], None]
) -> ReplayResult:
    async with asked.setup(recording.name, config) as setup:
        return await replay(recording.rows, setup, progress=progress)


def end(*results: ReplayResult) -> None:
    """Say on stderr what was chosen and what went wrong, each once, and exit with the status."""
    notes(dict.fromkeys(note for result in results for note in result.notes))
    for result in results:
        if result.failed is not None:
            _shout(f"FAILED: {result.failed.name}: {result.failed.first}")
            click.get_current_context().exit(1)
    for result in results:
        if result.no_summary_made:
            _shout(
                f"NO SUMMARIES: {result.provider} was called {result.provider_calls:,} times and wrote none. All "
                "summaries are fallback summaries, written by code. The warnings above say why."
            )
            click.get_current_context().exit(NO_SUMMARY)


def _shout(text: str) -> None:
    stderr().print(Text(plain(text), style="bold red"), soft_wrap=True)


def _is_page(path: Path) -> bool:
    """True for an HTML page, and for an empty file."""
    with path.open("rb") as file:
        start = file.read(200).lstrip().lower()
    return not start or start.startswith((b"<!doctype html", b"<html"))


def check_page(html: Path) -> None:
    """Refuse a page that cannot be written, as far as this is visible before the work, or would replace other data.

    Raises:
        Refused: there is no such folder, or the name is a folder's, or that of a file that is no page.
    """
    folder = html.absolute().parent
    try:
        if not folder.is_dir():
            raise Refused(f"{html} cannot be written: there is no folder {folder}")
        if html.is_dir():
            raise Refused(f"{html} cannot be written: it is a folder; name a file in it")
        if html.is_file() and not _is_page(html):
            raise Refused(f"{html} is not replaced: it is no HTML page, and may be a session; name another file")
    except OSError as error:
        raise Refused(f"{html} cannot be written: {error.strerror or error}") from None
