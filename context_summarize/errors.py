"""The tree of errors that this package raises on purpose."""

from __future__ import annotations


def legible(text: str) -> str:
    """Returns the text with escapes in place of control characters, except line ends: people read logs in terminals."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


class ContextSummarizeError(Exception):
    """Base of every error of this package.

    ContextSummarizeError
    ├── ConfigError (ValueError)    a setting is wrong; raised by `Config`, `Config.from_mapping` and `mount()`
    ├── TemplateError               a prompt set is incomplete; raised by `load_prompts` and `mount()`
    ├── MessageError (ValueError)   a row cannot be kept; raised by `add_message` and `set_messages`
    ├── SummaryUnavailable          no summary could be made for one key; nothing has changed
    ├── StoreUnavailable            a store of summaries cannot be read or written; nothing has changed
    ├── RecallError (ValueError)    a query cannot be answered; raised by `recall`, and shown to the model by the tool
    ├── SteeringError (ValueError)  a user's change of the view is refused; raised by `undo`, `pin` and `unpin`
    └── CommandError                a recording, a provider or a report that a command names cannot be used
    """


class ConfigError(ContextSummarizeError, ValueError):
    """A setting is wrong; the text names key, value and remedy."""


class TemplateError(ContextSummarizeError):
    """A prompt set is incomplete or wrong; the text names file and variable."""


class MessageError(ContextSummarizeError, ValueError):
    """A row cannot be kept; the text says what is wrong with it. Nothing has changed."""


class SummaryUnavailable(ContextSummarizeError):
    """No summary could be made for one key. The text may quote a provider's, so it is made legible.

    `kind` is one word for events and logs. With `attempts` 0 the provider was not asked.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        attempts: int = 0,
        retry_in_s: float | None = None,
        permanent: bool = False,
    ) -> None:
        super().__init__(legible(message))
        self.kind = kind
        self.attempts = attempts
        self.retry_in_s = retry_in_s
        self.permanent = permanent


class StoreUnavailable(ContextSummarizeError):
    """A store of summaries cannot be read or written now; the text names it, what was seen and what to do."""


class RecallError(ContextSummarizeError, ValueError):
    """A query cannot be answered; the text says what the model can ask instead."""


class SteeringError(ContextSummarizeError, ValueError):
    """A compaction cannot be taken back, or rows cannot be pinned; the text says why. Nothing has changed."""


class CommandError(ContextSummarizeError):
    """A recording, a provider or a report that a command names cannot be used; the text says why."""
