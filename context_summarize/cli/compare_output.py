"""What `context-summarize compare` prints: a column for each config and the better one, or the `--json` object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from context_summarize.cli.replay_output import NO_ASSISTANT, window_to_see_some
from context_summarize.cli.terminal import heading, one_line, plain, sentence, table
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.comparison import Column, Prices, cheapest, nothing_compacted
from context_summarize.transcript.wording import counted

_ENOUGH = 1_000
"""Terminal columns that are enough for any table."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """One line of the table."""

    name: str
    of: Callable[[Column], float | None]
    shown: Callable[[float], str]
    better: Literal["less", "more", "neither"] = "less"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _dollars(value: float) -> str:
    return f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def _figures(prices: Prices) -> Iterator[_Figure]:
    yield _Figure("Requests", lambda column: column.result.requests, _whole, "neither")
    yield _Figure("Compactions", lambda column: len(column.result.boundaries), _whole, "neither")
    yield _Figure("Mean request", lambda column: column.result.mean_view, _whole, "neither")
    yield _Figure("Largest request", lambda column: column.result.largest_view, _whole, "neither")
    yield _Figure("Agent's tokens in", lambda column: column.read, _whole)
    yield _Figure("  of them cached", lambda column: column.cached_share, _share, "more")
    yield _Figure("Calls for summaries", lambda column: column.result.provider_calls, _whole)
    yield _Figure("  tokens in", lambda column: column.result.provider_input_tokens, _whole)
    yield _Figure("  tokens out", lambda column: column.result.provider_output_tokens, _whole)
    yield _Figure("  made, not shown", lambda column: column.result.unused_summaries, _whole)
    yield _Figure("Values kept", lambda column: column.kept.share if column.kept else None, _share, "more")
    yield _Figure("Price of requests", lambda column: column.agent_price(prices), _dollars)
    yield _Figure("Price of summaries", lambda column: column.summaries_price(prices), _dollars)
    yield _Figure("Price together", lambda column: column.price(prices), _dollars)


def as_data(name: str, columns: Sequence[Column], prices: Prices) -> dict[str, Any]:
    """A comparison as the object that `--json` prints."""
    best = recommended(columns, prices)
    return {
        "file": name,
        "provider": columns[0].result.provider,
        "prices": asdict(prices),
        "columns": [_column_data(column, prices) for column in columns],
        "best": best.label if best else None,
    }


def _column_data(column: Column, prices: Prices) -> dict[str, Any]:
    result = column.result
    named = ("provider_calls", "provider_input_tokens", "provider_output_tokens", "unused_summaries", "coverage")
    return {
        "label": column.label,
        "source": column.source,
        "config": json.loads(json.dumps(dict(column.settings), default=str)),
        "ok": result.failed is None,
        "requests": result.requests,
        "compactions": len(result.boundaries),
        "mean_view": round(result.mean_view, 1),
        "largest_view": result.largest_view,
        "read": column.read,
        "cached_share": round(column.cached_share, 4),
        **{key: getattr(result, key) for key in named},
        "values": column.kept.values if column.kept else 0,
        "values_kept": column.kept.kept if column.kept else 0,
        "price_agent": round(column.agent_price(prices), 6),
        "price_summaries": round(column.summaries_price(prices), 6),
        "price": round(column.price(prices), 6),
    }


def print_comparison(out: Console, name: str, columns: Sequence[Column], prices: Prices) -> None:
    """Print a comparison: what was compared, the table, what it tells and what not, the better config."""
    result = columns[0].result
    out.print()
    sentence(
        out,
        f"{plain(name)}: {counted(result.messages, 'message')}, {result.history_tokens:,} tokens in total, "
        f"{counted(result.requests, 'request')} of at most {result.budget:,} tokens. "
        f"Summaries by {plain(result.provider)}.",
    )
    out.print()
    for column in columns:
        out.print(Text.assemble((f"{column.label}  ", "bold"), one_line(column.source)), soft_wrap=True)
    about = (
        f"Prices: ${prices.input:g} for a million tokens in, ${prices.cached:g} cached, ${prices.output:g} out "
        "(--price-in, --price-cached, --price-out). Percentages beside a figure compare it with A. Green is better, "
        "red is worse. Made, not shown: summaries that were made in advance (prefetch) and that no request shows."
    )
    heading(out, "Comparison", about)
    for shown in _blocks(out, columns, prices):
        out.print(shown)
        out.print()
    sentence(out, _caveat(columns))
    _print_better(out, columns, prices)


def _blocks(out: Console, columns: Sequence[Column], prices: Prices) -> Iterator[Table]:
    """One table; where it is wider than the terminal without percentages, or in parts of fewer columns."""
    for many, percent in ((len(columns), True), *((number, False) for number in range(len(columns), 0, -1))):
        parts = [columns[at : at + many] for at in range(0, len(columns), many)]
        made = [_table(part, columns, prices, percent=percent) for part in parts]
        width = max(out.measure(each, options=out.options.update(width=_ENOUGH)).maximum for each in made)
        if width <= out.width or many == 1:
            yield from made
            return


def _table(shown: Sequence[Column], columns: Sequence[Column], prices: Prices, *, percent: bool) -> Table:
    made = table()
    made.add_column("", no_wrap=True)
    for column in shown:
        made.add_column(column.label, justify="right", no_wrap=True)
    for figure in _figures(prices):
        values = [figure.of(column) for column in columns]
        cells = [_cell(figure, figure.of(column), values, percent=percent) for column in shown]
        made.add_row(Text(figure.name, style="bold" if figure.name == "Price together" else ""), *cells)
    return made


def _cell(figure: _Figure, value: float | None, values: Sequence[float | None], *, percent: bool) -> Text:
    if value is None:
        return Text("–", style="dim")
    cell, first = Text(figure.shown(value)), values[0]
    known = [other for other in values if other is not None]
    lowest, highest = min(known), max(known)
    if figure.shown(lowest) != figure.shown(highest):
        best = lowest if figure.better == "less" else highest
        worst = highest if figure.better == "less" else lowest
        if figure.better == "neither":
            cell.stylize("cyan" if value != first else "")
        elif value in (best, worst):
            cell.stylize("green" if value == best else "red")
    if percent and figure.shown is not _share and first is not None and value != first and first:
        cell.append(f" {value / first - 1:+.0%}", style="dim")
    return cell


def _caveat(columns: Sequence[Column]) -> str:
    text = (
        "The price is measured, the quality is not. Values kept looks at the last request: its summaries hold this "
        "share of the exact values (ids, amounts, paths) of the messages that they replace. What else the summaries "
        "say is not judged. A cheaper config may remember less."
    )
    if columns[0].result.provider == OfflineProvider.name:
        text += " Code wrote the summaries (offline); a model's have other lengths, which moves all figures a little."
    return text


def _print_better(out: Console, columns: Sequence[Column], prices: Prices) -> None:
    best = recommended(columns, prices)
    out.print()
    if best is None:
        sentence(out, _why_none(columns))
        return
    others = [column for column in columns if column.is_sound and column is not best]
    text = f"{best.label} costs least: {_dollars(best.price(prices))}"
    if others:
        following = min(others, key=lambda column: column.price(prices))
        saved = 1 - best.price(prices) / following.price(prices)
        text += f", {saved:.1%} less than {following.label} ({_dollars(following.price(prices))})"
    out.print(Text(f"{text}. By price alone, take:", style="bold"), soft_wrap=True)
    out.print()
    for line in pasted(best.settings):
        out.print(Text(line), soft_wrap=True)


def recommended(columns: Sequence[Column], prices: Prices) -> Column | None:
    """The cheapest column; None if there is none, or if nothing compacted, so that the settings made no difference."""
    return None if nothing_compacted(columns) else cheapest(columns, prices)


def _why_none(columns: Sequence[Column]) -> str:
    if not any(column.is_sound for column in columns):
        return "No config passed: none is recommended."
    if not columns[0].result.requests:
        return f"No config costs less than the others. The reason: {NO_ASSISTANT}"
    if nothing_compacted(columns):
        largest = max((column.result for column in columns), key=lambda result: result.largest_view)
        return f"Nothing compacted in any column: none is recommended. {window_to_see_some(largest)}"
    return "No config costs less than the others."


def pasted(settings: Mapping[str, Any]) -> list[str]:
    """Settings as lines of a session's YAML."""
    head = ["session:", "  context:", "    module: context-summarize"]
    if not settings:
        return [*head, "    config: {}"]
    pairs = [f"      {_key(key)}: {json.dumps(value, default=str)}" for key, value in settings.items()]
    return [*head, "    config:", *pairs]


def _key(key: str) -> str:
    return key if key.isidentifier() else json.dumps(key)
