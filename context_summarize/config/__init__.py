"""The settings of a session, and profiles of them."""

from context_summarize.config.checking import DEFAULT_BUDGET
from context_summarize.config.settings import PROFILES, SETTINGS, Config, Profile, ToolKind

__all__ = ["DEFAULT_BUDGET", "PROFILES", "SETTINGS", "Config", "Profile", "ToolKind"]
