"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from context_summarize.cli.terminal import Refused
from context_summarize.config import Config

WINDOW = 40_000
MAX_OUTPUT = 4_000
Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead, and nothing else.")


def session_options(unless: str = "") -> Callable[[Command], Command]:
    """The recording, the window that it is seen through, and the settings.

    Args:
        unless: what else may name the window, as the help says it.
    """
    decorators = (
        click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl"),
        click.option(
            "--window",
            type=click.IntRange(min=1),
            metavar="TOKENS",
            help=f"Context window of the model.  [default: {WINDOW}{unless}]",
        ),
        click.option(
            "--max-output",
            type=click.IntRange(min=0),
            metavar="TOKENS",
            help=f"Tokens of the window kept free for the answer.  [default: {MAX_OUTPUT}{unless}]",
        ),
        click.option(
            "--prompts", metavar="SET", help="Prompt set, by name or folder: the same as `--config prompts=SET`."
        ),
        click.option(
            "--config",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the module, such as keep_recent=20; may be repeated. VALUE is read as JSON where it is "
            "JSON, else as text; `none` is no value.",
        ),
    )

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def read_config(given: Sequence[str], prompts: str | None) -> Config:
    """The settings of the command line.

    Raises:
        Refused: one of them has no value, or is given twice.
        ConfigError: one of them is unknown or wrong.
    """
    settings: dict[str, Any] = {}
    for item in given:
        key, sign, value = item.partition("=")
        if not sign:
            raise Refused(f"--config {item!r} has no value; expected KEY=VALUE, such as keep_recent=20")
        settings[key.strip()] = _value(value.strip())
    if prompts is not None:
        if "prompts" in settings:
            raise Refused("--prompts and --config prompts=… name the prompt set twice; keep one of them")
        settings["prompts"] = prompts
    return Config.from_mapping(settings)


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
