"""`Config`: defaults, bounds, contradictions, and the errors for wrong settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

import pytest

from context_summarize.config import SETTINGS, Config
from context_summarize.errors import ConfigError
from tests.support.paths import corpus

CASES = [json.loads(line) for line in corpus("settings.jsonl")]
"""Of each setting values that are taken, and values that are refused."""


@pytest.mark.parametrize("given", [None, {}, MappingProxyType({}), asdict(Config())])
def test_nothing_given_makes_the_defaults(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A host without settings passes None or {}; the defaults themselves are settings, and cause no warning."""
    assert Config.from_mapping(given) == Config()
    assert caplog.records == []


def test_there_are_few_settings_and_each_says_what_it_is() -> None:
    """A new setting comes with its text and its wrong values."""
    assert SETTINGS.keys() == {case["setting"] for case in CASES}
    assert len(SETTINGS) <= 24
    for name, item in SETTINGS.items():
        assert (item.description or "").endswith("."), name


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["setting"]))
def test_a_value_is_taken_as_it_is_or_refused_with_key_value_and_remedy(case: dict[str, Any]) -> None:
    """As a key and as a keyword. Nothing is clamped or converted, but a list becomes a tuple."""
    key = case["setting"]
    for value in case["taken"]:
        made = getattr(Config.from_mapping({key: value}), key)
        wanted = tuple(value) if isinstance(value, list) else value
        assert (made, type(made)) == (wanted, type(wanted))
    for value in [*case["refused"], {1: "command"}]:
        with pytest.raises(ConfigError) as refused:
            Config.from_mapping({key: value})
        assert key in str(refused.value)
        assert f"got {'none' if value is None else repr(value)}" in str(refused.value)
        with pytest.raises(ConfigError, match=key):
            Config(**dict[str, Any]({key: value}))


@pytest.mark.parametrize("line", corpus("wrong_settings.jsonl"))
def test_wrong_settings_and_those_that_contradict_each_other_are_told_with_value_and_remedy(line: str) -> None:
    """A default that takes part is called the default, a misspelt key by the one that is meant; all in one message."""
    case = json.loads(line)
    with pytest.raises(ConfigError) as refused:
        Config.from_mapping(case["settings"])
    assert str(refused.value) == case["says"]


@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.25, 0.45, 0.8, 1.0])
def test_a_default_never_contradicts_a_setting(threshold: float) -> None:
    """Whatever the threshold, a compaction aims below it."""
    made = Config.from_mapping({"compact_threshold": threshold})
    assert 0 < made.target_usage < threshold
    assert made.share_of_summaries < threshold
    assert replace(made, summary_share=0.05).notes_share == 0.1


@pytest.mark.parametrize(
    ("given", "share", "tokens"),
    [(0.7, 0.7, None), (150_000, 0.9, 150_000), ([0.65, 150_000], 0.65, 150_000), (1, 1, None)],
)
def test_a_threshold_is_a_share_or_tokens_or_the_smaller_of_both(given: Any, share: float, tokens: int | None) -> None:
    """Tokens alone leave a tenth of a window that is smaller."""
    made = Config.from_mapping({"compact_threshold": given})
    assert (made.threshold_share, made.threshold_tokens) == (share, tokens)


def test_a_session_that_swaps_its_context_module_starts_with_the_settings_that_are_left(
    warnings: Callable[[], list[str]],
) -> None:
    """What means the same is in force; one warning names the others and the settings that there are.

    Some keys of other context modules look a little like ours.
    """
    ours: dict[str, Any] = {"max_tokens": 300_000, "compact_threshold": 0.8, "auto_compact": False}
    others: list[Any] = [
        "protected_recent",
        "compaction_strategy",
        "summary_trigger",
        "summarization_model",
        "debug",
        5,
        None,
    ]
    assert Config.from_mapping({**dict.fromkeys(others, 1), **ours}) == Config(**ours)
    [warning] = warnings()
    assert all(str(key) in warning for key in others)
    assert warning.endswith(f"known settings: {', '.join(sorted(SETTINGS))}")
    with pytest.raises(ConfigError, match="unknown setting 'xyzzy'; known settings: announce, "):
        Config(xyzzy=1)  # type: ignore[call-arg]
