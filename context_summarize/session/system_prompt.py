"""The system prompt of a session whose host makes it anew for every request, and the reminders that it holds."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence

from context_summarize.background import within
from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.redaction import traceback_of
from context_summarize.tokens.measure import Count, measure

logger = logging.getLogger(__name__)

Factory = Callable[[], Awaitable[str]]

_BLOCK = re.compile(
    r"(?<!\n)\n*<system-reminder(?: [^<>]*)?>(?:(?!<system-reminder(?: [^<>]*)?>)[\s\S])*?</system-reminder>"
)
"""A reminder block and the line breaks before it. Its tag may also stand in the prompt's text, without an end."""


class SystemPrompt:
    """The last prompt of the host's factory; while there is one, stored system rows are hidden, hook rows aside.

    Hooks read the factory, wrap it so that the prompt has a reminder block of theirs, and set it again. A block that
    changes would make the provider's prompt cache worthless from there on. So reminder blocks are served at the end of
    the request, where hooks place them that have no prompt to write in.
    """

    def __init__(
        self, count: Count, redact: bool | Sequence[str] = True, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._count = count
        self._redact = redact
        self._is_cancelled = is_cancelled
        self.factory: Factory | None = None
        """Who is asked for the prompt; None = nobody, the stored rows hold."""
        self.text: str | None = None
        """The prompt without reminder blocks; None while stored rows hold."""
        self.tokens = 0
        """The size of it and of the status row, uncorrected."""
        self.status: JsonRow | None = None
        """The reminder blocks, as the row that ends a request; None while there are none."""
        self._lasting: set[str] | None = None
        """Blocks of the first prompt that every later one has held too: they stay in it. It only shrinks."""

    def set_factory(self, factory: Factory | None) -> None:
        """Asks this one from now on; None = the stored rows hold again.

        Raises:
            TypeError: it cannot be called.
        """
        if factory is not None and not callable(factory):
            raise TypeError(
                f"factory must be an async function that returns the system prompt, or None; got {factory!r}"
            )
        self.factory = factory
        if factory is None:
            self._show(None, "")

    async def refresh(self) -> None:
        """Asks the factory, if there is one, for as long as it takes; the host's cancellation ends the wait."""
        if self.factory is None:
            return
        try:
            prompt = await within(self.factory, None, self._is_cancelled)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            if not (isinstance(error, TimeoutError) and self._is_cancelled()):
                # Half a session without its instructions is worse than one with those of a moment ago.
                told = traceback_of(error, self._redact)
                logger.warning("the system prompt factory failed; the last prompt is used: %s", told)
            return
        self._show(*(self._parted(prompt) if isinstance(prompt, str) else (None, "")))

    def _show(self, text: str | None, status: str) -> None:
        if (text, status) == (self.text, self.status["content"] if self.status else ""):
            return
        metadata = {"source": SOURCE, "ephemeral": True}
        self.text, self.status = text, {"role": "user", "content": status, "metadata": metadata} if status else None
        rows = [row for row in ({"role": "system", "content": text}, self.status) if row and row["content"]]
        self.tokens = sum(measure(row, self._count) for row in rows)

    def _parted(self, prompt: str) -> tuple[str, str]:
        """Returns a prompt without the reminder blocks that do not last; and these, one after the other."""
        blocks = [block[0] for block in _BLOCK.finditer(prompt)]
        lasting = self._lasting = {*blocks} & (self._lasting if self._lasting is not None else {*blocks})
        text = _BLOCK.sub(lambda block: block[0] if block[0] in lasting else "", prompt)
        return text, "".join(block for block in blocks if block not in lasting).strip()
