"""A whole Amplifier session in one file: a loop, a tool, a provider without a model, compaction, recall, a restart.

Run it with `python examples/session.py`. It needs no key, downloads nothing and leaves nothing behind.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from amplifier_core import AmplifierSession, ToolResult
from amplifier_core.message_models import ChatRequest, ChatResponse, Message, TextBlock, ToolCall, ToolCallBlock

from context_summarize.providers.offline import OfflineProvider
from context_summarize.tokens.counter import TokenCounter


class Orders:
    """A tool whose long results soon fill a small window."""

    name = "lookup"
    description = "Looks up an order."
    input_schema: ClassVar = {"type": "object", "properties": {"order": {"type": "string"}}}

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        stops = ", ".join(f"stop {stop} {stop * 7 % 31} kg" for stop in range(60))
        return ToolResult(success=True, output=f"{input['order']}: parcel PX-{input['order'][-2:]}7, {stops}")


class Provider(OfflineProvider):
    """Plays the model: it calls the tool for each user message, and leaves the summaries to the offline provider."""

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        if (request.metadata or {}).get("purpose") == "context-summarize":
            return await super().complete(request, **kwargs)
        last = request.messages[-1]
        if last.role == "tool":
            return ChatResponse(content=[TextBlock(text="The order is on its way.")])
        order = str(last.content).split()[-1]
        call = ToolCall(id=f"call-{order}", name="lookup", arguments={"order": order})
        block = ToolCallBlock(id=call.id, name=call.name, input=call.arguments)
        return ChatResponse(content=[block], tool_calls=[call])


class Loop:
    """The agent loop: ask the provider, run the tools, and ask again until an answer has no calls."""

    async def execute(self, prompt: str, context: Any, providers: Any, tools: Any, hooks: Any, **_: Any) -> str:
        provider = providers["offline"]
        await context.add_message({"role": "user", "content": prompt})
        while True:
            rows = await context.get_messages_for_request(provider=provider)  # never more than the window holds
            answer = await provider.complete(ChatRequest(messages=[Message(**row) for row in rows]))
            calls = answer.tool_calls or []
            row: dict[str, Any] = {"role": "assistant", "content": [block.model_dump() for block in answer.content]}
            if calls:
                row["tool_calls"] = [{"id": call.id, "tool": call.name, "arguments": call.arguments} for call in calls]
            await context.add_message(row)
            for call in calls:
                result = await tools[call.name].execute(call.arguments)
                await context.add_message({"role": "tool", "tool_call_id": call.id, "content": str(result.output)})
            if not calls:
                return str(answer.content[0].text)


def module(name: str, point: str, part: Any) -> None:
    """Put a part where Amplifier's loader finds it: `amplifier_module_<name>`. Installed modules are there."""
    made = ModuleType(f"amplifier_module_{name}")

    async def mount(coordinator: Any, config: dict[str, Any]) -> None:
        await coordinator.mount(point, part, **({"name": part.name} if hasattr(part, "name") else {}))

    made.mount = mount  # type: ignore[attr-defined]
    sys.modules[made.__name__] = made


async def start(cache: Path) -> tuple[AmplifierSession, Provider]:
    """A session with a window of 16,000 tokens."""
    provider = Provider(TokenCounter().count, context_window=16_000, max_output_tokens=1_000)
    module("loop", "orchestrator", Loop())
    module("model", "providers", provider)
    module("shop", "tools", Orders())
    settings = {"keep_recent": 6, "cache": str(cache)}
    context = {"module": "context-summarize", "config": settings}
    parts = {"providers": [{"module": "model"}], "tools": [{"module": "shop"}]}
    session = AmplifierSession({"session": {"orchestrator": {"module": "loop"}, "context": context}, **parts})
    await session.initialize()
    return session, provider


async def main(folder: Path) -> None:
    session, provider = await start(folder / "summaries.sqlite3")
    for number in range(10, 50):
        await session.execute(f"Where is order ORD-{number}")
    context = session.coordinator.get("context")
    saved = await context.compact(focus="parcel codes")  # one more, on request; the others came by themselves
    history, view = await context.get_messages(), await context.get_messages_for_request(provider=provider)
    used = await session.coordinator.get_capability("context.statistics")()
    print(
        f"{len(history)} messages, {len(view)} sent, {used.compactions} compactions, {used.calls} calls for summaries"
    )
    print(f"compact() saved {saved:,} tokens")

    found = await session.coordinator.get("tools")["recall"].execute({"words": "PX-127"})
    print("recall found", next(line[:21] for line in str(found.output).splitlines() if line.startswith("ORD-")))
    await session.cleanup()

    session, provider = await start(folder / "summaries.sqlite3")  # a new process would do the same
    context = session.coordinator.get("context")
    await context.set_messages(history)
    same = await context.get_messages_for_request(provider=provider) == view
    print(f"after a restart: the same request {same}, {provider.calls} calls")
    await session.cleanup()
    await asyncio.sleep(0.2)  # amplifier-core has its own thread: a process that ends sooner may crash in it


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
