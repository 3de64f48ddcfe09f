"""An Amplifier context manager for sessions of a whole day: the whole history kept, a summarised view sent."""

from ._version import __version__
from .config import Config
from .errors import ConfigError, ContextSummarizeError, MessageError, SummaryUnavailable, TemplateError
from .manager import SummarizingContextManager
from .module import mount, on_session_ready

__amplifier_module_type__ = "context"

__all__ = [
    "Config",
    "ConfigError",
    "ContextSummarizeError",
    "MessageError",
    "SummarizingContextManager",
    "SummaryUnavailable",
    "TemplateError",
    "__amplifier_module_type__",
    "__version__",
    "mount",
    "on_session_ready",
]
