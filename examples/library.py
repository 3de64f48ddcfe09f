"""The package in loops of your own: one with OpenAI's SDK, one with Anthropic's, without Amplifier and without a key.

Run it with `python examples/library.py`, after `pip install openai anthropic`. The servers are on this machine, have no
model, and refuse what the real ones refuse.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from strict_server import anthropic_server, openai_server  # type: ignore[import-not-found]  # the file beside this one

from context_summarize import SummarizingContextManager, provider_of
from context_summarize.formats import from_anthropic, from_openai, to_anthropic, to_openai

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}}


def lookup(order: str) -> str:
    """A tool whose long results soon fill a small window."""
    return f"{order}: parcel PX-{order[-2:]}7, " + ", ".join(f"stop {at} {at * 7 % 31} kg" for at in range(60))


async def with_openai(client: Any, model: str, prompts: Sequence[str]) -> SummarizingContextManager:
    async def summarise(rows: list[dict[str, Any]], max_tokens: int) -> str:
        answer = await client.chat.completions.create(
            model=model, messages=to_openai(rows), max_completion_tokens=max_tokens
        )
        return str(answer.choices[0].message.content or "")

    provider = provider_of(summarise, context_window=12_000, max_output_tokens=1_000)
    context = SummarizingContextManager(keep_recent=6)
    await context.add_message({"role": "system", "content": "You serve a shop."})
    for prompt in prompts:
        await context.add_message({"role": "user", "content": prompt})
        calls = None
        while calls != []:
            rows = await context.get_messages_for_request(provider=provider)
            answer = await client.chat.completions.create(
                model=model,
                messages=to_openai(rows),
                tools=[{"type": "function", "function": {"name": "lookup", "parameters": SCHEMA}}],
            )
            await context.observe_usage(answer.usage)
            message = answer.choices[0].message
            for row in from_openai([message]):
                await context.add_message(row)
            calls = message.tool_calls or []
            for call in calls:
                result = lookup(**json.loads(call.function.arguments))
                await context.add_message({"role": "tool", "tool_call_id": call.id, "content": result})
    return context


async def with_anthropic(client: Any, model: str, prompts: Sequence[str]) -> SummarizingContextManager:
    async def summarise(rows: list[dict[str, Any]], max_tokens: int) -> str:
        answer = await client.messages.create(model=model, max_tokens=max_tokens, **to_anthropic(rows))
        return "".join(block.text for block in answer.content if block.type == "text")

    provider = provider_of(summarise, context_window=12_000, max_output_tokens=1_000)
    context = SummarizingContextManager(keep_recent=6)
    await context.add_message({"role": "system", "content": "You serve a shop."})
    for prompt in prompts:
        await context.add_message({"role": "user", "content": prompt})
        calls = None
        while calls != []:
            rows = await context.get_messages_for_request(provider=provider)
            answer = await client.messages.create(
                model=model,
                max_tokens=1_000,
                tools=[{"name": "lookup", "input_schema": SCHEMA}],
                cache_control={"type": "ephemeral"},
                **to_anthropic(rows),
            )
            await context.observe_usage(answer.usage)
            for row in from_anthropic([answer]):
                await context.add_message(row)
            calls = [block for block in answer.content if block.type == "tool_use"]
            for call in calls:
                await context.add_message({"role": "tool", "tool_call_id": call.id, "content": lookup(**call.input)})
    return context


async def tell(name: str, context: SummarizingContextManager) -> None:
    history, used = await context.get_messages(), await context.statistics()
    print(f"{name}: {len(history)} messages, {used.requests} requests, {used.compactions} compactions,", end=" ")
    print(f"{used.calls} calls for summaries, {used.failed} failed")
    await context.close()


async def main() -> None:
    prompts = [f"Where is order ORD-{number}" for number in range(10, 40)]
    with openai_server() as address:
        async with AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as client:
            await tell("OpenAI", await with_openai(client, "a-model", prompts))
    with anthropic_server() as address:
        async with AsyncAnthropic(base_url=address, api_key="none", max_retries=0) as client:
            await tell("Anthropic", await with_anthropic(client, "a-model", prompts))


if __name__ == "__main__":
    asyncio.run(main())
