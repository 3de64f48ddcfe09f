"""Profiles: sets of settings under one name, each of which a single setting of the session overrides."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

Profile = Literal["balanced", "frugal", "verbatim"]
"""The defaults, the smallest requests, and the most words as they were said."""

DEFAULT_PROFILE: Profile = "balanced"

PROFILES: Mapping[Profile, Mapping[str, Any]] = MappingProxyType(
    {
        "balanced": MappingProxyType({}),
        "frugal": MappingProxyType({"keep_recent": 4, "compact_threshold": 0.22}),
        "verbatim": MappingProxyType({"keep_recent": 20, "compact_threshold": 0.8, "shorten_tool_results": None}),
    }
)
"""Settings of each profile that differ from the defaults."""

PROFILE_NAMES: tuple[Profile, ...] = get_args(Profile)


def settings_of(profile: Any) -> Mapping[str, Any]:
    """The settings of a profile; none for what is no name of one, which whoever checks the settings refuses."""
    return next((PROFILES[known] for known in PROFILE_NAMES if known == profile), {})
