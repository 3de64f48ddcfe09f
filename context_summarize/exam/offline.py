"""A stand-in for the model, to try an exam without one: it asks what comes after some words, and searches for them."""

from __future__ import annotations

import json
import re
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall

from context_summarize.exam.questions import ABSENT, NOT_SAID
from context_summarize.messages.text import content_text
from context_summarize.providers.offline import OfflineProvider

_ASKED = "What comes after: "


class OfflineExaminee(OfflineProvider):
    """Does all steps of an exam by code. Its summaries are those of the offline provider."""

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        """Returns questions, answers or grades; a summary for any other request."""
        step = (request.metadata or {}).get("step")
        if step is None:
            return await super().complete(request, **options)
        told = (message for message in request.messages if message.role in ("user", "tool"))
        texts = [content_text(message.model_dump()["content"]) for message in told]
        if step == "answer":
            words = texts[0].rpartition(_ASKED)[2]
            said = next((after[:100] for text in texts if (after := text.partition(words)[2])), NOT_SAID)
            if said == NOT_SAID and request.tools and len(texts) == 1:
                call = ToolCall(id="recall-1", name="recall", arguments={"words": words})
                return ChatResponse(content=[], tool_calls=[call])
        elif step == "grade":
            [fact] = re.findall(r"(?m)^1\. (.+)$", texts[0])
            answers = re.findall(r"(?m)^Answer ([ABC]): (.*)$", texts[0])
            said = json.dumps({label: [1] if fact in text else [] for label, text in answers})
        elif step == ABSENT:
            said = json.dumps([{"question": f"{_ASKED}a nonsense word", "word": "qzxv"}])
        else:
            found = re.findall(r"(?m)^((?:\S{1,30} ){5})(\S{1,30})", texts[0])
            picked = found[:: max(1, len(found) // 2)][:2]
            said = json.dumps([{"question": _ASKED + words, "facts": [after]} for words, after in picked])
        return ChatResponse(content=[TextBlock(text=said)])
