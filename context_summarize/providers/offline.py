"""An Amplifier provider without a model: it answers a summary request with a fallback summary, and says so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, Message, TextBlock, Usage
from amplifier_core.models import ProviderInfo

from context_summarize.messages.text import content_text
from context_summarize.notes.fallback import FALLBACK_LINE, fallback_text, join_fallbacks
from context_summarize.transcript.escaping import enclosed_in, split_numbered
from context_summarize.transcript.part import rows_in

_WORDS = re.compile(r"at most (\d+) words")
_SPOKEN = "(Written by code from the transcript: no model was asked.)"


class OfflineProvider:
    """Answers requests for summaries without a model; for replays, demos and tests without a key.

    It reads the fenced transcript of the request and summarises it by code. It answers any other request with one
    sentence that says what it is.

    Args:
        count: returns the tokens of a text, also for the reported usage.
        context_window, max_output_tokens: tokens, as `get_info().defaults` names them.
    """

    name = "offline"

    def __init__(
        self, count: Callable[[str], int], *, context_window: int = 40_000, max_output_tokens: int = 4_000
    ) -> None:
        self._count = count
        self._window = {"context_window": context_window, "max_output_tokens": max_output_tokens}
        self.calls = 0

    def get_info(self) -> ProviderInfo:
        """Returns the window, in the host's format."""
        return ProviderInfo(id=self.name, display_name="Offline (no model)", defaults=dict(self._window))

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        """Returns the fallback summary of the fenced transcript."""
        self.calls += 1
        await asyncio.sleep(0)
        system = "\n".join(_said(message) for message in request.messages if message.role == "system")
        user = next((_said(m) for m in reversed(request.messages) if m.role == "user"), "")
        text = await asyncio.to_thread(self._answer, system, user)
        read, wrote = self._count(system) + self._count(user), self._count(text)
        usage = Usage(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote)
        return ChatResponse(content=[TextBlock(text=text)], usage=usage, finish_reason="stop")

    def _answer(self, system: str, user: str) -> str:
        body = enclosed_in(user)
        if body is None:
            return "This is the offline provider: it can only shorten a transcript, and none was given."
        asked = _WORDS.search(system)
        room = (int(asked.group(1)) if asked else 300) * 4 // 3 - self._count(_SPOKEN)
        children = split_numbered(body)
        if children is not None:
            text = join_fallbacks([child.replace(_SPOKEN, "").strip() for child in children], room, self._count)
        else:
            text = fallback_text([*rows_in(body)], room, self._count)
        return f"{_SPOKEN}\n{text.replace(FALLBACK_LINE, '').strip()}"


def _said(message: Message) -> str:
    return content_text(message.model_dump()["content"])
