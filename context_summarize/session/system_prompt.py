"""The system prompt that the host's factory writes anew for every request, and its reminder blocks."""

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
        """The reminder blocks, as the row that ends a request; None while there are none."""
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
            self._set(None, "")

    async def refresh(self) -> None:
        """Asks the factory, if there is one, for the prompt. Only the host's cancellation ends the wait."""
        if self.factory is None:
            return
        try:
            prompt = await within(self.factory, None, self._is_cancelled)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            if not (isinstance(error, TimeoutError) and self._is_cancelled()):
                # The last instructions are better than none.
                trace = traceback_of(error, self._redact)
                logger.warning("the system prompt factory failed; the last prompt is used: %s", trace)
            return
        text, status = self._split(prompt) if isinstance(prompt, str) else (None, "")
        self._set(text, status)

    def _set(self, text: str | None, status: str) -> None:
        if (text, status) == (self.text, self.status["content"] if self.status else ""):
            return
        metadata = {**SHOWN, "source": SOURCE, "ephemeral": True}  # not lasting: it changes
        self.text, self.status = text, {"role": "user", "content": status, "metadata": metadata} if status else None
        rows = [row for row in ({"role": "system", "content": text}, self.status) if row and row["content"]]
        self.tokens = sum(measure(row, self._count) for row in rows)

    def _split(self, prompt: str) -> tuple[str, str]:
        """Returns the prompt without the reminder blocks that do not last; and these blocks, one after the other."""
        blocks = [block[0] for block in _BLOCK.finditer(prompt)]
        lasting = set(blocks) if self._lasting is None else self._lasting.intersection(blocks)
        self._lasting = lasting
        text = _BLOCK.sub(lambda block: block[0] if block[0] in lasting else "", prompt)
        return text, "".join(block for block in blocks if block not in lasting).strip()
