"""The settings of a session, profiles of them, and the settings of other context modules that are passed over."""

from context_summarize.config.profiles import PROFILES, Profile
from context_summarize.config.settings import ALIASES, SETTINGS, Config, ToolKind
from context_summarize.config.siblings import FOREIGN_KEYS, FOREIGN_VALUES, SIBLINGS

__all__ = [
    "ALIASES",
    "FOREIGN_KEYS",
    "FOREIGN_VALUES",
    "PROFILES",
    "SETTINGS",
    "SIBLINGS",
    "Config",
    "Profile",
    "ToolKind",
]
