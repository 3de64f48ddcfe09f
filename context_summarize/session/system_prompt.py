"""The system prompt that the host's factory writes anew for every request, and the row that ends a request."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence

from context_summarize.background import within
from context_summarize.messages.rows import SHOWN, SOURCE, JsonRow
from context_summarize.redaction import traceback_of
from context_summarize.tokens.measure import Count, measure

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
        self._count = count
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
        self._measured: tuple[str | None, str] = None, ""
        """The prompt and the status that `tokens` counts."""
        self._lasting: set[str] | None = None
        """The blocks that every prompt so far contains: they stay in the prompt. None before the first prompt."""

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
            self.text, self._reminders = None, ""
            self._measure("")

    async def refresh(self, under_way: str = "") -> None:
        """Asks the factory, if there is one, for the prompt. Only the host's cancellation ends the wait.

        Args:
            under_way: a line on the host's running jobs; "" if there are none.
        """
        if self.factory is not None:
            await self._ask(self.factory)
        self._measure(under_way)

    async def _ask(self, factory: Factory) -> None:
        try:
            prompt = await within(factory, None, self._is_cancelled)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            if not (isinstance(error, TimeoutError) and self._is_cancelled()):
                # The last instructions are better than none.
                trace = traceback_of(error, self._redact)
                logger.warning("the system prompt factory failed; the last prompt is used: %s", trace)
            return
        self.text, self._reminders = self._split(prompt) if isinstance(prompt, str) else (None, "")

    def _measure(self, under_way: str) -> None:
        """Makes the status row; counts the tokens anew if the prompt or the row has changed."""
        status = "\n\n".join(filter(None, (self._reminders, under_way)))
        if (self.text, status) == self._measured:
            return
        self._measured = self.text, status
        metadata = {**SHOWN, "source": SOURCE, "ephemeral": True}  # not lasting: it changes
        self.status = {"role": "user", "content": status, "metadata": metadata} if status else None
        rows = [row for row in ({"role": "system", "content": self.text}, self.status) if row and row["content"]]
        self.tokens = sum(measure(row, self._count) for row in rows)

    def _split(self, prompt: str) -> tuple[str, str]:
        """Returns the prompt without the reminder blocks that do not last; and these blocks, one after the other."""
        blocks = [block[0] for block in _BLOCK.finditer(prompt)]
        lasting = set(blocks) if self._lasting is None else self._lasting.intersection(blocks)
        self._lasting = lasting
        text = _BLOCK.sub(lambda block: block[0] if block[0] in lasting else "", prompt)
        return text, "".join(block for block in blocks if block not in lasting).strip()
