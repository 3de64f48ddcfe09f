"""The parts of a system prompt that keep changing, wherever hooks put them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from context_summarize.session.system_prompt import SystemPrompt

PROMPT = "You are the clerk. Reminders stand in <system-reminder> tags.\n\n# Rules\n\nBe kind."


def block(text: object, tag: str = '<system-reminder source="status">') -> str:
    return f"{tag}\n{text}\n</system-reminder>"


async def served(wrap: Callable[[int], str], requests: int = 4) -> list[tuple[str | None, str]]:
    """Prompt and status of each request."""
    count = iter(range(requests))

    async def factory() -> str:
        return wrap(next(count))

    system, found = SystemPrompt(len), []
    system.set_factory(factory)
    for _ in range(requests):
        await system.refresh()
        row = system.status
        found.append((system.text, row["content"] if row else ""))
    return found


@pytest.mark.parametrize(
    "wrap",
    [
        lambda n: f"{PROMPT}\n\n{block(n)}",
        lambda n: f"{block(n)}\n\n{PROMPT}",
        lambda n: f"{PROMPT}\n\n{block(n)}\n\nToday is Monday.",
        lambda n: f"{PROMPT}\n\n{block(n, '<system-reminder>')}",
        lambda n: f'{PROMPT}\n\n{block(n, """<system-reminder source="status" hook="git">""")}',
        lambda n: f"{PROMPT}\r\n\r\n  {block(n)}  \r\n",
        lambda n: f"{PROMPT}\n\n{block(n)}\n\n{block('skills')}\n\n{block(n + 7)}",
    ],
    ids=["last", "first", "between", "without a source", "with attributes", "other spaces", "two of one source"],
)
async def test_a_block_that_changes_ends_the_request_wherever_it_stands(wrap: Callable[[int], str]) -> None:
    """From its first change on the prompt stays as it is, and nothing of it is lost."""
    found = await served(wrap)
    assert found[0] == (wrap(0), "")
    assert len({text for text, _ in found[1:]}) == 1
    for number, (text, status) in enumerate(found[1:], start=1):
        assert text is not None
        assert block(number).partition(">")[2] in status
        assert sorted(f"{text} {status}".split()) == sorted(wrap(number).split())


async def test_a_block_that_comes_later_and_stays_stays_in_the_prompt() -> None:
    """A long list of skills is read from the prompt cache there."""
    found = await served(lambda n: f"{PROMPT}\n\n{block('skills')}" if n else PROMPT)
    assert found[1:] == [(f"{PROMPT}\n\n{block('skills')}", "")] * 3


class Hanging:
    """A factory that answers once and then hangs; a deaf one ignores the first cancellation."""

    def __init__(self, *, deaf: bool) -> None:
        self._deaf = deaf
        self._answers = iter([PROMPT])
        self.hangs, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> str:
        for answer in self._answers:
            return answer
        self.hangs.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            if not self._deaf:
                raise
            await self.go.wait()
        return "too late"


@pytest.mark.parametrize("deaf", [False, True], ids=["obedient", "deaf"])
@pytest.mark.parametrize("how", ["the host's token", "the caller's task"])
async def test_a_factory_that_hangs_holds_no_cancelled_request_up(
    deaf: bool, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The last prompt stays, and nothing is logged: nobody sees the request."""
    cancelled, factory = False, Hanging(deaf=deaf)
    system = SystemPrompt(len, is_cancelled=lambda: cancelled)
    system.set_factory(factory)
    await system.refresh()
    asking = asyncio.create_task(system.refresh())
    await factory.hangs.wait()
    assert not asking.done()

    if how == "the host's token":
        cancelled = True
    else:
        asking.cancel()
    done, _ = await asyncio.wait([asking], timeout=5)

    assert done
    assert asking.cancelled() is (how == "the caller's task")
    factory.go.set()
    await asyncio.sleep(0.01)
    assert system.text == PROMPT
    assert not caplog.records
