"""Options that several commands share, and the code that reads their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from context_summarize.cli.terminal import Refused, told
from context_summarize.config import Config
from context_summarize.replay import Recording, open_recording

WINDOW = 40_000
MAX_OUTPUT = 4_000
TOKENS = click.IntRange(min=1, max=10**12)
Callback: TypeAlias = Callable[..., Any]


class Name(click.ParamType[str]):
    """A name that is no option, such as that of a file: `--html --json` is a slip, not a file of that name."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value or str(value).startswith("-"):
            self.fail(f"a name is missing before {value!r}; a file of that name is ./{value}", param, ctx)
        return str(value)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_SESSION_HELP = (
    "SESSION is a file with one message per line, as Amplifier stores them, the id of a session that Amplifier has "
    "stored (or the beginning of one), or - for standard input."
)
_CONFIG_HELP = (
    "A setting of the module, such as keep_recent=20; may be repeated. VALUE is read as JSON if it is valid JSON, else "
    "as text. `none` means no value."
)
_WINDOW_HELP = f"Context window of the model.  [default: {WINDOW}, or the provider's]"
_OUTPUT_HELP = f"Tokens of the window kept free for the answer.  [default: {MAX_OUTPUT}, or the provider's]"


def session_command(name: str, about: str) -> Callable[[Callback], click.Command]:
    """Makes a command that takes a recording, the window and settings; `about` is its line in the list of commands."""

    def made(callback: Callback) -> click.Command:
        callback = click.option("--config", "settings", multiple=True, metavar="KEY=VALUE", help=_CONFIG_HELP)(callback)
        callback = click.option("--max-output", type=TOKENS, metavar="TOKENS", help=_OUTPUT_HELP)(callback)
        callback = click.option("--window", type=TOKENS, metavar="TOKENS", help=_WINDOW_HELP)(callback)
        callback = click.argument("session", metavar="SESSION")(callback)
        return click.command(name, short_help=about, epilog=_SESSION_HELP)(callback)

    return made


def opened(session: str) -> Recording:
    """The recording that the argument names; a line that is left out of it is named on stderr.

    Raises:
        SessionFileError: there is none, or it holds no session.
    """
    recording = open_recording(session)
    if recording.cut is not None:
        told(
            f"note: {recording.cut} is cut off, as in a file that is still being written; 1 line is left out", "yellow"
        )
    return recording


def read_config(given: Sequence[str]) -> Config:
    """The settings given on the command line.

    Raises:
        Refused: a setting has no value, or is given twice.
        ConfigError: a setting is unknown or wrong.
    """
    settings: dict[str, Any] = {}
    for pair in given:
        key, sign, text = (part.strip() for part in pair.partition("="))
        if not sign:
            raise Refused(f"--config {pair!r} has no value; expected KEY=VALUE, such as keep_recent=20")
        if key in settings:
            raise Refused(f"--config gives {key} twice; keep one of them")
        settings[key] = _value(text)
    return Config.from_mapping(settings)


def _value(text: str) -> Any:
    try:
        return None if text.lower() == "none" else json.loads(text)
    except (ValueError, RecursionError):
        return text
