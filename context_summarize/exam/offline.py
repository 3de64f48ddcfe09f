"""A stand-in for the model, to try an exam without one: it asks for the ends of sentences, and searches for them."""

from __future__ import annotations

import json
import re
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall, Usage

from context_summarize.exam.questions import ABSENT, NOT_SAID
from context_summarize.messages.text import content_text
from context_summarize.providers.offline import OfflineProvider
from context_summarize.transcript.escaping import enclosed_in

_SENTENCE = re.compile(r"((?:[^\s#=\"]{1,30} ){5})([^\s#=\"]{1,30}(?: [^\s#=\"]{1,30}){2})")
_NONE = Usage(input_tokens=0, output_tokens=0, total_tokens=0)


class OfflineExaminee(OfflineProvider):
    """Does all steps of an exam by code. Its summaries are those of the offline provider."""

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        """Returns questions, answers or grades; a summary for any other request."""
        step = (request.metadata or {}).get("step")
        if step is None:
            return await super().complete(request, **options)
        _, user, *later = (content_text(message.model_dump()["content"]) for message in request.messages)
        body, said = enclosed_in(user.rpartition("\n\nWhat comes")[0] or user) or "", "[]"
        if step == "answer":
            words = user.rpartition('after "')[2].partition('"')[0]
            if words not in body and request.tools and not later:
                call = ToolCall(id="recall-1", name="recall", arguments={"words": words})
                return ChatResponse(content=[], tool_calls=[call], usage=_NONE)
            found = next((text for text in (body, *later[1:]) if words in text), "")
            said = found.partition(words)[2][:100] or NOT_SAID
        elif step == "grade":
            facts = re.findall(r"(?m)^\d\. (.+)$", body)
            answers = re.split(r"(?m)^Answer ([ABC]): ", body)[1:]
            pairs = zip(answers[::2], answers[1::2], strict=True)
            said = json.dumps(
                {label: [at for at, fact in enumerate(facts, 1) if fact in text] for label, text in pairs}
            )
        else:
            found_all = _SENTENCE.findall(body)
            picked = (
                found_all[:: max(1, len(found_all) // 2)][:2] if step != ABSENT else [("a nonsense word ", "x")] * 2
            )
            asked = [
                {"question": f'What comes after "{words}"?', "facts": [end], "word": "qzxv"} for words, end in picked
            ]
            said = json.dumps(asked)
        return ChatResponse(content=[TextBlock(text=said)], usage=_NONE)
