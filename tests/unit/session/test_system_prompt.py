"""The system prompt that a host's factory makes for every request, and the parts of it that keep changing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from context_summarize import SummarizingContextManager
from tests.support.recorder import Recorder
from tests.support.rows import user

PROMPT = "You are the clerk. Reminders stand in <system-reminder> tags.\n\n# Rules\n\nBe kind."


def block(text: object, tag: str = '<system-reminder source="status">') -> str:
    return f"{tag}\n{text}\n</system-reminder>"


async def asked(made: SummarizingContextManager) -> tuple[str, str]:
    """Prompt of a request, and what ends it."""
    prompt, _, *status = await made.get_messages_for_request(100_000)
    return prompt["content"], "".join(row["content"] for row in status)


async def served(wrap: Callable[[int], str], requests: int = 4) -> list[tuple[str, str]]:
    count, made = iter(range(requests)), SummarizingContextManager()

    async def factory() -> str:
        return wrap(next(count))

    await made.set_system_prompt_factory(factory)
    await made.add_message(user("Hello."))
    return [await asked(made) for _ in range(requests)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda n: f"{PROMPT}\n\n{block(n)}",
        lambda n: f"{block(n)}\n\n{PROMPT}",
        lambda n: f"{PROMPT}\n\n{block(n, '<system-reminder>')}\n\nToday is Monday.",
        lambda n: f'{PROMPT}\r\n\r\n  {block(n, """<system-reminder source="status" hook="git">""")}  \r\n',
        lambda n: f"{PROMPT}\n\n{block(n)}\n\n{block('skills')}\n\n{block(n + 7)}",
    ],
    ids=["last", "first", "between", "with attributes", "two of one source"],
)
async def test_a_block_that_changes_ends_the_request_wherever_it_stands(wrap: Callable[[int], str]) -> None:
    """From its first change on the prompt stays as it is, and nothing of it is lost."""
    found = await served(wrap)
    assert found[0] == (wrap(0), "")
    assert len({text for text, _ in found[1:]}) == 1
    for number, (text, status) in enumerate(found[1:], start=1):
        assert block(number).partition(">")[2] in status
        assert sorted(f"{text} {status}".split()) == sorted(wrap(number).split())


async def test_a_block_that_comes_and_goes_leaves_the_prompt_when_it_goes() -> None:
    """It need not change to make the prompt cache worthless."""
    found = await served(lambda n: PROMPT if n % 2 else f"{PROMPT}\n\n{block('plan')}", requests=6)
    assert found[1:] == [(PROMPT, ""), (PROMPT, block("plan"))] * 2 + [(PROMPT, "")]


async def test_a_block_that_comes_later_and_stays_stays_in_the_prompt() -> None:
    """A long list of skills is read from the prompt cache there."""
    found = await served(lambda n: f"{PROMPT}\n\n{block('skills')}" if n else PROMPT)
    assert found[1:] == [(f"{PROMPT}\n\n{block('skills')}", "")] * 3


class Host(Recorder):
    """A coordinator that can cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.cancellation, self.is_cancelled = self, False


@pytest.mark.parametrize("how", ["the host's token", "the caller's task"])
async def test_a_factory_that_hangs_holds_no_cancelled_request_up(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """Though it ignores its own cancellation. The last prompt stays, and nothing is logged: nobody sees the request."""
    host, answers, hangs, go = Host(), iter([PROMPT]), asyncio.Event(), asyncio.Event()

    async def factory() -> str:
        for answer in answers:
            return answer
        hangs.set()
        with contextlib.suppress(asyncio.CancelledError):
            await go.wait()
        await go.wait()
        return "too late"

    made = SummarizingContextManager(host)
    await made.set_system_prompt_factory(factory)
    await made.add_message(user("Hello."))
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
