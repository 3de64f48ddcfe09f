"""What is wrong with settings: values that cannot be, and values that contradict each other, all in one message."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

_NEAR = 0.85
"""Likeness from which on an unknown key is taken for a misspelt one: typing errors are above it, other modules' keys
below."""

DEFAULT_BUDGET = 200_000
"""Tokens, where neither the request, the provider nor a setting names a budget."""


def nearest(key: str, known: Mapping[str, Any]) -> str | None:
    """The setting that a misspelt key means; None for a key of somebody else."""
    key = key.lower()
    slips = (name for name in known if name.startswith(f"{key}_") or _is_slip(key, name))
    return next(iter(difflib.get_close_matches(key, known, n=1, cutoff=_NEAR)), None) or next(slips, None)


def _is_slip(key: str, name: str) -> bool:
    """True if one letter is wrong or two are swapped: too much for the likeness of short names."""
    wrong = [pair for pair in zip(key, name, strict=False) if pair[0] != pair[1]]
    is_swap = len(wrong) == 2 and wrong[0] == wrong[1][::-1]
    return len(key) == len(name) and (len(wrong) == 1 or is_swap)


def wrong_values(error: ValidationError, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with each setting that pydantic refuses: name → one sentence with value and remedy."""
    found: dict[str, str] = {}
    for item in error.errors(include_url=False):
        name = str(item["loc"][0])
        if name in found:  # each type of a union is told by itself
            continue
        if name in known:
            says = next(text for text in known[name].metadata if isinstance(text, str))
            value = given[name]
            found[name] = f"{name} {says.format(value) if value is not None else says.replace('{!r}', 'none')}"
        else:
            meant = nearest(name, known)
            remedy = f"did you mean {meant!r}?" if meant else f"known settings: {', '.join(sorted(known))}"
            found[name] = f"unknown setting {name!r}; {remedy}"
    return found


def contradictions(config: Any, given: Mapping[str, Any], profile: Mapping[str, Any]) -> Iterator[tuple[set[str], str]]:
    """Settings that cannot hold together: their names, and one sentence with their values and a remedy.

    Args:
        given: the settings that the session names; the others are the profile's, or defaults.
        profile: the settings of the profile.
    """

    def shown(name: str) -> str:
        of = "" if name in given else f" (of profile {config.profile!r})" if name in profile else " (the default)"
        value = getattr(config, name)
        return f"{name} {list(value) if isinstance(value, tuple) else value!r}{of}"

    for name in ("summary_provider", "summary_model"):
        if config.summary_model_role and getattr(config, name):
            text = f"{shown('summary_model_role')} and {shown(name)} both say who writes the summaries; leave one out"
            yield {"summary_model_role", name}, text
    window, tokens = config.max_tokens, config.threshold_tokens
    due_at = min(config.threshold_share * (window or math.inf), tokens or math.inf)
    if (config.segment_tokens or 0) > due_at:
        at = f"the {int(due_at):,} tokens at which a compaction is due"
        names = [name for name in ("compact_threshold", "max_tokens") if getattr(config, name)]
        of = ", ".join(map(shown, names))
        text = f"{shown('segment_tokens')} is above {at} ({of}); leave it out to derive it"
        yield {"segment_tokens", *names}, text
    if window and config.compact_threshold == tokens and tokens > window:
        text = f"{shown('compact_threshold')} is above {shown('max_tokens')}; a share such as 0.65 fits any budget"
        yield {"compact_threshold", "max_tokens"}, text
    if config.safety_margin > (window or DEFAULT_BUDGET):
        limit = shown("max_tokens") if window else f"a window of {DEFAULT_BUDGET:,} tokens (the default)"
        yield {"safety_margin", "max_tokens"}, f"{shown('safety_margin')} is above {limit}; leave it out for 1000"


def in_one_message(problems: Sequence[str]) -> str:
    """One problem as it is, several as a list."""
    if len(problems) == 1:
        return problems[0]
    return "\n".join((f"{len(problems)} settings are wrong:", *(f"- {problem}" for problem in problems)))
