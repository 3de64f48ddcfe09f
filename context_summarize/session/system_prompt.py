"""The system prompt of a session whose host makes it anew for every request, and the parts of it that keep changing."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from context_summarize.background import within
from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.redaction import traceback_of
from context_summarize.tokens.measure import Count, measure

logger = logging.getLogger(__name__)

Factory = Callable[[], Awaitable[str]]

_BLOCK_TAG = "<system-reminder"
_BLOCK_START = re.compile(rf"{_BLOCK_TAG}(?: [^<>]*)?>")
_BLOCK_END = "</system-reminder>"
_Name: TypeAlias = tuple[str, int]
"""The opening tag of a block, and which of the blocks with this tag it is, counted from the end."""


class SystemPrompt:
    """What the host's factory gave last; while there is one, stored system rows are hidden, hook rows aside.

    Hooks read the factory, wrap it so that the prompt has a block of theirs, and set it again. A block that changes
    would make the provider's prompt cache worthless from there on. So once it has changed or gone it is served at the
    end of the request, where hooks place it that have no prompt to write in.
    """

    def __init__(
        self, count: Count, redact: bool | Sequence[str] = True, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._count = count
        self._redact = redact
        self._is_cancelled = is_cancelled
        self._factory: Factory | None = None
        self._text: str | None = None
        self._blocks: dict[_Name, str] = {}
        """What each block was last."""
        self._changing: set[_Name] = set()
        """Blocks that have changed between two requests, or have gone."""
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
        """Ask the factory, if there is one, for as long as it takes; the host's cancellation ends the wait."""
        if self._factory is None:
            return
        try:
            prompt = await within(self._factory, None, self._is_cancelled)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            if isinstance(error, TimeoutError) and self._is_cancelled():
                return
            # Half a session without its instructions is worse than one with those of a moment ago.
            logger.warning(
                "the system prompt factory failed; the last prompt is used: %s", traceback_of(error, self._redact)
            )
            return
        self._text, self._status = self._parted(prompt) if isinstance(prompt, str) else (None, "")

    def _parted(self, prompt: str) -> tuple[str, str]:
        """The prompt without the blocks that keep changing, and these blocks."""
        pieces = _pieces(prompt)
        blocks = {name: text for name, text in pieces if name is not None}
        self._changing |= {name for name, text in self._blocks.items() if blocks.get(name) != text}
        self._blocks |= blocks
        changing = [text for name, text in pieces if name in self._changing]
        return "".join(text for name, text in pieces if name not in self._changing), "".join(changing).strip()

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


def _pieces(prompt: str) -> list[tuple[_Name | None, str]]:
    """The prompt in pieces: each reminder block with its name and the line breaks before it, and what is between."""
    found: list[tuple[str | None, str]] = []
    done, end = 0, prompt.find(_BLOCK_END)
    while end >= 0:
        start = _BLOCK_START.match(prompt, max(0, prompt.rfind(_BLOCK_TAG, done, end)), end)
        if start is not None and start.start() >= done:
            before = prompt[done : start.start()].rstrip("\n")
            end += len(_BLOCK_END)
            found += [(None, before), (start.group(), prompt[done + len(before) : end])]
            done = end
        end = prompt.find(_BLOCK_END, end + 1)
    later, named = Counter[str](), list[tuple[_Name | None, str]]()
    for tag, text in reversed([*found, (None, prompt[done:])]):
        named.append((None if tag is None else (tag, later[tag]), text))
        later[tag or ""] += 1
    return named[::-1]
