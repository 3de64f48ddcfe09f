"""The system prompt of a session whose host makes it anew for every request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from context_summarize.redaction.errors import traceback_of
from context_summarize.tokens.measure import Count, measure

logger = logging.getLogger(__name__)

Factory = Callable[[], Awaitable[str]]


class SystemPrompt:
    """What the host's factory gave last; while there is one, stored system rows are hidden, hook rows aside."""

    def __init__(self, count: Count, redact: bool | Sequence[str] = True) -> None:
        self._count = count
        self._redact = redact
        self._factory: Factory | None = None
        self._text: str | None = None
        self._size: tuple[str, int] = ("", 0)
        """The text that was counted last, and its tokens."""

    def set_factory(self, factory: Factory | None) -> None:
        """Ask this one from now on; None = the stored rows hold again."""
        self._factory, self._text = factory, None

    async def refresh(self) -> None:
        """Ask the factory, if there is one."""
        if self._factory is None:
            return
        try:
            prompt = await self._factory()
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            # Half a session without its instructions is worse than one with those of a moment ago.
            logger.warning(
                "the system prompt factory failed; the last prompt is used: %s", traceback_of(error, self._redact)
            )
            return
        self._text = prompt if isinstance(prompt, str) else None

    @property
    def text(self) -> str | None:
        """The prompt; None while stored rows hold."""
        return self._text if self._factory is not None else None

    @property
    def tokens(self) -> int:
        """Its size, uncorrected."""
        text = self.text or ""
        if text != self._size[0]:
            self._size = (text, measure({"role": "system", "content": text}, self._count))
        return self._size[1]
