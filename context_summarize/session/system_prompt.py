"""The system prompt of a session whose host makes it anew for every request, and the parts of it that keep changing."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.redaction.errors import traceback_of
from context_summarize.tokens.measure import Count, measure

logger = logging.getLogger(__name__)

Factory = Callable[[], Awaitable[str]]

_BLOCK_START = re.compile(r'<system-reminder source="([^"]*)">')
_BLOCK_END = "</system-reminder>"
_Name: TypeAlias = tuple[str, int]
"""The source of a block, and which of its blocks it is, counted from the end."""


class SystemPrompt:
    """What the host's factory gave last; while there is one, stored system rows are hidden, hook rows aside.

    Hooks read the factory, wrap it so that a block of theirs follows the prompt, and set it again. A block that changes
    would make the provider's prompt cache worthless from there on. So once it has changed it is served at the end of
    the request, where hooks place it that have no prompt to write in.
    """

    def __init__(self, count: Count, redact: bool | Sequence[str] = True) -> None:
        self._count = count
        self._redact = redact
        self._factory: Factory | None = None
        self._text: str | None = None
        self._blocks: dict[_Name, str] = {}
        """What each block was last."""
        self._changing: set[_Name] = set()
        """Blocks that have changed between two requests."""
        self._status = ""
        self._sizes: tuple[str, str, int] = ("", "", 0)
        """The prompt and the status that were counted last, and their tokens."""

    @property
    def factory(self) -> Factory | None:
        """Who is asked for the prompt; None = nobody, the stored rows hold."""
        return self._factory

    def set_factory(self, factory: Factory | None) -> None:
        """Ask this one from now on; None = the stored rows hold again."""
        self._factory = factory
        if factory is None:
            self._text, self._status = None, ""

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
        self._text, self._status = self._parted(prompt) if isinstance(prompt, str) else (None, "")

    def _parted(self, prompt: str) -> tuple[str, str]:
        """The prompt without the blocks at its end that keep changing, and these blocks."""
        text, blocks = _split(prompt)
        for name, block in blocks:
            if self._blocks.setdefault(name, block) != block:
                self._blocks[name] = block
                self._changing.add(name)
        steady = [block for name, block in blocks if name not in self._changing]
        changing = [block for name, block in blocks if name in self._changing]
        return "".join([text, *steady]), "".join(changing).strip()

    @property
    def text(self) -> str | None:
        """The prompt; None while stored rows hold."""
        return self._text if self._factory is not None else None

    @property
    def status_row(self) -> JsonRow | None:
        """The blocks that keep changing, as the row that ends a request; None while there are none."""
        if self.text is None or not self._status:
            return None
        return {"role": "user", "content": self._status, "metadata": {"source": SOURCE, "ephemeral": True}}

    @property
    def tokens(self) -> int:
        """The size of all of it, uncorrected."""
        text, status = self.text or "", self.status_row
        counted = (text, self._status)
        if counted != self._sizes[:2]:
            size = measure({"role": "system", "content": text}, self._count)
            self._sizes = (*counted, size + (measure(status, self._count) if status else 0))
        return self._sizes[2]


def _split(prompt: str) -> tuple[str, list[tuple[_Name, str]]]:
    """The prompt without the reminder blocks at its end, and each block with its name and the space before it."""
    text, blocks, seen = prompt, list[tuple[_Name, str]](), Counter[str]()
    while text.rstrip().endswith(_BLOCK_END):
        start = _BLOCK_START.match(text, max(0, text.rfind("<system-reminder ")))
        if start is None or text.count(_BLOCK_END, start.end()) != 1:
            break
        before, source = text[: start.start()].rstrip("\n"), start.group(1)
        blocks.insert(0, ((source, seen[source]), text[len(before) :]))
        seen[source] += 1
        text = before
    return text, blocks
