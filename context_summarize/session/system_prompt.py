"""The system prompt that the host's factory writes anew for every request, and the row that ends a request."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache

from context_summarize.background import within
from context_summarize.messages.rows import SHOWN, SOURCE, JsonRow
from context_summarize.redaction import traceback_of
from context_summarize.tokens.measure import ROW_OVERHEAD, Count

logger = logging.getLogger(__name__)

Factory = Callable[[], Awaitable[str]]

_BLOCK = re.compile(
    r"(?<!\n)\n*<system-reminder(?: [^<>]*)?>(?:(?!<system-reminder(?: [^<>]*)?>)[\s\S])*?</system-reminder>"
)
"""A reminder block and the line breaks before it. The prompt's text may also contain the tag without its end."""


class SystemPrompt:
    """The last prompt of the host's factory. While there is one, it hides stored system rows, except those of hooks.

    Hooks read the factory, wrap it to add a reminder block to the prompt, and set it again. A block that changes
    empties the provider's prompt cache from that place on. So a request ends with the reminder blocks. Hooks that
    do not write into the prompt put their reminders there too.
    """

    def __init__(
        self, count: Count, redact: bool | Sequence[str] = True, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._count = lru_cache(maxsize=4)(count)  # most requests have the prompt and the status of the last one
        self._redact = redact
        self._is_cancelled = is_cancelled
        self.factory: Factory | None = None
        """Returns the prompt; None = requests show the stored system rows."""
        self.text: str | None = None
        """The prompt without reminder blocks; None while requests show the stored system rows."""
        self.tokens = 0
        """Size of the prompt and of the status row, uncorrected."""
        self.status: JsonRow | None = None
        """The row that ends a request: the reminder blocks, and what is under way; None without either."""
        self._reminders = ""

    def set_factory(self, factory: Factory | None) -> None:
        """Sets the factory; None = requests show the stored system rows again.

        Raises:
            TypeError: `factory` cannot be called.
        """
        if factory is not None and not callable(factory):
            raise TypeError(
                f"factory must be an async function that returns the system prompt, or None; got {factory!r}"
            )
        self.factory = factory
        if factory is None:
            self.text, self._reminders, self.status, self.tokens = None, "", None, 0

    async def refresh(self, under_way: str = "") -> None:
        """Asks the factory, if there is one, for the prompt. Only the host's cancellation ends the wait.

        Args:
            under_way: a line on the host's running jobs; "" if there are none.
        """
        if self.factory is not None:
            await self._ask(self.factory)
        status = "\n\n".join(filter(None, (self._reminders, under_way)))
        metadata = {**SHOWN, "source": SOURCE, "ephemeral": True}  # not lasting: it changes
        self.status = {"role": "user", "content": status, "metadata": metadata} if status else None
        self.tokens = sum(ROW_OVERHEAD + self._count(text) for text in (self.text, status) if text)

    async def _ask(self, factory: Factory) -> None:
        try:
            prompt = await within(factory, None, self._is_cancelled)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            if not (isinstance(error, TimeoutError) and self._is_cancelled()):
                # The last instructions are better than none.
                trace = traceback_of(error, self._redact)
                logger.warning("the system prompt factory failed; the last prompt is used: %s", trace)
            return
        is_text = isinstance(prompt, str)
        self.text = _BLOCK.sub("", prompt) if is_text else None
        self._reminders = "".join(block[0] for block in _BLOCK.finditer(prompt)).strip() if is_text else ""
