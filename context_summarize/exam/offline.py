"""A stand-in for the model, to try an exam without one: it says what has the right form, and means nothing."""

from __future__ import annotations

import json
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall

from context_summarize.exam.questions import ABSENT
from context_summarize.providers.offline import OfflineProvider

_SAID = {
    "answer": "No model was asked.",
    "grade": json.dumps(dict.fromkeys("ABC", ())),
    ABSENT: json.dumps([{"text": "Who is qzxv?", "word": "qzxv"}]),
}
_QUESTIONS = json.dumps(2 * [{"text": "What was said?", "facts": ["a fact"]}])


class OfflineExaminee(OfflineProvider):
    """Does all steps of an exam by code. Its summaries are those of the offline provider."""

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        """Returns questions, answers or grades, after one call of `recall`; a summary for any other request."""
        step = (request.metadata or {}).get("step")
        if step is None:
            return await super().complete(request, **options)
        if request.tools and all(message.role != "tool" for message in request.messages):
            call = ToolCall(id="recall-1", name="recall", arguments={"words": "what was said"})
            return ChatResponse(content=[], tool_calls=[call])
        return ChatResponse(content=[TextBlock(text=_SAID.get(step, _QUESTIONS))])
