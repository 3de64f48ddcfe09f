"""The settings of a session, and the settings of other context modules that are passed over."""

from context_summarize.config.settings import ALIASES, SETTINGS, Config, ToolKind
from context_summarize.config.siblings import FOREIGN_KEYS, FOREIGN_VALUES, SIBLINGS

__all__ = ["ALIASES", "FOREIGN_KEYS", "FOREIGN_VALUES", "SETTINGS", "SIBLINGS", "Config", "ToolKind"]
