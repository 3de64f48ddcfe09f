"""The page of a run with a real model: docs/benchmarks-model.md, written from the run's JSON alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.local_model.calls import SESSION, SUMMARY
from benchmarks.local_model.session import Played, played_of

_HEAD = """\
# With a real model

{model} writes the summaries here: a real language model in llama.cpp's server, on this machine. It is far smaller than
any model that an agent would use. So the page shows that the whole path works with a real engine, what a summary costs
there in seconds, and how much of the engine's prompt cache survives. It does not show how well a good model summarises.

{date}, `make bench-model`, {machine}{threads}. A request holds at most {budget:,} tokens, as `o200k_base` counts them,
of the model's window of {window:,}. Compaction starts at 70 %, and the newest 10 rows are kept, for everyone. The
longest answer is {max_output:,} tokens. Each contestant starts with an empty engine and may take {minutes:g} minutes.
Before each recorded answer, the view goes to the model as the session's own request, which writes one token: there is
no pause for thinking in which summaries could be made unseen.
"""
_FOOT = """\
## How to read it

* *Processed* tokens are those that the engine had to read; *cached* ones stood in its prompt cache. Both are the
  engine's own figures (`usage.prompt_tokens` and `cached_tokens`).
* *Waited* is the time until a request's rows were there. *Wall* is the whole session, the engine's reading included.
* *Gold* is the share of the answers' exact values that stand in the last view. *Near* is the share of those that stand
  within 300 characters of half of their question's telling words. Only questions about rows that were played count:
  compare only contestants that played as many rows.
* *Cut off* answers filled the room that they were given. Peers take what comes. This module refuses an answer that is
  no summary, and a fallback summary by code stands in its place.
* The seed of sampling is fixed, but the order of calls depends on time: repeat a run before you trust a difference.
"""


def page(run: Mapping[str, Any]) -> str:
    """The page.

    Args:
        run: what `__main__` saves.
    """
    all_played = [played_of(told) for told in run["played"]]
    threads = f" ({run['threads']} for the engine)" if run.get("threads") else ""
    parts = [_HEAD.format(**{**run, "threads": threads})]
    for name in dict.fromkeys(played.session for played in all_played):
        parts.append(_session(name, [played for played in all_played if played.session == name]))
    if run.get("missing"):
        parts.append("Not played: " + "; ".join(run["missing"]) + ".\n")
    return "\n".join([*parts, _FOOT])


def _session(name: str, all_played: Sequence[Played]) -> str:
    lines = [f"## {name}", "", _row(["", *(played.title for played in all_played)])]
    lines.append(_row(["---", *("---:" for _ in all_played)]))
    lines += [_row([label, *(show(played) for played in all_played)]) for label, show in _LINES]
    lines += ["", *_validation(all_played)]
    stopped = [f"{played.title} stopped after {played.played} rows: {played.stopped}." for played in all_played]
    lines += [line for line, played in zip(stopped, all_played, strict=True) if played.stopped]
    return "\n".join([*lines, ""])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _validation(all_played: Sequence[Played]) -> list[str]:
    lines = []
    for played in all_played:
        if not played.told:
            continue
        told = played.told
        lines += [
            f"{played.title} ({played.settings}) made {told['summaries']} summaries. Validation refused "
            f"{_counts(told['refused'])}; summaries that could not be had: {_counts(told['failures'])}. In the last "
            f"view stand {told['in_view']} summaries, {told['fallbacks']} of them fallbacks.",
            "",
        ]
    return lines


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × `{word}`" for word, count in sorted(counted.items())) or "none"


def _played_rows(played: Played) -> str:
    return f"{played.played:,} of {played.rows:,}"


def _seconds_each(played: Played) -> str:
    seconds = [call.seconds for call in played.of(SUMMARY) if call.is_answered]
    return f"{fmean(seconds):.1f} (at most {max(seconds):.0f})" if seconds else "-"


def _answers(played: Played) -> str:
    calls = played.of(SUMMARY)
    return f"{len(calls)}, {sum(call.is_answered for call in calls)} answered"


def _cut_off(played: Played) -> str:
    return str(sum(call.finish == "length" for call in played.of(SUMMARY)))


def _tokens(purpose: str) -> Callable[[Played], str]:
    def show(played: Played) -> str:
        calls = played.of(purpose)
        cached = sum(call.cached for call in calls)
        return f"{sum(call.read for call in calls) - cached:,} + {cached:,}"

    return show


def _cached_share(played: Played) -> str:
    calls = played.of(SESSION)
    read = sum(call.read for call in calls)
    return f"{sum(call.cached for call in calls) / read:.0%}" if read else "-"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part} of {whole})" if whole else "-"


_LINES: tuple[tuple[str, Callable[[Played], str]], ...] = (
    ("rows played", _played_rows),
    ("tokens of those", lambda played: f"{played.tokens:,}"),
    ("calls for summaries", _answers),
    ("answers cut off", _cut_off),
    ("seconds a summary", _seconds_each),
    ("tokens written for summaries", lambda played: f"{sum(call.wrote for call in played.of(SUMMARY)):,}"),
    ("processed + cached, summaries", _tokens(SUMMARY)),
    ("processed + cached, session", _tokens(SESSION)),
    ("session's tokens from the cache", _cached_share),
    ("mean request, tokens", lambda played: f"{played.view_tokens:,.0f}"),
    ("requests that the engine refused", lambda played: f"{played.refused_requests} of {played.requests}"),
    ("waited, seconds", lambda played: f"{played.waited:.0f} (at most {played.waited_worst:.0f})"),
    ("wall, seconds", lambda played: f"{played.seconds:.0f}"),
    ("gold", lambda played: _share(played.in_view, played.values)),
    ("near", lambda played: _share(played.near, played.values)),
)
