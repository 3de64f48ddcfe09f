"""`Config`: defaults, bounds, other names of settings, and the errors for wrong ones."""

from __future__ import annotations

import itertools
import logging
from dataclasses import FrozenInstanceError, asdict, replace
from types import MappingProxyType
from typing import Any

import pytest

from context_summarize.config import (
    PROFILES,
    SETTINGS,
    Config,
    Profile,
)
from context_summarize.errors import ConfigError

DEFAULTS = {
    "profile": "balanced",
    "summary_provider": None,
    "summary_model": None,
    "keep_recent": 10,
    "compact_threshold": (0.65, 100_000),
    "target_usage": None,
    "prefetch": True,
    "max_tokens": None,
    "safety_margin": 1000,
    "auto_compact": True,
    "compaction_strategy": "summarize",
    "preserve_system": True,
    "segment_tokens": None,
    "summary_tokens": None,
    "summary_share": 0.28,
    "fan_in": 6,
    "notes_share": 0.1,
    "action_tools": None,
    "summary_role": "system",
    "prompts": "default",
    "redact": True,
    "max_concurrency": 4,
    "wait_seconds": 60,
    "request_timeout": 120,
    "cache_ttl_seconds": None,
    "retry_attempts": 3,
    "cache": None,
    "persistence": None,
    "recall_tool": False,
    "context_tool": False,
    "debug": False,
}
"""The documented defaults; the default of `elide_tool_results` depends on the budget."""

GOOD: dict[str, list[Any]] = {
    "profile": ["balanced", "lean", "frugal", "verbatim"],
    "summary_provider": ["openai", None],
    "summary_model": ["small", None],
    "keep_recent": [0, 1, 1_000],
    "compact_threshold": [1, 1.0, 0.31, 1_000, 150_000, (0.65, 150_000)],
    "target_usage": [None, 0.01, 0.44],
    "prefetch": [False],
    "max_tokens": [None, 1, 10**9],
    "safety_margin": [0, 5],
    "auto_compact": [False],
    "compaction_strategy": ["truncate"],
    "preserve_system": [False],
    "segment_tokens": [None, 64, 512],
    "summary_tokens": [None, 16, 400],
    "summary_share": [0.01, 1],
    "fan_in": [2, 9],
    "notes_share": [0, 0.06, 0.5],
    "action_tools": [None, {}, {"deploy": "command"}],
    "summary_role": ["user"],
    "prompts": ["mine", "/a/folder"],
    "elide_tool_results": [None, 1, 4_000],
    "redact": [False, [], ["a+"]],
    "max_concurrency": [1, 64],
    "wait_seconds": [0, 0.5, 600],
    "request_timeout": [0.1, 600],
    "cache_ttl_seconds": [None, 300, 0.5],
    "retry_attempts": [1, 9],
    "cache": [None, "memory", "/a/file"],
    "persistence": [None, {"path": "/a/file"}],
    "recall_tool": [True],
    "context_tool": [True],
    "debug": [True],
}
NAN, INF = float("nan"), float("inf")
BAD: dict[str, list[Any]] = {
    "profile": ["cheap", "Lean", "", None, True, 5, ["lean"]],
    "summary_provider": ["", "  ", 5, ["openai"]],
    "summary_model": ["", 5, True],
    "keep_recent": [-1, 1.5, "10", True, None],
    "compact_threshold": [
        0,
        -0.1,
        1.01,
        70,
        "0.7",
        None,
        True,
        NAN,
        INF,
        1.5e5,
        [],
        (0.65,),
        (150_000, 0.65),
        (1, 2, 3),
    ],
    "target_usage": [0, 0.65, 0.9, "0.3", NAN],
    "prefetch": [0, "yes", None],
    "max_tokens": [0, -1, 1.5, "200000", True],
    "safety_margin": [-1, 0.5, None, "0"],
    "auto_compact": [0, 1, "true", None],
    "compaction_strategy": ["drop", None, ["truncate"]],
    "preserve_system": ["no", 0, None],
    "segment_tokens": [0, 63, 512.0, "512", True],
    "summary_tokens": [0, 15, 400.0, "400"],
    "summary_share": [0, 1.1, -1, None, NAN, "0.25"],
    "fan_in": [1, 0, 2.5, None],
    "notes_share": [-0.01, 0.51, None, "0.1", NAN],
    "action_tools": ["deploy", {"deploy": "run"}, {1: "command"}, ["deploy"]],
    "summary_role": ["assistant", "System", None, 5],
    "prompts": ["", " ", None, 5],
    "elide_tool_results": [0, -1, -2, 0.5, "4000", True],
    "redact": [None, "a+", 1, [5], {"a": 1}],
    "max_concurrency": [0, 1.5, None],
    "wait_seconds": [-1, INF, NAN, None, "60", True],
    "request_timeout": [0, -1, INF, NAN, None, "120"],
    "cache_ttl_seconds": [0, -1, "300", True, float("inf")],
    "retry_attempts": [0, 1.5, None],
    "cache": ["", 5],
    "persistence": ["/a/file", {}, {"file": "x"}, {"path": "x", "other": 1}, []],
    "recall_tool": [1, "yes", None],
    "context_tool": [0, "yes", None],
    "debug": ["true", 0, None],
}


@pytest.mark.parametrize("given", [None, {}, MappingProxyType({})])
def test_nothing_given_makes_the_defaults(given: Any) -> None:
    """A host without config passes None or {}; the defaults are the documented ones."""
    made = asdict(Config.from_mapping(given))
    made.pop("elide_tool_results")
    assert made == DEFAULTS


def test_every_setting_is_tested_and_says_what_it_is() -> None:
    """A new setting comes with its text, its good and its wrong values."""
    assert {*SETTINGS} == {*DEFAULTS, "elide_tool_results"} == GOOD.keys() == BAD.keys()
    for name, item in SETTINGS.items():
        assert (item.description or "").endswith("."), name


@pytest.mark.parametrize("key", GOOD)
def test_a_value_within_its_bounds_is_taken_as_it_is(key: str) -> None:
    """Nothing is clamped or converted; a list of patterns becomes a tuple."""
    for value in GOOD[key]:
        made = getattr(Config.from_mapping({key: value}), key)
        assert made == (tuple(value) if isinstance(value, list) else value)
        assert type(made) is (tuple if isinstance(value, list) else type(value))


@pytest.mark.parametrize("key", BAD)
def test_a_wrong_value_is_refused_with_key_value_and_remedy(key: str) -> None:
    """The message names the key and what was seen; `none` as users write it."""
    for value in BAD[key]:
        with pytest.raises(ConfigError) as refused:
            Config.from_mapping({key: value})
        text = str(refused.value)
        assert key in text
        shown = tuple(value) if isinstance(value, list) and key == "redact" else value
        assert f"got {'none' if shown is None else repr(shown)}" in text
        assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("given", ["keep_recent=5", 5, [("keep_recent", 5)]])
def test_what_is_no_mapping_is_refused(given: Any) -> None:
    """A list of pairs is no mapping either."""
    with pytest.raises(ConfigError, match="must be a mapping of settings"):
        Config.from_mapping(given)


def test_keywords_are_checked_like_a_mapping() -> None:
    """`Config(...)` raises as well; there is no way around the checks."""
    with pytest.raises(ConfigError, match="keep_recent"):
        Config(keep_recent=-1)
    with pytest.raises(ConfigError, match="keep_recent"):
        replace(Config(), keep_recent=-1)
    with pytest.raises(ConfigError, match="unknown setting 'keep_recents'"):
        Config(keep_recents=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Config(5)  # type: ignore[call-arg, arg-type]


def test_a_target_at_or_above_the_threshold_is_refused_with_both_values() -> None:
    """A compaction must free something."""
    for target, threshold in ((0.3, 0.3), (0.5, 0.4)):
        with pytest.raises(ConfigError, match=f"got {target} and {threshold}"):
            Config.from_mapping({"target_usage": target, "compact_threshold": threshold})


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_the_settings_that_it_stands_for(name: Profile) -> None:
    """As a key and as a keyword; a copy keeps them."""
    made = Config.from_mapping({"profile": name})
    assert made == Config(profile=name) == replace(Config(**PROFILES[name]), profile=name) == replace(made)
    assert {key for key in SETTINGS if getattr(made, key) != getattr(Config(), key)} - {"profile"} == {*PROFILES[name]}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compact_threshold", 0.95),
        ("prefetch", False),
        ("summary_tokens", None),
        ("keep_recent", 10),
        ("elide_tool_results", "auto"),
    ],
)
def test_a_single_setting_overrides_that_of_the_profile(name: Profile, key: str, value: Any) -> None:
    """Whatever it is, also none or the default; the others stay those of the profile."""
    made = Config.from_mapping({key: value, "profile": name})
    assert made == replace(Config(profile=name), **{key: value})
    assert getattr(made, key) == value


def test_a_target_above_the_threshold_of_a_profile_names_the_profile() -> None:
    """The threshold is not the user's own."""
    with pytest.raises(ConfigError, match=r"got 0\.6 and 0\.\d+ \(see profile 'frugal'\)"):
        Config(profile="frugal", target_usage=0.6)


def test_profiles_go_from_the_smallest_requests_to_the_most_verbatim() -> None:
    """Each has a larger trigger than the one before."""
    made = [Config(profile=name) for name in ("frugal", "lean", "balanced", "verbatim")]
    for smaller, larger in itertools.pairwise(made):
        assert smaller.threshold_share < larger.threshold_share


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("keep_recents", "keep_recent"),
        ("compact_treshold", "compact_threshold"),
        ("compaction_threshold", "compact_threshold"),
        ("summary_modell", "summary_model"),
        ("Debug", "debug"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_one(key: str, nearest: str) -> None:
    """A typing error is found at mount."""
    with pytest.raises(ConfigError, match=f"unknown setting '{key}'; did you mean '{nearest}'"):
        Config.from_mapping({key: 1})


OTHERS: dict[Any, Any] = {
    "protected_recent": 0.3,
    "protected_tool_results": 5,
    "target_threshold": 0.5,
    "max_tokens_fallback": 8_000,
    "summary_call_mode": "fork",
    "summary_target_tokens": 500,
    "separate_summary_provider": "small",
    "xyzzy": 1,
    5: 1,
    None: 1,
}
"""Keys of other context modules, some of which look a little like ours, and keys of nobody."""


def test_a_session_that_swaps_its_context_module_starts_with_the_settings_that_are_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What means the same is in force; one warning names the others, and the page that tells of them."""
    ours: dict[str, Any] = {"max_tokens": 300_000, "compact_threshold": 0.8, "auto_compact": False}
    with caplog.at_level(logging.WARNING):
        made = Config.from_mapping({**OTHERS, **ours})
    assert made == Config(**ours)
    [record] = caplog.records
    assert all(str(key) in record.getMessage() for key in OTHERS)
    assert "docs/migration.md" in record.getMessage()


@pytest.mark.parametrize(
    ("given", "share", "tokens"),
    [(0.7, 0.7, None), (150_000, 0.9, 150_000), ([0.65, 150_000], 0.65, 150_000), (1, 1, None)],
)
def test_a_threshold_is_a_share_or_tokens_or_the_smaller_of_both(given: Any, share: float, tokens: int | None) -> None:
    """Tokens alone leave a tenth of a window that is smaller."""
    made = Config.from_mapping({"compact_threshold": given})
    assert (made.threshold_share, made.threshold_tokens) == (share, tokens)


def test_settings_of_our_own_cause_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is said when nothing is odd."""
    with caplog.at_level(logging.DEBUG):
        Config.from_mapping(DEFAULTS)
    assert caplog.records == []


def test_a_config_does_not_change() -> None:
    """It is frozen."""
    with pytest.raises(FrozenInstanceError):
        Config().keep_recent = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "key", ["target_usage", "cache_ttl_seconds", "max_tokens", "segment_tokens", "elide_tool_results"]
)
@pytest.mark.parametrize("word", ["none", "None", None])
def test_none_may_be_written_as_a_word(key: str, word: str | None) -> None:
    """In YAML `none` is a text, and what our pages call it."""
    assert getattr(Config.from_mapping({key: word}), key) is None


def test_a_provider_may_be_called_none() -> None:
    """For a setting that takes a name, the word is a name."""
    assert Config.from_mapping({"summary_provider": "none"}).summary_provider == "none"
