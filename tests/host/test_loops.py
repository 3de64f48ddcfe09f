"""What newer loops, hooks and providers do, in replicas of a few lines; each names the source that it follows."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from amplifier_core import ContextLengthError, HookResult
from amplifier_core.message_models import ChatRequest, Message
from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager, mount
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.gated import Gated, answer
from tests.support.rows import assistant, feed, result, tool_session, user
from tests.support.rows import call as tool_call
from tests.support.views import untimed

BUDGET = 10_000
SETTINGS = {"max_tokens": BUDGET, "cache": "memory", "keep_recent": 6, "shorten_tool_results": None, "announce": False}
PROMPT = "You are the clerk of an order desk. Look each order up before you answer. " * 12


class Desk:
    """A mounted context and a loop around it: each turn takes two requests, as with a tool call."""

    def __init__(self, **settings: Any) -> None:
        self.coordinator = MockCoordinator()
        self.provider = ScriptedProvider(then=answer, context_window=100_000)
        self.views: list[list[JsonRow]] = []
        self.compactions = 0
        self.marks: dict[str, Any] = {}
        """Metadata of the assistant rows from now on."""
        self._settings = {**SETTINGS, **settings}
        self._cleanup: Any = None

    async def __aenter__(self) -> Desk:
        self._cleanup = await mount(self.coordinator, self._settings)
        self.coordinator.hooks.register("context:compaction", self._count, name="count")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._cleanup()

    async def _count(self, event: str, data: dict[str, Any]) -> HookResult:
        self.compactions += 1
        return HookResult(action="continue")

    @property
    def context(self) -> SummarizingContextManager:
        found = self.coordinator.get("context")
        assert isinstance(found, SummarizingContextManager)
        return found

    async def turn(self, number: int, request: Callable[[], Any]) -> None:
        """A user's row, a request, a call with its result, a request, an answer."""
        await self.context.add_message(user(f"Please find order ORD{number:05d}."))
        self.views.append(await request())
        await self._add(tool_call(f"call_{number}", "lookup", order=number))
        text = "; ".join(f"ORD{number:05d} stop {stop} weight {stop * 7 % 31} kg" for stop in range(20))
        await self.context.add_message(result(f"call_{number}", text, "lookup"))
        self.views.append(await request())
        await self._add(assistant(f"Order ORD{number:05d} is on its way."))
        await self.context.settle()

    async def _add(self, row: JsonRow) -> None:
        await self.context.add_message({**row, "metadata": self.marks} if self.marks else row)

    async def plain(self) -> list[JsonRow]:
        return await self.context.get_messages_for_request(provider=self.provider)


# --- hooks in the system prompt -------------------------------------------------------------------------------------


class PromptHook:
    """hooks-status-context f7b6fdd, `_ensure_prefix_placement`: read the factory, wrap it, set it again.

    Without a factory to wrap it gives its block to the loop, which adds it to every request.
    """

    def __init__(self, context: Any, block: Callable[[], str]) -> None:
        self._context = context
        self._block = block
        self._wrapped: Any = None

    async def on_request(self) -> str:
        """Before every request; what the loop is to add to it."""
        base = getattr(self._context, "_system_prompt_factory", None)
        if base is None:
            return self._block()
        if base is not self._wrapped:

            async def wrapped() -> str:
                return f"{await base()}\n\n{self._block()}"

            self._wrapped = wrapped
            await self._context.set_system_prompt_factory(wrapped)
        return ""


def cached_share(views: list[list[JsonRow]]) -> float:
    """Share of all input that stands at the beginning of the request before as well."""
    texts = [json.dumps(view) for view in views]
    kept = (len(os.path.commonprefix(pair)) for pair in itertools.pairwise(texts))  # noqa: RUF071 - no paths
    return sum(kept) / sum(map(len, texts[1:]))


async def test_a_status_block_in_the_system_prompt_leaves_the_prompt_cache_warm() -> None:
    """100 turns, 200 requests. The block changes at each of them, and is read anew wherever it stands."""
    count = itertools.count()

    def block() -> str:
        files = f"Changed files: {next(count)}. " + "src/orders.py, " * 60
        return f'<system-reminder source="status">\n{files}\n</system-reminder>'

    async def prompt() -> str:
        return PROMPT

    async with Desk(max_tokens=3 * BUDGET) as desk:
        await desk.context.set_system_prompt_factory(prompt)
        hook = PromptHook(desk.context, block)

        async def request() -> list[JsonRow]:
            added = await hook.on_request()
            rows = await desk.plain()
            return [*rows, user(added)] if added else rows

        for number in range(100):
            await desk.turn(number, request)

        assert desk.compactions > 0
        assert cached_share(desk.views) >= 0.95
        for view in desk.views:
            assert view[0]["role"] == "system"
            assert view[0]["content"].startswith(PROMPT)
            assert json.dumps(view).count("Changed files") == 1


async def test_the_factory_is_read_back_as_it_was_set_and_may_be_assigned() -> None:
    async def prompt() -> str:
        return "one"

    async def other() -> str:
        return "two"

    made: Any = SummarizingContextManager()
    assert made._system_prompt_factory is None  # noqa: SLF001 - the name that hooks use
    await made.set_system_prompt_factory(prompt)
    assert made._system_prompt_factory is prompt  # noqa: SLF001
    made._system_prompt_factory = other  # noqa: SLF001
    assert (await made.get_messages_for_request())[0]["content"] == "two"


async def test_a_changing_block_never_stands_between_a_call_and_its_result() -> None:
    count = itertools.count()

    async def prompt() -> str:
        return f'{PROMPT}\n\n<system-reminder source="status">\n{next(count)}\n</system-reminder>'

    made = SummarizingContextManager()
    await made.set_system_prompt_factory(prompt)
    for row in (user("Find it."), tool_call("call_1")):
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

    def __init__(self, desk: Desk, limit: int | None = None, per_character: float = 1.0) -> None:
        self._desk = desk
        self._limit = limit
        self._per_character = per_character
        """Tokens that the provider counts."""
        self.wanted: list[str] = []
        self.rebuilt = 0

    async def remind(self, text: str) -> None:
        """Store a reminder unless the newest stored one is the same."""
        rows = untimed(await self._desk.context.get_messages())
        stored = [row["content"] for row in rows if row == reminder(row["content"])]
        if not stored or stored[-1] != text:
            await self._desk.context.add_message(reminder(text))
        self.wanted = [text]

    async def request(self) -> list[JsonRow]:
        ask = self._desk.coordinator.get_capability("context.request_retention")
        rows = await ask(retain_contents=self.wanted, provider=self._desk.provider)
        budgets: list[int] = []
        while self._limit is not None and (counted := self._counted(rows)) > self._limit:
            smaller = sum(len(str(row)) // 4 for row in rows) * self._limit // counted
            if len(budgets) == 2 or (budgets and smaller >= budgets[-1]):
                raise ContextLengthError("the request remains over budget")
            budgets.append(smaller)
            self.rebuilt += 1
            rows = await ask(
                retain_contents=self.wanted, provider=self._desk.provider, token_budget=smaller, hard_fit=True
            )
        ChatRequest(messages=[Message(**row) for row in rows])
        return list(rows)

    def _counted(self, rows: list[JsonRow]) -> int:
        return int(sum(len(str(row)) for row in rows) * self._per_character)


async def test_a_stored_reminder_stands_whole_in_every_request_in_its_newest_form() -> None:
    """Each form is stored once, summarised like any other row, and still there afterwards; no prefix breaks for it."""
    async with Desk() as desk:
        loop = StoringLoop(desk)
        for number in range(60):
            await loop.remind(f"<system-reminder>RULE-{number // 25}: answer in French.</system-reminder>")
            await desk.turn(number, loop.request)
            for view in desk.views[-2:]:
                assert [row["content"] for row in view].count(loop.wanted[0]) == 1

        assert desk.compactions >= 2
        assert sum(row == reminder(loop.wanted[0]) for row in untimed(await desk.context.get_messages())) == 1
        pairs = itertools.pairwise(desk.views)
        assert sum(later[: len(earlier)] != earlier for earlier, later in pairs) == desk.compactions


@pytest.mark.parametrize("per_character", [0.15, 0.3, 1.0])
async def test_a_request_that_the_provider_finds_too_large_is_made_smaller_at_once(per_character: float) -> None:
    """Below our threshold the provider refuses, whatever a character is to it, and the loop never raises."""
    async with Desk(compact_threshold=0.7) as desk:
        loop = StoringLoop(desk, limit=int(2 * BUDGET * per_character), per_character=per_character)
        for number in range(60):
            await loop.remind("<system-reminder>RULE-7</system-reminder>")
            await desk.turn(number, loop.request)

        assert loop.rebuilt > 0
        assert loop.rebuilt < 20, "the smaller view lasts"


async def test_a_wanted_content_that_was_never_stored_is_added_and_nothing_is_raised() -> None:
    async with Desk() as desk:
        await desk.context.add_message(user("<quoted>"))
        ask = desk.coordinator.get_capability("context.request_retention")
        rows = await ask(retain_contents=["RULE-9"])

        assert untimed(rows) == [reminder("RULE-9"), user("<quoted>")]
        assert untimed(await desk.context.get_messages()) == [user("<quoted>")]


# --- cancellation ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def waiting() -> AsyncIterator[tuple[Desk, Gated, asyncio.Task[list[JsonRow]]]]:
    """A request that waits for a summary, in a loop that tells of a cancellation only afterwards."""
    async with Desk(prefetch=False, wait_seconds=60) as desk:
        desk.provider = provider = Gated(answer, context_window=100_000)
        await feed(desk.context, tool_session(60, size=600))
        request = asyncio.create_task(desk.plain())
        await provider.asked.wait()
        yield desk, provider, request
        provider.go.set()


@pytest.mark.parametrize("how", ["request_graceful", "request_immediate"])
async def test_ctrl_c_ends_a_wait_and_the_work_goes_on(waiting: Any, how: str) -> None:
    """loop-basic 937a53f, loop-streaming e5438b4: `trigger_callbacks` runs at the loop's own checks, after the view."""
    desk, provider, request = waiting
    assert not request.done()
    getattr(desk.coordinator.cancellation, how)()
    rows = await asyncio.wait_for(request, 30)  # the provider does not answer, and a wait may take a minute

    assert rows
    under_way = provider.calls
    provider.go.set()
    desk.coordinator.cancellation.reset()
    await desk.context.compact()
    asked = [str(r.messages[1].content) for r in desk.provider.requests]
    assert under_way
    assert len(asked) == len(set(asked)), "what was under way was kept, and is not asked for again"


@pytest.mark.parametrize("how", ["request_graceful", "request_immediate"])
async def test_ctrl_c_ends_a_compaction_that_a_loop_asks_for_and_leaves_the_view(how: str) -> None:
    """loop-events 8077f3c calls `should_compact()`, then `compact()`: without its summaries nothing is replaced."""
    async with Desk(max_tokens=3 * BUDGET, prefetch=False) as desk:
        provider = Gated(answer, context_window=100_000)
        await desk.coordinator.mount("providers", provider, name="main")
        await feed(desk.context, tool_session(85, size=600))
        assert await desk.context.should_compact()
        before = await desk.context.get_token_count()
        asked = asyncio.create_task(desk.context.compact())
        await provider.asked.wait()
        getattr(desk.coordinator.cancellation, how)()

        assert await asyncio.wait_for(asked, 30) == 0  # nobody answers, and compact() waits without a bound
        assert await desk.context.get_token_count() == before
        assert desk.compactions == 0
        provider.go.set()
        desk.coordinator.cancellation.reset()
        assert await desk.context.should_compact()
        assert await desk.context.compact() > 0
        assert (await desk.context.statistics()).fallbacks == 0
        assert not await desk.context.should_compact()


async def test_ctrl_c_ends_the_wait_for_a_providers_window(caplog: Any) -> None:
    """A provider that asks its server for the window may take as long as it likes; it is not at fault either."""

    class Slow(ScriptedProvider):
        async def get_model_info(self) -> Any:
            await asyncio.sleep(30)

    async with Desk() as desk:
        desk.provider = Slow(then=answer, context_window=100_000)
        await desk.context.add_message(user("Hello."))
        request = asyncio.create_task(desk.plain())
        await asyncio.sleep(0)
        desk.coordinator.cancellation.request_graceful()

        assert untimed(await asyncio.wait_for(request, 30)) == [user("Hello.")]
        assert "failed" not in caplog.text, "it has not been given its two seconds"


# --- chains on the provider's server --------------------------------------------------------------------------------


class ChainingServer:
    """provider-openai ec5f9c9: `previous_response_id` of the last assistant row that has one, and the full input too.

    The server restores the chain behind that id, and counts it as input. Instructions, to which the provider joins all
    system rows, are not carried over. A token of this server holds more characters than one of ours.
    """

    TOOLS = 1_500
    ANSWER = 20

    def __init__(self, key: str, *, chains: bool) -> None:
        self._key = key
        self._chains = chains
        self._known: dict[str, int] = {}
        self._ids = itertools.count(1)

    def figures(self, rows: list[JsonRow]) -> tuple[str, int]:
        """The id of the response and the input tokens that it reports."""
        instructions, conversation = self._size(rows, system=True), self._size(rows, system=False)
        last = next((row for row in reversed(rows) if self._key in row.get("metadata", {})), None)
        if last and self._chains:
            conversation += self._known[last["metadata"][self._key]]
        name = f"resp_{next(self._ids)}"
        self._known[name] = conversation + self.ANSWER
        return name, self.TOOLS + instructions + conversation

    @staticmethod
    def _size(rows: list[JsonRow], *, system: bool) -> int:
        return sum(len(str(row["content"])) for row in rows if (row["role"] == "system") == system) * 2 // 7


async def chained_session(key: str, *, chains: bool) -> int:
    """Compactions of a session of 200 requests."""
    async with Desk() as desk:
        server = ChainingServer(key, chains=chains)

        async def request() -> list[JsonRow]:
            rows = await desk.plain()
            name, tokens = server.figures(rows)
            desk.marks = {key: name}
            usage = {"input_tokens": tokens, "output_tokens": server.ANSWER}
            told = {"status": "ok", "provider": "openai", "usage": usage}
            await desk.context.observe_response("llm:response", told)
            return rows

        for number in range(100):
            await desk.turn(number, request)
        return desk.compactions


@pytest.mark.parametrize("key", ["openai:response_id", "vllm:response_id"])
async def test_a_session_that_chains_makes_as_many_compactions_or_one_more(key: str, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, "context_summarize"):
        plain, chained = [await chained_session(key, chains=chains) for chains in (False, True)]

    assert plain > 2
    assert abs(chained - plain) <= 1
    assert caplog.records == []


# --- what hosts ask beside ------------------------------------------------------------------------------------------


async def test_a_status_line_sees_that_a_compaction_is_being_made(waiting: Any) -> None:
    desk, provider, request = waiting
    compacting = desk.coordinator.get_capability("context.compacting")
    assert compacting() is True
    provider.go.set()
    await request
    assert compacting() is False
