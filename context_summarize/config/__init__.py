"""The settings of a session, and profiles of them."""

from context_summarize.config.checking import DEFAULT_BUDGET
from context_summarize.config.profiles import PROFILES, Profile
from context_summarize.config.settings import SETTINGS, Config, ToolKind

__all__ = ["DEFAULT_BUDGET", "PROFILES", "SETTINGS", "Config", "Profile", "ToolKind"]
