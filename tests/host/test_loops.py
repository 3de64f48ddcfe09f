"""What newer loops, hooks and providers do, in replicas of a few lines; each names the source that it follows."""

from __future__ import annotations

import asyncio
import itertools
import math
from typing import Any
from unittest.mock import AsyncMock

import pytest
from amplifier_core import ContextLengthError

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.gated import Gate
from tests.support.rows import call, feed, tool_session, user
from tests.support.session import Host
from tests.support.views import untimed

BUDGET = 10_000
SETTINGS = {"max_tokens": BUDGET, "announce": False}
LARGE = {"context_window": 100_000}
"""A provider whose window leaves the budget to the settings."""
STATUS = "Changed files:"
PROMPT = "You are the clerk of an order desk. Look each order up before you answer. " * 12


def compactions(host: Host) -> int:
    return len(host.seen("context:compaction"))


# --- hooks in the system prompt -------------------------------------------------------------------------------------


def breaks(views: list[list[JsonRow]]) -> int:
    """Requests that do not begin with the request before, whose cached prompt is lost; the status aside."""
    lasting = [[row for row in view if STATUS not in str(row)] for view in views]
    return sum(later[: len(earlier)] != earlier for earlier, later in itertools.pairwise(lasting))


async def test_a_status_block_in_the_system_prompt_leaves_the_prompt_cache_warm(hosts):
    """The block changes at each request, and is read anew wherever it stands; the first prompt holds it."""
    host, count, wrapped = await hosts(SETTINGS, **LARGE), itertools.count(), None
    await host.context.set_system_prompt_factory(AsyncMock(return_value=PROMPT))

    async def request(context: Any, provider: Any) -> list[JsonRow]:
        """hooks-status-context f7b6fdd, `_ensure_prefix_placement`: read the factory, wrap it, set it again."""
        nonlocal wrapped
        base = context._system_prompt_factory  # noqa: SLF001 - the name that hooks use
        if base is not wrapped:

            async def wrapped() -> str:
                files = f"{STATUS} {next(count)}. " + "src/orders.py, " * 60
                return f'{await base()}\n\n<system-reminder source="status">\n{files}\n</system-reminder>'

            await context.set_system_prompt_factory(wrapped)
        return list(await context.get_messages_for_request(provider=provider))

    host.loop.request = request
    await host.talk(35)
    views = host.loop.views[1:]

    assert breaks(views) == compactions(host) > 0
    for view in views:
        assert view[0] == {"role": "system", "content": PROMPT, "metadata": {"shown_by": "context-summarize"}}
        assert str(view).count(STATUS) == str(view[-1]).count(STATUS) == 1


async def test_a_changing_block_never_stands_between_a_call_and_its_result():
    """Of a factory that a hook has assigned."""
    made: Any = SummarizingContextManager()
    assert made._system_prompt_factory is None  # noqa: SLF001
    blocks = [f'{PROMPT}\n\n<system-reminder source="status">\n{number}\n</system-reminder>' for number in range(3)]
    made._system_prompt_factory = AsyncMock(side_effect=blocks)  # noqa: SLF001
    for row in (user("Find it."), call("call_1")):
        await made.add_message(row)
        await made.get_messages_for_request()
    rows = await made.get_messages_for_request()

    assert [row["role"] for row in rows] == ["system", "user", "user", "assistant"]


# --- reminders that the loop stores ---------------------------------------------------------------------------------


def reminder(text: str) -> JsonRow:
    """loop-streaming 44189a3 (tests/test_ephemeral_cache_persist_mode.py): stored once, again when it changes."""
    return {"role": "user", "content": text, "metadata": {"ephemeral": True, "persisted": True}}


class StoringLoop:
    """loop-streaming c417041, f553d92: reminders are stored and wanted whole, and each request is checked.

    Follows `check_request_budget` and provider-anthropic 45147da, `request_budget`: a request that the provider finds
    too large is asked for again with `hard_fit`, at most twice, with a budget that counts four characters of Python's
    own notation as a token. If that is too large as well, or would not become smaller, the loop raises.
    """

    def __init__(self, host: Host, limit: float = math.inf, per_character: float = 1.0) -> None:
        self._host = host
        self._limit = limit
        self._per_character = per_character
        """Tokens that the provider counts."""
        self.wanted: list[str] = []
        self.rebuilt = 0
        host.loop.request = self._request

    async def turn(self, text: str) -> None:
        """A prompt, after a reminder that is stored unless the newest stored one is the same."""
        if self.wanted != [text]:
            await self._host.context.add_message(reminder(text))
        self.wanted = [text]
        await self._host.talk(1)

    async def _request(self, context: Any, provider: Any) -> list[JsonRow]:
        del context
        ask = self._host.session.coordinator.get_capability("context.request_retention")
        rows = await ask(retain_contents=self.wanted, provider=provider)
        budgets: list[int] = []
        while (counted := int(sum(len(str(row)) for row in rows) * self._per_character)) > self._limit:
            smaller = int(sum(len(str(row)) // 4 for row in rows) * self._limit // counted)
            if len(budgets) == 2 or (budgets and smaller >= budgets[-1]):
                raise ContextLengthError("the request remains over budget")
            budgets.append(smaller)
            self.rebuilt += 1
            rows = await ask(retain_contents=self.wanted, provider=provider, token_budget=smaller, hard_fit=True)
        return list(rows)


async def test_a_stored_reminder_stands_whole_in_every_request_in_its_newest_form(hosts):
    """Each form is stored once, summarised like any other row, and still there afterwards; no prefix breaks for it."""
    host = await hosts(SETTINGS, **LARGE)
    loop, views = StoringLoop(host), host.loop.views
    for number in range(60):
        await loop.turn(f"<system-reminder>RULE-{number // 25}: answer in French.</system-reminder>")
        for view in views[-2:]:
            assert [row["content"] for row in view].count(loop.wanted[0]) == 1

    assert compactions(host) >= 2
    assert sum(row == reminder(loop.wanted[0]) for row in untimed(await host.context.get_messages())) == 1
    assert breaks(views) == compactions(host)


@pytest.mark.parametrize("per_character", [0.15, 1.0])
async def test_a_request_that_the_provider_finds_too_large_is_made_smaller_at_once(hosts, per_character):
    """Below our threshold the provider refuses, whatever a character is to it, and the loop never raises."""
    host = await hosts({**SETTINGS, "compact_threshold": 0.7}, input_tokens=lambda _: 0, **LARGE)
    loop = StoringLoop(host, 2 * BUDGET * per_character, per_character)
    for _ in range(40):
        await loop.turn("<system-reminder>RULE-7</system-reminder>")

    assert loop.rebuilt > 0
    assert loop.rebuilt < 15, "the smaller view lasts"


# --- cancellation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["request_graceful", "request_immediate"])
@pytest.mark.parametrize(("asks", "budget", "turns"), [("request", BUDGET, 60), ("compact", 3 * BUDGET, 85)])
async def test_ctrl_c_ends_a_wait_and_the_work_goes_on(hosts, how, asks, budget, turns):
    """loop-basic 937a53f, loop-streaming e5438b4: `trigger_callbacks` runs at the loop's own checks, after the view.

    loop-events 8077f3c calls `should_compact()`, then `compact()`: without its summaries nothing is replaced. A status
    line sees that a compaction is being made.
    """
    gate = Gate()
    host = await hosts({**SETTINGS, "max_tokens": budget, "prefetch": False}, summary=gate, **LARGE)
    context, coordinator = host.context, host.session.coordinator
    compacting = coordinator.get_capability("context.compacting")
    await feed(context, tool_session(turns, size=600))
    assert await context.should_compact()
    before = await context.get_token_count()
    work = {"request": lambda: context.get_messages_for_request(provider=host.provider), "compact": context.compact}
    waiting = asyncio.create_task(work[asks]())
    await gate.asked.wait()
    assert compacting() is True
    assert not waiting.done()
    getattr(coordinator.cancellation, how)()
    answer = await asyncio.wait_for(waiting, 30)  # the provider does not answer, and compact() waits without a bound
    assert compacting() is False
    if asks == "compact":
        assert (answer, await context.get_token_count(), compactions(host)) == (0, before, 0)
    else:
        assert answer

    gate.go.set()
    coordinator.cancellation.reset()
    await context.compact()
    assert not await context.should_compact()
    assert (await context.statistics()).fallbacks == 0
    asked = [str(request.messages[1].content) for request in host.provider.requests]
    assert len(asked) == len(set(asked)), "what was under way was kept, and is not asked for again"


async def test_ctrl_c_ends_the_wait_for_a_providers_window(hosts, caplog):
    """A provider that asks its server for the window may take as long as it likes; it is not at fault either."""

    class Slow(ScriptedProvider):
        async def get_model_info(self) -> Any:
            await asyncio.Event().wait()

    host = await hosts()
    await host.context.add_message(user("Hello."))
    request = asyncio.create_task(host.context.get_messages_for_request(provider=Slow()))
    await asyncio.sleep(0)
    host.session.coordinator.cancellation.request_graceful()

    assert untimed(await asyncio.wait_for(request, 30)) == [user("Hello.")]
    assert "failed" not in caplog.text, "it has not been given its two seconds"
