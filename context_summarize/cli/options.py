"""Options that several commands share, and the code that reads their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeVar

import click

from context_summarize.cli.terminal import Refused
from context_summarize.config import Config

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


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def session_options(unless: str = "") -> Callable[[Command], Command]:
    """Options for the recording, the window and the settings.

    Args:
        unless: another source of the default window, as the help names it.
    """
    decorators = (
        click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl"),
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
        click.option(
            "--prompts", metavar="SET", help="Prompt set, by name or folder; the same as `--config prompts=SET`."
        ),
        click.option(
            "--config",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the module, such as keep_recent=20; may be repeated. VALUE is read as JSON if it is "
            "valid JSON, else as text. `none` means no value.",
        ),
    )

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
    for item in given:
        key, sign, value = item.partition("=")
        if not sign:
            raise Refused(f"--config {item!r} has no value; expected KEY=VALUE, such as keep_recent=20")
        settings[key.strip()] = _value(value.strip())
    if prompts is not None:
        if "prompts" in settings:
            raise Refused("--prompts and --config prompts=… both name the prompt set; give only one of them")
        settings["prompts"] = prompts
    return Config.from_mapping(settings)


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
