"""Options that several commands share, and the code that reads their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from context_summarize.cli.pairs import read_pairs
from context_summarize.cli.terminal import Refused, notes
from context_summarize.config import Config
from context_summarize.errors import SessionFileError
from context_summarize.replay.session_files import Recording
from context_summarize.replay.stored_sessions import PROGRAMS, open_recording, stored_sessions
from context_summarize.session.host import Window

WINDOW = 40_000
MAX_OUTPUT = 4_000
Command = TypeVar("Command", bound=Callable[..., Any])


class Tokens(click.ParamType[int]):
    """A number of tokens: `40000`, `40_000`, `40k`, `1.5M`; k is a thousand and M a million."""

    name = "tokens"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().replace("_", "").replace(",", "").casefold()
        unit = {"k": 1_000, "m": 1_000_000}.get(text[-1:], 1)
        try:
            exact = Decimal(text if unit == 1 else text[:-1]) * unit
        except InvalidOperation:
            exact = Decimal("NaN")
        if not exact.is_finite() or exact != int(exact):
            self.fail(f"{value!r} is not a number of tokens; write 40000 or 40k", param, ctx)
        if exact < self._least:
            self.fail(f"{value!r} is less than {self._least}", param, ctx)
        return int(exact)


class SessionName(click.ParamType[str]):
    """What names a recording: a file, a folder, the id of a stored session, or `-`."""

    name = "session"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Files, and the stored sessions whose ids begin so."""
        try:
            ids = [session.id for program in PROGRAMS for session in stored_sessions(program)]
        except SessionFileError:
            ids = []
        files = CompletionItem(incomplete, type="file")
        return [files, *(CompletionItem(name) for name in ids if name.startswith(incomplete))]


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    metavar="NUMBER",
    show_default=True,
    help="The newest so many sessions.",
)


session_argument = click.argument("session", type=SessionName(), metavar="SESSION")
SESSION_HELP = (
    "SESSION is a file, a folder with one, the id of a stored session or its beginning (`context-summarize sessions` "
    "lists them), or - for standard input. FILE.jsonl holds one message per line, as Amplifier's loops store them; a "
    'JSON array, an object {"messages": […]} and a session file of Claude Code are read too.'
)
"""Stands at the end of a command's help."""


def window_options(unless: str = "") -> Callable[[Command], Command]:
    """Options for the window.

    Args:
        unless: another source of the default window, as the help names it.
    """
    return decorated(
        click.option(
            "--window",
            type=Tokens(least=1),
            metavar="TOKENS",
            help=f"Context window of the model.  [default: {WINDOW}{unless}]",
        ),
        click.option(
            "--max-output",
            type=Tokens(least=0),
            metavar="TOKENS",
            help=f"Tokens of the window kept free for the answer.  [default: {MAX_OUTPUT}{unless}]",
        ),
    )


def session_options(unless: str = "") -> Callable[[Command], Command]:
    """Options for the recording, the window and the settings; `unless` as in `window_options`."""
    return decorated(
        session_argument,
        window_options(unless),
        click.option(
            "--prompts", metavar="SET", help="Prompt set, by name or folder; the same as `--config prompts=SET`."
        ),
        click.option(
            "--config",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the module, such as keep_recent=20; may be repeated, or hold several pairs: "
            '"keep_recent=20 compact_threshold=0.6". VALUE is read as JSON if it is valid JSON, else as text. `none` '
            "means no value.",
        ),
    )


def given(value: int | None, default: int) -> int:
    """The value of an option; the default if it is not given. 0 is a value."""
    return default if value is None else value


def lowered_output(window: Window, margin: int) -> tuple[str, ...]:
    """What to say if less of the window is kept free for the answer than was asked for; nothing otherwise.

    Args:
        window: as asked for. margin: the setting `safety_margin`, in tokens.
    """
    budget = window.budget(margin)
    kept = max(0, window.context - budget - margin)
    if kept >= window.output:
        return ()
    return (
        f"--max-output is lowered from {window.output:,} to {kept:,} tokens: with the safety margin of {margin:,} it "
        f"would leave too little of a window of {window.context:,}; a request may hold {budget:,}",
    )


def opened(session: str) -> Recording:
    """The recording that the argument names; what was mended in it is said on stderr.

    Raises:
        SessionFileError: there is none, or it holds no session.
    """
    recording = open_recording(session)
    notes(recording.remarks)
    return recording


def decorated(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """All these decorators as one, the first of them outermost."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def read_config(given: Sequence[str], prompts: str | None) -> Config:
    """The settings given on the command line.

    Raises:
        Refused: a setting has no value, or is given twice.
        ConfigError: a setting is unknown or wrong.
    """
    settings: dict[str, Any] = {}
    for pairs in given:
        settings |= read_pairs(pairs)
    if prompts is not None:
        if "prompts" in settings:
            raise Refused("--prompts and --config prompts=… both name the prompt set; give only one of them")
        settings["prompts"] = prompts
    return Config.from_mapping(settings)
