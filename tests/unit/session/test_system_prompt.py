"""The system prompt that a host's factory makes for every request, and the parts of it that keep changing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from context_summarize import SummarizingContextManager
from tests.support.recorder import Recorder
from tests.support.rows import user

PROMPT = "You are the clerk. Reminders stand in <system-reminder> tags.\n\n# Rules\n\nBe kind."


def block(text: object, tag: str = '<system-reminder source="status">') -> str:
    return f"{tag}\n{text}\n</system-reminder>"


async def served(factory: Callable[[], Awaitable[str]], host: Recorder | None = None) -> SummarizingContextManager:
    """A session of one row whose host makes the prompt so."""
    made = SummarizingContextManager(host)
    await made.set_system_prompt_factory(factory)
    await made.add_message(user("Hello."))
    return made


async def asked(made: SummarizingContextManager) -> tuple[str, str]:
    """Prompt of a request, and what ends it."""
    prompt, _, *status = await made.get_messages_for_request(100_000)
    return prompt["content"], "".join(row["content"] for row in status)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda n: f"{PROMPT}\n\n{block(n)}",
        lambda n: f"{block(n)}\n\n{PROMPT}",
        lambda n: f"{PROMPT}\n\n{block(n, '<system-reminder>')}\n\nToday is Monday.",
        lambda n: f'{PROMPT}\r\n\r\n  {block(n, """<system-reminder source="status" hook="git">""")}  \r\n',
        lambda n: f"{PROMPT}\n\n{block(n)}\n\n{block('skills')}\n\n{block(n + 7)}",
        lambda n: f"{PROMPT}\n\n{block('skills')}" + f"\n\n{block(n)}" * (n % 2),
        lambda n: f"{PROMPT}\n\n{block('skills')}\n\n{block('Plan', f'<system-reminder at={n}>')}",
    ],
    ids=[
        "last", "first", "between", "with attributes", "two of one source", "comes and goes",
        "a changing attribute behind a block that stays",
    ],
)  # fmt: skip
async def test_reminder_blocks_end_the_request_wherever_they_stand(wrap: Callable[[int], str]):
    """The prompt stays as it is; nothing is lost or kept."""
    count = iter(range(5))

    async def factory() -> str:
        return wrap(next(count))

    made = await served(factory)
    found = [await asked(made) for _ in range(5)]
    [prompt] = {text for text, _ in found}
    assert "</system-reminder>" not in prompt
    for number, (text, status) in enumerate(found):
        assert sorted(f"{text} {status}".split()) == sorted(wrap(number).split())
    assert all(status.startswith("<system-reminder") for _, status in found[1::2])


@pytest.mark.parametrize("how", ["the host's token", "the caller's task"])
async def test_a_factory_that_hangs_holds_no_cancelled_request_up(how, caplog):
    """Though it ignores its own cancellation. The last prompt stays, and nothing is logged: nobody sees the request."""
    host, answers, hangs, go = Recorder(), iter([PROMPT]), asyncio.Event(), asyncio.Event()

    async def factory() -> str:
        for answer in answers:
            return answer
        hangs.set()
        with contextlib.suppress(asyncio.CancelledError):
            await go.wait()
        await go.wait()
        return "too late"

    made = await served(factory, host)
    assert await asked(made) == (PROMPT, "")
    asking = asyncio.create_task(asked(made))
    await hangs.wait()
    if how == "the host's token":
        host.is_cancelled = True
    else:
        asking.cancel()
    done, _ = await asyncio.wait([asking], timeout=5)
    assert done
    assert asking.cancelled() if how == "the caller's task" else asking.result() == (PROMPT, "")
    go.set()
    assert not caplog.records
