"""What a provider is shown of a conversation: the fence of a request for a summary, and the rows inside it."""

from __future__ import annotations

import re

from amplifier_core.message_models import ChatRequest

_HEADER = re.compile(r"(?m)^(\[m\d+\] (?:user|assistant|tool)(?: .*)?)$\n?")


def fenced(request: ChatRequest) -> tuple[str, str, str]:
    """(instruction row, fence, fenced text) of a request for a summary; a fence that is broken fails here."""
    system, asked = (str(message.content) for message in request.messages)
    fence, _, rest = asked.partition("\n")
    assert re.fullmatch(r"=== transcript [0-9a-f]{20} ===", fence)
    assert rest.endswith(f"\n{fence}")
    return system, fence, rest.removesuffix(f"\n{fence}")


def transcript(request: ChatRequest) -> list[tuple[str, str]]:
    """(header, text) of each row of the part that a request for a summary shows."""
    found = _HEADER.split(fenced(request)[2])
    assert found[0] == "" or found[0].startswith("[b1] ")
    texts = [*(text.removesuffix("\n\n") for text in found[2:-1:2]), found[-1]]
    return list(zip(found[1::2], texts, strict=True))
