"""Profiles: sets of settings under one name, each of which a single setting of the session overrides."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

Profile = Literal["balanced", "lean", "frugal", "verbatim"]
"""From the defaults over smaller and the smallest requests to the most words as they were said."""

DEFAULT_PROFILE: Profile = "balanced"

PROFILES: Mapping[Profile, Mapping[str, Any]] = MappingProxyType(
    {
        "balanced": MappingProxyType({}),
        "lean": MappingProxyType(
            {
                "keep_recent": 4,
                "compact_threshold": 0.3,
                "target_usage": 0.15,
                "summary_tokens": 200,
                "summary_share": 0.225,
                "fan_in": 5,
            }
        ),
        "frugal": MappingProxyType(
            {
                "keep_recent": 4,
                "compact_threshold": 0.22,
                "target_usage": 0.1,
                "summary_tokens": 160,
                "summary_share": 0.165,
                "fan_in": 4,
            }
        ),
        "verbatim": MappingProxyType(
            {
                "keep_recent": 20,
                "compact_threshold": 0.8,
                "target_usage": 0.5,
                "elide_tool_results": None,
            }
        ),
    }
)
"""Settings of each profile that differ from the defaults."""

PROFILE_NAMES: tuple[Profile, ...] = get_args(Profile)


def with_profile(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings over those of the profile that they name; whoever checks them refuses an unknown name."""
    name = given.get("profile", DEFAULT_PROFILE)
    return {**next((PROFILES[known] for known in PROFILE_NAMES if known == name), {}), **given}
