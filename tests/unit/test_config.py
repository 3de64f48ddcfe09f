"""`Config`: defaults, bounds, contradictions, and the errors for wrong settings."""

from __future__ import annotations

import logging
from dataclasses import FrozenInstanceError, asdict, replace
from types import MappingProxyType
from typing import Any

import pytest

from context_summarize.config import PROFILES, SETTINGS, Config, Profile
from context_summarize.errors import ConfigError

DEFAULTS = {
    "profile": "balanced",
    "summary_provider": None,
    "summary_model": None,
    "summary_model_role": None,
    "keep_recent": 10,
    "compact_threshold": (0.65, 90_000),
    "prefetch": True,
    "max_tokens": None,
    "safety_margin": 1000,
    "auto_compact": True,
    "segment_tokens": None,
    "summary_share": "auto",
    "summary_role": "system",
    "notes_share": 0.1,
    "action_tools": None,
    "prompts": "default",
    "shorten_tool_results": "auto",
    "redact": True,
    "max_concurrency": 4,
    "wait_seconds": 60,
    "cache": None,
    "persistence": None,
    "announce": True,
    "recall_tool": False,
}
GOOD: dict[str, list[Any]] = {
    "profile": ["frugal", "verbatim"],
    "summary_provider": ["openai", "none"],
    "keep_recent": [0, 1_000],
    "compact_threshold": [1, 1.0, 0.01, 150_000, [0.65, 150_000]],
    "prefetch": [False],
    "max_tokens": [None, 1_000, 10**9],
    "safety_margin": [0, 5],
    "segment_tokens": [None, 64],
    "summary_share": [0.01, 1, "auto"],
    "summary_role": ["user"],
    "notes_share": [0, 0.5],
    "action_tools": [None, {}, {"deploy": "command"}],
    "prompts": ["/a/folder"],
    "shorten_tool_results": [None, 1, "auto"],
    "redact": [False, [], ["a+"]],
    "max_concurrency": [1],
    "wait_seconds": [0, 0.5],
    "cache": [None, "memory"],
    "persistence": [None, {"path": "/a/file"}],
    "announce": [False],
    "recall_tool": [True],
}
NAN, INF = float("nan"), float("inf")
BAD: dict[str, list[Any]] = {
    "profile": ["lean", "", None, True, ["frugal"]],
    "summary_provider": ["", "  ", 5],
    "summary_model": ["", True],
    "summary_model_role": ["", 1],
    "keep_recent": [-1, 1.5, "10", True, None],
    "compact_threshold": [0, 1.01, 70, "0.7", NAN, [], (0.65,), [150_000, 0.65], [0.65, 70]],
    "prefetch": [0, None],
    "max_tokens": [0, 100, 1.5, "200000", True],
    "safety_margin": [-1, 0.5, None],
    "auto_compact": [0, "true", None],
    "segment_tokens": [63, 512.0, True],
    "summary_share": [0, 1.1, None, NAN, "0.25"],
    "summary_role": ["assistant", "", None, True],
    "notes_share": [-0.01, 0.51, None, NAN],
    "action_tools": ["deploy", {"deploy": "run"}, {1: "command"}],
    "prompts": ["", None],
    "shorten_tool_results": [0, 0.5, "4000", True],
    "redact": [None, "a+", [5]],
    "max_concurrency": [0, 1.5, None],
    "wait_seconds": [-1, INF, NAN, None, "60", True],
    "cache": ["", 5],
    "persistence": ["/a/file", {}, {"path": "x", "other": 1}],
    "announce": [1, "no", None],
    "recall_tool": [1, "yes", None],
}


@pytest.mark.parametrize("given", [None, {}, MappingProxyType({}), DEFAULTS])
def test_nothing_given_makes_the_defaults(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A host without settings passes None or {}; the defaults themselves are settings, and cause no warning."""
    assert asdict(Config.from_mapping(given)) == DEFAULTS
    assert caplog.records == []


def test_there_are_few_settings_and_each_says_what_it_is() -> None:
    """A new setting comes with its text and its wrong values."""
    assert {*SETTINGS} == {*DEFAULTS} == BAD.keys()
    assert len(SETTINGS) <= 24
    for name, item in SETTINGS.items():
        assert (item.description or "").endswith("."), name


@pytest.mark.parametrize("key", GOOD)
def test_a_value_within_its_bounds_is_taken_as_it_is(key: str) -> None:
    """Nothing is clamped or converted; a list of patterns becomes a tuple."""
    for value in GOOD[key]:
        made = getattr(Config.from_mapping({key: value}), key)
        assert made == (tuple(value) if isinstance(value, list) else value)
        assert type(made) is (tuple if isinstance(value, list) else type(value))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_threshold_of_null_is_that_of_the_profile(profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    """A bundle sets it to null, because a mount plan has no way to take a key of another bundle away."""
    assert Config.from_mapping({"profile": profile, "compact_threshold": None}) == Config(profile=profile)
    assert caplog.records == []


@pytest.mark.parametrize("key", BAD)
def test_a_wrong_value_is_refused_with_key_value_and_remedy(key: str) -> None:
    """As a key and as a keyword; `none` as users write it."""
    for value in BAD[key]:
        with pytest.raises(ConfigError) as refused:
            Config.from_mapping({key: value})
        assert key in str(refused.value)
        assert f"got {'none' if value is None else repr(value)}" in str(refused.value)
        with pytest.raises(ConfigError, match=key):
            Config(**dict[str, Any]({key: value}))


@pytest.mark.parametrize("given", ["keep_recent=5", 5, [("keep_recent", 5)]])
def test_what_is_no_mapping_is_refused(given: Any) -> None:
    """A list of pairs is no mapping either."""
    with pytest.raises(ConfigError, match="must be a mapping of settings"):
        Config.from_mapping(given)


def test_a_config_does_not_change_and_its_copies_are_checked() -> None:
    """There is no way around the checks."""
    with pytest.raises(FrozenInstanceError):
        Config().keep_recent = 5  # type: ignore[misc]
    with pytest.raises(ConfigError, match="keep_recent"):
        replace(Config(), keep_recent=-1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"segment_tokens": 4_096, "max_tokens": 8_000, "profile": "frugal"},
            "segment_tokens 4096 is above the 1,760 tokens at which a compaction is due (compact_threshold 0.22 "
            "(of profile 'frugal'), max_tokens 8000); leave it out to derive it",
        ),
        (
            {"compact_threshold": 150_000, "max_tokens": 40_000},
            "compact_threshold 150000 is above max_tokens 40000; a share such as 0.65 fits any budget",
        ),
        (
            {"safety_margin": 9_000, "max_tokens": 8_000},
            "safety_margin 9000 is above max_tokens 8000; leave it out for 1000",
        ),
        (
            {"summary_model_role": "fast", "summary_provider": "openai"},
            "summary_model_role 'fast' and summary_provider 'openai' both say who writes the summaries; leave one out",
        ),
        (
            {"safety_margin": 300_000},
            "safety_margin 300000 is above a window of 200,000 tokens (the default); leave it out for 1000",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given: dict[str, Any], says: str) -> None:
    """Each with its value; a default that takes part is called the default."""
    with pytest.raises(ConfigError) as refused:
        Config.from_mapping(given)
    assert str(refused.value) == says


def test_one_message_tells_all_that_is_wrong() -> None:
    """Misspelt keys, wrong values and contradictions; but none with a value that is wrong by itself."""
    wrong = {"keep_recnt": 5, "max_tokens": 100, "profile": "lean", "wait_seconds": "a", "cache": ""}
    with pytest.raises(ConfigError) as refused:
        Config.from_mapping(wrong)
    head, *lines = str(refused.value).splitlines()
    assert head == "5 settings are wrong:"
    for name in ("keep_recnt", "max_tokens", "profile", "wait_seconds", "cache"):
        assert sum(name in line for line in lines) == 1, name


@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.25, 0.45, 0.8, 1.0])
def test_a_default_never_contradicts_a_setting(threshold: float) -> None:
    """Whatever the threshold, a compaction aims below it."""
    made = Config.from_mapping({"compact_threshold": threshold})
    assert 0 < made.target_usage < threshold
    assert made.share_of_summaries < threshold


@pytest.mark.parametrize(
    ("given", "share", "tokens"),
    [(0.7, 0.7, None), (150_000, 0.9, 150_000), ([0.65, 150_000], 0.65, 150_000), (1, 1, None)],
)
def test_a_threshold_is_a_share_or_tokens_or_the_smaller_of_both(given: Any, share: float, tokens: int | None) -> None:
    """Tokens alone leave a tenth of a window that is smaller."""
    made = Config.from_mapping({"compact_threshold": given})
    assert (made.threshold_share, made.threshold_tokens) == (share, tokens)


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_the_settings_that_it_stands_for(name: Profile) -> None:
    """As a key and as a keyword; a setting beside it overrides it."""
    made = Config.from_mapping({"profile": name})
    assert made == Config(profile=name) == replace(Config(**PROFILES[name]), profile=name)
    assert {key for key in SETTINGS if getattr(made, key) != getattr(Config(), key)} - {"profile"} == {*PROFILES[name]}
    own: dict[str, Any] = {"compact_threshold": 0.95, "keep_recent": 10, "shorten_tool_results": "auto"}
    assert Config.from_mapping({**own, "profile": name}) == replace(made, **own)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("keep_recents", "keep_recent"),
        ("compact_treshold", "compact_threshold"),
        ("compaction_threshold", "compact_threshold"),
        ("Cache", "cache"),
        ("cahce", "cache"),
        ("redcat", "redact"),
        ("cashe", "cache"),
        ("recall", "recall_tool"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_one_that_is_meant(key: str, meant: str) -> None:
    """A typing error is found at mount."""
    with pytest.raises(ConfigError, match=f"unknown setting '{key}'; did you mean '{meant}'"):
        Config.from_mapping({key: 1})
    with pytest.raises(ConfigError, match="unknown setting 'xyzzy'; known settings: action_tools, "):
        Config(xyzzy=1)  # type: ignore[call-arg]


OTHERS: dict[Any, Any] = {
    "protected_recent": 0.3,
    "compaction_strategy": "progressive",
    "summary_trigger": 0.5,
    "summarization_model": "small",
    "debug": True,
    5: 1,
    None: 1,
}
"""Keys of other context modules, some of which look a little like ours, and keys of nobody."""


def test_a_session_that_swaps_its_context_module_starts_with_the_settings_that_are_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What means the same is in force; one warning names the others and the settings that there are."""
    ours: dict[str, Any] = {"max_tokens": 300_000, "compact_threshold": 0.8, "auto_compact": False}
    with caplog.at_level(logging.WARNING):
        made = Config.from_mapping({**OTHERS, **ours})
    assert made == Config(**ours)
    [record] = caplog.records
    assert all(str(key) in record.getMessage() for key in OTHERS)
    assert record.getMessage().endswith(f"known settings: {', '.join(sorted(SETTINGS))}")
