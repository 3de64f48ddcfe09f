"""An Amplifier context manager for day-long sessions: it keeps the whole history and sends a summarised view."""

__version__ = "0.1.0"

from context_summarize.config import Config
from context_summarize.errors import ConfigError, ContextSummarizeError, MessageError, SummaryUnavailable, TemplateError
from context_summarize.module import mount, on_session_ready
from context_summarize.providers.of_function import provider_of
from context_summarize.session.manager import SummarizingContextManager

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
    "provider_of",
]
