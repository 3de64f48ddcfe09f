"""The page of a run with a real model: docs/benchmarks-model.md, written from the run's JSON alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.local_model.calls import SESSION, SUMMARY, Call
from benchmarks.local_model.conclusions import by_session, conclusions, in_words, kinds_of, last_common_mark
from benchmarks.local_model.engine import SAMPLING
from benchmarks.local_model.session import MARK_TOKENS, Mark, Played, Terms, played_of
from context_summarize.transcript.wording import counted

_HEAD = """\
## The run

{date}, `{command}`, {machine}{engine}. {model} writes the summaries.
A request holds at most {budget:,} tokens, as `o200k_base` counts them, of the model's window of {window:,}. Compaction
starts at 70 %, and the newest 10 rows are kept, for everyone. The longest answer is {max_output:,} tokens. Each
contestant starts with an empty engine and may take {minutes:g} minutes. Before each recorded answer, the request goes
to the model too, which writes one token: there is no pause for thinking in which summaries could be made unseen.
"""
_FOOT = """\
## How to read it

* *Answers cut off* filled the room that they were given. Other libraries take what comes. This module validates each
  answer, asks again after a refusal, and shows a fallback summary by code if it gets none.
* *Processed* prompt tokens are those that the engine had to read; those *from the cache* stood in its prompt cache.
  Both are the engine's own figures (`usage.prompt_tokens` and `cached_tokens`).
* *Waited* is the time until a request's rows were there. *Wall* is the whole session, the engine's reading included.
* *Gold* is the share of the answers' exact values that stand in the request. *Near* is the share of those that stand
  within 300 characters of half of their question's telling words. Only questions about the rows before that request
  count. So compare contestants that were stopped at different rows only in the table of the last common point: the
  requests are scored after each {every:,} tokens of the session, and at its end.
* The seed of sampling is fixed, but the order of calls depends on time: repeat a run before you trust a difference.
"""


def page(run: Mapping[str, Any]) -> str:
    """The page.

    Args:
        run: what `__main__` saves.
    """
    all_played = [played_of(told) for told in run["played"]]
    parts = ["# With a real model\n", *conclusions(run["model"], all_played), ""]
    parts.append(_HEAD.format(**run, command=_command(run), engine=_engine(run)))
    parts += [_session(name, played) for name, played in by_session(all_played).items()]
    if run.get("missing"):
        parts.append("Not played: " + "; ".join(run["missing"]) + ".\n")
    return "\n".join([*parts, _FOOT.format(every=MARK_TOKENS)])


def _command(run: Mapping[str, Any]) -> str:
    minutes = run["minutes"]
    return (
        "make bench-model" if minutes == Terms().minutes else f"make bench-model MODEL_OPTIONS='--minutes {minutes:g}'"
    )


def _engine(run: Mapping[str, Any]) -> str:
    """How the engine was started, where that was done here."""
    if not run.get("threads"):
        return ""
    return (
        f", llama.cpp's server with {counted(run['threads'], 'thread')}, temperature {SAMPLING['temp']:g}, top_p"
        f" {SAMPLING['top_p']:g} and a penalty of {SAMPLING['penalty_repeat']:g} for repetition"
    )


def _session(name: str, all_played: Sequence[Played]) -> str:
    figures = [(label, [show(played) for played in all_played]) for label, show in _LINES]
    lines = [f"## {name}", "", *_table(all_played, figures), *_validation(all_played)]
    stopped = [f"{played.title} stopped after {played.played} rows: {played.stopped}." for played in all_played]
    lines += [line for line, played in zip(stopped, all_played, strict=True) if played.stopped]
    return "\n".join([*lines, "", *_common(name, all_played)])


def _table(all_played: Sequence[Played], lines: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A Markdown table with a column for each contestant."""
    head = [_row(["", *(played.title for played in all_played)]), _row(["---", *("---:" for _ in all_played)])]
    return [*head, *(_row([label, *cells]) for label, cells in lines), ""]


def _common(name: str, all_played: Sequence[Played]) -> list[str]:
    """Everyone at the last mark that all reached."""
    marks = last_common_mark(all_played)
    if len(all_played) < 2:
        return []
    title = f"### {name}: the last point that all reached"
    if not marks:
        return [title, "", "There is none: a contestant was stopped before its first scored request.", ""]
    told = f"The request after {marks[0].rows} rows ({marks[0].tokens:,} tokens), and what had been spent until then:"
    pairs = list(zip(marks, all_played, strict=True))
    lines = [(label, [show(mark, played) for mark, played in pairs]) for label, show in _MARK_LINES]
    return [title, "", told, "", *_table(all_played, lines)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _validation(all_played: Sequence[Played]) -> list[str]:
    lines = []
    for played in all_played:
        if not played.told:
            continue
        told = played.told
        lines += [
            f"{played.title} ({played.settings}) took {told['summaries']} answers as summaries. Summaries in the"
            f" last request: {told['in_view']}; fallbacks among them: {told['fallbacks']}.",
            "",
            f"* Answers that its validation refused: {in_words(kinds_of([played], 'refused'))}.",
            f"* Summaries that it gave up for now: {in_words(kinds_of([played], 'failures'))}.",
            "",
        ]
    return lines


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


def _processed(purpose: str) -> Callable[[Played], str]:
    return lambda played: f"{sum(call.read - call.cached for call in played.of(purpose)):,}"


def _cached(purpose: str) -> Callable[[Played], str]:
    return lambda played: f"{sum(call.cached for call in played.of(purpose)):,}"


def _cached_share(played: Played) -> str:
    calls = played.of(SESSION)
    read = sum(call.read for call in calls)
    return f"{sum(call.cached for call in calls) / read:.0%}" if read else "-"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part} of {whole})" if whole else "-"


def _before(mark: Mark, played: Played, purpose: str) -> list[Call]:
    """The calls that had begun by then."""
    return [call for call in played.of(purpose) if call.began < mark.seconds]


def _processed_before(mark: Mark, played: Played) -> str:
    calls = [*_before(mark, played, SUMMARY), *_before(mark, played, SESSION)]
    return f"{sum(call.read - call.cached for call in calls):,}"


_LINES: tuple[tuple[str, Callable[[Played], str]], ...] = (
    ("rows played", _played_rows),
    ("tokens of those", lambda played: f"{played.tokens:,}"),
    ("calls for summaries", _answers),
    ("answers cut off", _cut_off),
    ("seconds an answer", _seconds_each),
    ("tokens written for summaries", lambda played: f"{sum(call.wrote for call in played.of(SUMMARY)):,}"),
    ("prompt tokens of summaries, processed", _processed(SUMMARY)),
    ("prompt tokens of summaries, from the cache", _cached(SUMMARY)),
    ("prompt tokens of requests, processed", _processed(SESSION)),
    ("prompt tokens of requests, from the cache", _cached(SESSION)),
    ("share of the requests' tokens from the cache", _cached_share),
    ("mean request, tokens", lambda played: f"{played.view_tokens:,.0f}"),
    ("requests that the engine refused", lambda played: f"{played.refused_requests} of {played.requests}"),
    ("waited, seconds", lambda played: f"{played.waited:.0f} (at most {played.waited_worst:.0f})"),
    ("wall, seconds", lambda played: f"{played.seconds:.0f}"),
    ("gold in the last request", lambda played: _share(played.in_view, played.values)),
    ("near in the last request", lambda played: _share(played.near, played.values)),
)
_MARK_LINES: tuple[tuple[str, Callable[[Mark, Played], str]], ...] = (
    ("gold", lambda mark, _: _share(mark.in_view, mark.values)),
    ("near", lambda mark, _: _share(mark.near, mark.values)),
    ("tokens of the request", lambda mark, _: f"{mark.view_tokens:,}"),
    ("calls for summaries", lambda mark, played: str(len(_before(mark, played, SUMMARY)))),
    ("prompt tokens processed", _processed_before),
    ("waited, seconds", lambda mark, _: f"{mark.waited:.0f}"),
    ("wall, seconds", lambda mark, _: f"{mark.seconds:.0f}"),
)
