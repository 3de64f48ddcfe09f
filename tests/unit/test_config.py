"""`Config`: defaults, bounds, other names of settings, and the errors for wrong ones."""

from __future__ import annotations

import itertools
import logging
import re
from dataclasses import FrozenInstanceError, asdict, replace
from types import MappingProxyType
from typing import Any

import pytest

from context_summarize.config import (
    ALIASES,
    FOREIGN_KEYS,
    FOREIGN_VALUES,
    PROFILES,
    SETTINGS,
    SIBLINGS,
    Config,
    Profile,
)
from context_summarize.config.siblings import READ_ON
from context_summarize.errors import ConfigError

DEFAULTS = {
    "profile": "balanced",
    "summary_provider": None,
    "summary_model": None,
    "keep_recent": 10,
    "compact_threshold": 0.45,
    "target_usage": 0.2,
    "prefetch_threshold": 0.3,
    "max_tokens": None,
    "safety_margin": 1000,
    "auto_compact": True,
    "compaction_strategy": "summarize",
    "preserve_system": True,
    "segment_tokens": None,
    "summary_tokens": None,
    "summary_share": 0.28,
    "fan_in": 6,
    "action_share": 0.03,
    "action_tools": None,
    "min_fold": 0.1,
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
    "compact_threshold": [1, 1.0, 0.31],
    "target_usage": [0.01, 0.44],
    "prefetch_threshold": [None, 1, 0.01],
    "max_tokens": [None, 1, 10**9],
    "safety_margin": [0, 5],
    "auto_compact": [False],
    "compaction_strategy": ["truncate"],
    "preserve_system": [False],
    "segment_tokens": [None, 64, 512],
    "summary_tokens": [None, 16, 400],
    "summary_share": [0.01, 1],
    "fan_in": [2, 9],
    "action_share": [0, 0.01, 0.03],
    "action_tools": [None, {}, {"deploy": "command"}],
    "min_fold": [0, 0.0, 1],
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
    "compact_threshold": [0, -0.1, 1.01, 70, "0.7", None, True, NAN, INF],
    "target_usage": [0, 0.45, 0.9, "0.3", None, NAN],
    "prefetch_threshold": [0, -1, 1.1, "0.5", True, NAN],
    "max_tokens": [0, -1, 1.5, "200000", True],
    "safety_margin": [-1, 0.5, None, "0"],
    "auto_compact": [0, 1, "true", None],
    "compaction_strategy": ["drop", None, ["truncate"]],
    "preserve_system": ["no", 0, None],
    "segment_tokens": [0, 63, 512.0, "512", True],
    "summary_tokens": [0, 15, 400.0, "400"],
    "summary_share": [0, 1.1, -1, None, NAN, "0.25"],
    "fan_in": [1, 0, 2.5, None],
    "action_share": [-0.01, 0.031, None, "0.03", NAN],
    "action_tools": ["deploy", {"deploy": "run"}, {1: "command"}, ["deploy"]],
    "min_fold": [-0.1, 1.1, None, NAN, "0.1"],
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


def pairs(values: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(key, value) for key, many in values.items() for value in many]


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


@pytest.mark.parametrize(("key", "value"), pairs(GOOD))
def test_a_value_within_its_bounds_is_taken_as_it_is(key: str, value: Any) -> None:
    """Nothing is clamped or converted; a list of patterns becomes a tuple."""
    made = getattr(Config.from_mapping({key: value}), key)
    assert made == (tuple(value) if isinstance(value, list) else value)
    assert type(made) is (tuple if isinstance(value, list) else type(value))


@pytest.mark.parametrize(("key", "value"), pairs(BAD))
def test_a_wrong_value_is_refused_with_key_value_and_remedy(key: str, value: Any) -> None:
    """The message names the key and what was seen; `none` as users write it."""
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
    with pytest.raises(ConfigError, match="unknown setting 'keep_recents'; did you mean 'keep_recent'"):
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
        ("compaction_threshold", 0.95),
        ("prefetch_threshold", None),
        ("summary_tokens", None),
        ("keep_recent", 10),
        ("elide_tool_results", "auto"),
    ],
)
def test_a_single_setting_overrides_that_of_the_profile(name: Profile, key: str, value: Any) -> None:
    """Whatever it is, also none, the default or another name; the others stay those of the profile."""
    made, ours = Config.from_mapping({key: value, "profile": name}), ALIASES.get(key, key)
    assert made == replace(Config(profile=name), **{ours: value})
    assert getattr(made, ours) == value


def test_a_target_above_the_threshold_of_a_profile_names_the_profile() -> None:
    """The threshold is not the user's own."""
    with pytest.raises(ConfigError, match=r"got 0\.6 and 0\.\d+ \(see profile 'frugal'\)"):
        Config(profile="frugal", target_usage=0.6)


def test_profiles_go_from_the_smallest_requests_to_the_most_verbatim() -> None:
    """Each has a larger trigger and target than the one before, and background work starts between the two."""
    made = [Config(profile=name) for name in ("frugal", "lean", "balanced", "verbatim")]
    for smaller, larger in itertools.pairwise(made):
        assert smaller.compact_threshold < larger.compact_threshold
        assert smaller.target_usage < larger.target_usage
    for config in made:
        assert config.target_usage < (config.prefetch_threshold or 0) < config.compact_threshold


def test_the_other_name_of_the_threshold_is_taken() -> None:
    """Sibling modules call it compaction_threshold."""
    assert ALIASES == {"compaction_threshold": "compact_threshold"}
    assert Config.from_mapping({"compaction_threshold": 0.9}).compact_threshold == 0.9
    with pytest.raises(ConfigError, match="compact_threshold"):
        Config.from_mapping({"compaction_threshold": 9})


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_both_names_of_one_setting_are_refused_and_named(order: tuple[int, int]) -> None:
    """The message names both, in any order: choosing one would be a guess."""
    given = [("compaction_threshold", 0.8), ("compact_threshold", 0.9)]
    with pytest.raises(ConfigError) as refused:
        Config.from_mapping(dict(given[at] for at in order))
    assert "compaction_threshold" in str(refused.value)
    assert "compact_threshold" in str(refused.value)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("keep_recents", "keep_recent"),
        ("compact_treshold", "compact_threshold"),
        ("compaction_treshold", "compaction_threshold"),
        ("summary_modell", "summary_model"),
        ("Debug", "debug"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_one(key: str, nearest: str) -> None:
    """A typing error is found at mount."""
    with pytest.raises(ConfigError, match=f"unknown setting '{key}'; did you mean '{nearest}'"):
        Config.from_mapping({key: 1})


@pytest.mark.parametrize("key", ["xyzzy", 5, None])
def test_an_unknown_setting_that_is_near_to_none_lists_them_all(key: Any) -> None:
    """The whole choice is shown."""
    with pytest.raises(ConfigError, match=r"known settings: action_share, .*auto_compact, .*wait_seconds"):
        Config.from_mapping({key: 1})


def test_settings_of_sibling_modules_are_named_once_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """A bundle that swaps its context module still has them: one warning names ours."""
    with caplog.at_level(logging.WARNING):
        made = Config.from_mapping({**dict.fromkeys(FOREIGN_KEYS, 5), "keep_recent": 4})
    assert made == Config(keep_recent=4)
    [record] = caplog.records
    for key, ours in FOREIGN_KEYS.items():
        assert f"{key} (here: {ours})" in record.getMessage()
    assert {"protected_recent", "truncate_chars", "token_meter", "storage_path"} <= FOREIGN_KEYS.keys()


CONTEXT_SIMPLE = {
    "max_tokens": 300_000,
    "compact_threshold": 0.8,
    "target_usage": 0.5,
    "auto_compact": True,
    "protected_recent": 0.3,
    "protected_tool_results": 5,
    "truncate_chars": 250,
    "compaction_notice_enabled": True,
    "compaction_notice_token_reserve": 800,
    "compaction_notice_verbosity": "normal",
    "compaction_notice_min_level": 1,
    "output_reserve_fraction": 0.5,
    "token_meter": "hybrid",
    "max_tool_result_bytes": 131_072,
    "compaction_strategy": "progressive",
}
"""What microsoft/amplifier-module-context-simple reads in its mount(), at commit ee15e50."""

CONTEXT_MANAGED = {
    "engine": "boundary",
    "durable_checkpoints": True,
    "archive_recovery": True,
    "summarize_trigger": 0.7,
    "summary_max_output_tokens": 8_192,
    "native_compaction": True,
    "pressure_warning": 0.7,
    "emergency_fallback": 0.92,
    "emergency_target_usage": 0.5,
    "summarization_retries_before_fallback": 3,
}
"""What microsoft/amplifier-bundle-context-managed reads, at commits d11ba8c and 036d1e0."""


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (CONTEXT_SIMPLE, Config(max_tokens=300_000, compact_threshold=0.8, target_usage=0.5)),
        (CONTEXT_MANAGED, Config()),
        ({"compaction_strategy": "summary", "summary_call_mode": "fork"}, Config()),
    ],
)
def test_a_session_that_swaps_its_context_module_starts_with_the_settings_that_are_left(
    there: dict[str, Any], here: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys and values of the other module are passed over; what means the same is in force; one warning names them."""
    assert Config.from_mapping(there) == here
    [record] = caplog.records
    ignored = {key for key in there if key in FOREIGN_KEYS or key in FOREIGN_VALUES}
    assert all(key in record.getMessage() for key in ignored)


def test_the_table_of_siblings_says_when_and_where_it_was_read() -> None:
    """No key is one of ours, and each has one place."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", READ_ON)
    keys = [key for sibling in SIBLINGS.values() for key in sibling.keys]
    assert len(keys) == len(set(keys))
    assert not set(keys) & {*SETTINGS, *ALIASES}
    for sibling in SIBLINGS.values():
        assert re.match(r"[\w-]+/[\w-]+ [0-9a-f]{7}", sibling.source)
    assert set(FOREIGN_VALUES) <= set(SETTINGS)


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
    "key", ["prefetch_threshold", "cache_ttl_seconds", "max_tokens", "segment_tokens", "elide_tool_results"]
)
@pytest.mark.parametrize("word", ["none", "None", None])
def test_none_may_be_written_as_a_word(key: str, word: str | None) -> None:
    """In YAML `none` is a text, and what our pages call it."""
    assert getattr(Config.from_mapping({key: word}), key) is None


def test_a_provider_may_be_called_none() -> None:
    """For a setting that takes a name, the word is a name."""
    assert Config.from_mapping({"summary_provider": "none"}).summary_provider == "none"
