"""Scores of a result: small functions from a session and its result to a figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from benchmarks.prices import dollars
from benchmarks.run import Result
from benchmarks.sessions import Session
from benchmarks.tokens import Row, count, measure, said, text_of
from benchmarks.words import is_near, places


def scores(session: Session, result: Result) -> dict[str, Any]:
    """Returns all figures by name; shares from 0 to 1, seconds, tokens."""
    return {
        "contestant": result.contestant,
        "session": result.session,
        **(_kept(session, result) if session.facts else {}),
        **asked(session, result.view),
        **dollars(result),
        "breaks": breaks(result),
        "cached": cached(result),
        "waiting": waiting(result),
        "worst_wait": max((one.waited for one in result.requests), default=0.0),
        "view_mean": fmean(one.tokens for one in result.requests),
        "view_last": result.requests[-1].tokens,
        **cpu(result),
        "calls": len(result.calls),
        "read": sum(call.read for call in result.calls),
        "wrote": sum(call.wrote for call in result.calls),
        **faults(result),
        "tokens": result.tokens,
        "seconds": result.seconds,
    }


def _kept(session: Session, result: Result) -> dict[str, float]:
    """Returns the share of the facts in the last view."""
    text = shown(result.view)
    return {"facts": sum(bool(places(text, fact)) for fact in session.facts) / len(session.facts)}


def asked(session: Session, view: Sequence[Row]) -> dict[str, int]:
    """Counts questions whose gold values are all in a view, and those with one near its words."""
    golds = [one for one in session.questions if one.golds]
    if not golds:
        return {}
    found = {"asked": len(golds)}
    text = shown(view)
    found["gold"] = sum(all(places(text, gold) for gold in one.golds) for one in golds)
    found["near"] = sum(any(is_near(text, gold, one.words) for gold in one.golds) for one in golds)
    return found


def shown(rows: Sequence[Row]) -> str:
    """Returns the text of a view."""
    return "\n".join(map(said, rows))


def newest(rows: Sequence[Row], size: int) -> list[Row]:
    """Returns the newest rows of so many tokens together; of the row at the cut it returns the end."""
    kept: list[Row] = []
    for row in reversed(rows):
        tokens = measure(row, count)
        if tokens > size:
            text = text_of(row)
            end = text[len(text) - len(text) * max(0, size) // tokens :]
            return [{"role": row["role"], "content": end}, *kept] if end else kept
        kept.insert(0, row)
        size -= tokens
    return kept


def cached(result: Result) -> float:
    """Returns the share of all tokens of views that a prompt cache holds."""
    return sum(one.cached for one in result.requests) / max(1, sum(one.tokens for one in result.requests))


def breaks(result: Result) -> int:
    """Counts requests that do not begin like the one before them: the compactions of every library."""
    return sum(new.cached < old.tokens for old, new in pairwise(result.requests))


def waiting(result: Result) -> float:
    """Returns the seconds until rows were there, as a share of the model's own latency."""
    return sum(one.waited for one in result.requests) / max(1e-9, sum(one.latency for one in result.requests))


def cpu(result: Result) -> dict[str, float]:
    """Returns the milliseconds of a request with the rows before it, and those that counting took."""
    each = [1_000 * one.cpu for one in result.requests if not one.lost] or [0.0]
    ordered = sorted(each)
    return {
        "cpu_mean": fmean(each),
        "cpu_p50": median(each),
        "cpu_p99": ordered[int(len(ordered) * 0.99)],
        "cpu_counting": 1_000 * fmean(one.cpu_counting for one in result.requests),
    }


def faults(result: Result) -> dict[str, int]:
    """Counts requests that were lost, too large or had a broken pair, and inputs that the summariser refused."""
    return {
        "lost": sum(bool(one.lost) for one in result.requests),
        "over_budget": sum(one.tokens > result.budget for one in result.requests),
        "broken": sum(one.broken > 0 for one in result.requests),
        "refused": sum(call.refused for call in result.calls),
    }
