"""`context-summarize compare`: replays a recording with several settings and shows what each costs."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase
from typing import Any

import click

from context_summarize.cli.asking import Asked, provider_options
from context_summarize.cli.compare_output import as_data, print_comparison
from context_summarize.cli.config_sets import DEFAULTS, read_set
from context_summarize.cli.options import SESSION_HELP, json_option, opened, session_argument, window_options
from context_summarize.cli.replay import end, play
from context_summarize.cli.terminal import Refused, guarded, notes, print_json, printing
from context_summarize.config import Config
from context_summarize.replay.comparison import Column, Prices, kept_at_end
from context_summarize.replay.session_files import Recording

_MOST = 8


class Dollars(click.FloatRange):
    """A price: dollars for a million tokens, 0 or more and finite."""

    name = "dollars"

    def __init__(self) -> None:
        super().__init__(min=0, max=1_000_000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        if found != found:
            self.fail(f"{value!r} is not a number of dollars; write 3 or 0.25", param, ctx)
        return found


@click.command("compare", short_help="Compare what several settings cost.", epilog=SESSION_HELP)
@session_argument
@click.option(
    "--config",
    "sets",
    multiple=True,
    required=True,
    metavar="SET",
    help="One column: a settings file (JSON or YAML; also a session with context.config), or settings such as "
    f'"keep_recent=20 compact_threshold=0.6", or `{DEFAULTS}`. Repeat it; a single one is compared with the defaults.',
)
@click.option("--price-in", type=Dollars(), default=3.0, show_default=True, help="Dollars a million tokens of input.")
@click.option(
    "--price-cached", type=Dollars(), default=0.3, show_default=True, help="The same for input in the prompt cache."
)
@click.option("--price-out", type=Dollars(), default=15.0, show_default=True, help="The same for output.")
@window_options(", or the named provider's own")
@provider_options()
@json_option
def compare_command(
    session: str,
    sets: tuple[str, ...],
    as_json: bool,
    **more: Any,
) -> None:
    """Replay a recorded session with several settings, and show what each takes and costs.

    The columns show calls, tokens, price, the exact values kept, the mean size of a request and the compactions. The
    better config is the one with the lowest price; it is printed, ready to paste, unless nothing compacted. The price
    is measured. The quality of the summaries is not: a model's judgement is needed for that. Summaries are kept in
    memory, so that no column finds those of another.

    The agent's requests cost --price-in for what is new in them and --price-cached for what repeats the start of the
    previous request. The default prices are an example: give those of your model.

    --json prints an object with file, provider, prices, columns (a list of objects with label, source, config, ok,
    requests, compactions, mean_view, largest_view, read, cached_share, provider_calls, provider_input_tokens,
    provider_output_tokens, unused_summaries, coverage (what the summaries hold of their sources, on average), values
    and values_kept (of the messages), price_agent, price_summaries and price) and best (a label, or null).

    Exit status: as for `replay`, of the first column that fails.
    """
    prices = Prices(input=more.pop("price_in"), cached=more.pop("price_cached"), output=more.pop("price_out"))
    asked = Asked(**more)
    with guarded():
        if prices.cached > prices.input:
            raise Refused(
                f"--price-cached {prices.cached:g} is above --price-in {prices.input:g}; cached input costs less"
            )
        name, columns = _replayed(session, sets, asked)
    if as_json:
        print_json(as_data(name, columns, prices))
    else:
        with printing() as out:
            print_comparison(out, name, columns, prices)
    end(*(column.result for column in columns))


def _replayed(session: str, sets: tuple[str, ...], asked: Asked) -> tuple[str, list[Column]]:
    """The name of the recording, and its columns."""
    asked.check()
    configs = _configs(sets)
    recording = opened(session)
    if len(sets) == 1:
        notes([f"only one --config is given; column A shows the {DEFAULTS}"])
    columns = [
        _column(label, source, settings, recording, asked)
        for label, (source, settings) in zip(ascii_uppercase, configs, strict=False)
    ]
    return recording.name, columns


def _configs(sets: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """(what was named, settings) of each column; every one is checked before the first replay."""
    named = sets if len(sets) > 1 else (DEFAULTS, *sets)
    if len(named) > _MOST:
        raise Refused(f"{len(named)} times --config; at most {_MOST} columns are compared")
    if len(sets) == 1 and sets[0].strip() in ("", DEFAULTS):
        raise Refused(f"--config {DEFAULTS} alone is compared with nothing; add another --config")
    configs = [(given.strip() or DEFAULTS, dict(read_set(given))) for given in named]
    for _, settings in configs:
        Config.from_mapping(settings)
    return configs


def _column(label: str, source: str, settings: dict[str, Any], recording: Recording, asked: Asked) -> Column:
    config = replace(Config.from_mapping(settings), cache="memory")
    result = play(recording, config, asked, f"{label}: replaying")
    return Column(label, source, settings, result, kept_at_end(result))
