"""The opening of docs/benchmarks-model.md: what a reader may conclude, in five sentences made from a run's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmarks.local_model.calls import SESSION, SUMMARY, Call
from benchmarks.local_model.contestants import OURS
from benchmarks.local_model.server import Engine
from benchmarks.local_model.session import Mark, Played
from context_summarize.summaries.validation import REASONS
from context_summarize.transcript.wording import counted

_SMALL = "135 million parameters, far smaller than any model that an agent would use"
"""Of the model that `make model` installs."""
_FAILED: Mapping[str, str] = {
    **REASONS,
    "timeout": "there was no answer in time",
    "too_large": "the request did not fit the model's window",
    "unavailable": "the engine did not answer",
    "breaker_open": "the engine was not asked, because it had failed before",
}


def conclusions(model: str, all_played: Sequence[Played]) -> list[str]:
    """Five sentences, or one that says why there are none."""
    ours = [played for played in all_played if played.contestant == OURS]
    if not any(played.requests for played in ours):
        return ["This module played no session in this run, so there is nothing to conclude."]
    told = (_path(model, ours), _cost(ours), _cache(all_played), _compared(all_played), _cannot(model))
    return [f"{number}. {sentence}" for number, sentence in enumerate(told, 1)]


def last_common_mark(all_played: Sequence[Played]) -> list[Mark] | None:
    """A mark for each contestant of one session: the last one that all of them reached; None if there is none."""
    common = set.intersection(*({mark.rows for mark in played.marks} for played in all_played)) if all_played else set()
    if not common:
        return None
    last = max(common)
    return [next(mark for mark in played.marks if mark.rows == last) for played in all_played]


def in_words(kinds: Counter[str]) -> str:
    """How often each kind of refusal or failure occurred, in words, the most frequent first."""
    told = (f"{count} × {_FAILED.get(kind, 'failed')} (`{kind}`)" for kind, count in kinds.most_common())
    return "; ".join(told) or "none"


def kinds_of(all_played: Sequence[Played], name: str) -> Counter[str]:
    """The kinds that this module told under `refused` or `failures`, over several sessions."""
    return Counter({}) + sum((Counter(played.told.get(name, {})) for played in all_played), Counter[str]())


def by_session(all_played: Sequence[Played]) -> dict[str, list[Played]]:
    """The contestants of each session."""
    names = dict.fromkeys(played.session for played in all_played)
    return {name: [played for played in all_played if played.session == name] for name in names}


def _calls(all_played: Sequence[Played], purpose: str) -> list[Call]:
    return [call for played in all_played for call in played.of(purpose)]


def _path(model: str, ours: Sequence[Played]) -> str:
    where = " and ".join(f"{one.tokens:,} tokens of {one.session}" for one in ours)
    refused, requests = sum(one.refused_requests for one in ours), sum(one.requests for one in ours)
    made = sum(one.told.get("summaries", 0) for one in ours)
    shown, fallbacks = (sum(one.told.get(name, 0) for one in ours) for name in ("in_view", "fallbacks"))
    return (
        f"**The path works:** this module played {where} with {model} in a real engine, which refused {refused} of"
        f" {requests} requests; the model wrote {counted(made, 'summary', 'summaries')}, and code wrote {fallbacks}"
        f" of the {shown} that the last requests show."
    )


def _cost(ours: Sequence[Played]) -> str:
    answers = [call for call in _calls(ours, SUMMARY) if call.is_answered]
    if not answers:
        return "**Seconds and refusals:** no summary was asked for, or none was answered."
    refused = kinds_of(ours, "refused")
    often = [kind for kind, _ in refused.most_common(1)]
    why = f", most often because {_FAILED.get(often[0], often[0])}" if often else ""
    mean = fmean(call.seconds for call in answers)
    return (
        f"**Seconds and refusals:** the model took {mean:.0f} seconds on average for an answer to this module's"
        f" requests for summaries, and validation refused {refused.total()} of {len(answers)} answers{why}."
    )


def _cache(all_played: Sequence[Played]) -> str:
    told = []
    for name in dict.fromkeys(played.title for played in all_played):
        calls = _calls([played for played in all_played if played.title == name], SESSION)
        if read := sum(call.read for call in calls):
            told.append(f"{sum(call.cached for call in calls) / read:.0%} with {name}")
    shares = ", ".join(told) or "nothing, as no request was answered"
    return f"**Prompt cache:** of the tokens of the session's own requests, the engine took from its cache: {shares}."


def _compared(all_played: Sequence[Played]) -> str:
    told = list(_at_marks(all_played))
    if not told:
        return "**Compared:** no two libraries reached a common point of a session, so nothing can be compared."
    return f"**Compared:** at the last point that all reached, the next request held {'; '.join(told)}."


def _at_marks(all_played: Sequence[Played]) -> Iterator[str]:
    """Of each session that more than one contestant played."""
    for name, played in by_session(all_played).items():
        marks = last_common_mark(played) if len(played) > 1 else None
        if marks and marks[0].values:
            held = ", ".join(
                f"{mark.in_view} with {one.title} ({mark.near} near)" for one, mark in zip(played, marks, strict=True)
            )
            yield f"of {marks[0].values} exact values after {marks[0].tokens:,} tokens of {name}: {held}"


def _cannot(model: str) -> str:
    size = f" ({_SMALL})" if model == Engine().model else ""
    return (
        f"**Not shown:** {model}{size} copies, repeats and invents, so the run cannot show how well a good model"
        " summarises or how well an agent continues; and a few values of two sessions, played once, cannot rank"
        " libraries."
    )
